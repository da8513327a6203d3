//! A pod's `resolv.conf`, as kubelet writes it. Pure.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::PodDNSConfig;

use super::addresses::DNS_SERVICE;

/// The domain of the cluster.
pub const DOMAIN: &str = "cluster.local";

/// The most that a resolver takes.
const SERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;

/// The text of `/etc/resolv.conf` for a pod of a namespace.
///
/// `host` is what this machine's own file says, for pods that want that. `ClusterFirst` of a pod on its node's network
/// means `Default`, as with kubelet.
pub fn resolv_conf(
    namespace: &str,
    policy: Option<&str>,
    host_network: bool,
    config: Option<&PodDNSConfig>,
    host: &str,
) -> String {
    let mut conf = match policy.unwrap_or("ClusterFirst") {
        "None" => Conf::default(),
        "Default" => Conf::parse(host),
        "ClusterFirst" if host_network => Conf::parse(host),
        _ => Conf::cluster(namespace),
    };
    if let Some(config) = config {
        conf.merge(config);
    }
    conf.text()
}

/// What the file says.
#[derive(Default)]
struct Conf {
    servers: Vec<String>,
    searches: Vec<String>,
    options: Vec<(String, Option<String>)>,
}

impl Conf {
    fn cluster(namespace: &str) -> Conf {
        Conf {
            servers: vec![DNS_SERVICE.to_string()],
            searches: vec![format!("{namespace}.svc.{DOMAIN}"), format!("svc.{DOMAIN}"), DOMAIN.to_owned()],
            options: vec![("ndots".to_owned(), Some("5".to_owned()))],
        }
    }

    fn parse(text: &str) -> Conf {
        let mut conf = Conf::default();
        for line in text.lines() {
            let mut words = line.split(['#', ';']).next().unwrap_or_default().split_whitespace();
            match words.next() {
                Some("nameserver") => {
                    conf.servers.extend(words.filter(|word| word.parse::<IpAddr>().is_ok()).map(Into::into));
                }
                // The last line counts.
                Some("search") => conf.searches = words.map(Into::into).collect(),
                Some("options") => conf.options.extend(words.map(|word| {
                    let (name, value) = word.split_once(':').unzip();
                    (name.unwrap_or(word).to_owned(), value.map(Into::into))
                })),
                _ => {}
            }
        }
        conf
    }

    /// What the pod says is added; an option that it names is as it says.
    fn merge(&mut self, config: &PodDNSConfig) {
        for server in config.nameservers.iter().flatten() {
            push_new(&mut self.servers, server);
        }
        for search in config.searches.iter().flatten() {
            push_new(&mut self.searches, search);
        }
        for option in config.options.iter().flatten() {
            let Some(name) = &option.name else { continue };
            self.options.retain(|(known, _)| known != name);
            self.options.push((name.clone(), option.value.clone()));
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if !self.searches.is_empty() {
            let searches: Vec<_> = self.searches.iter().take(SEARCHES_MAX).map(String::as_str).collect();
            text.push_str(&format!("search {}\n", searches.join(" ")));
        }
        for server in self.servers.iter().take(SERVERS_MAX) {
            text.push_str(&format!("nameserver {server}\n"));
        }
        if !self.options.is_empty() {
            let option = |(name, value): &(String, Option<String>)| match value.as_deref() {
                None | Some("") => name.clone(),
                Some(value) => format!("{name}:{value}"),
            };
            let options: Vec<_> = self.options.iter().map(option).collect();
            text.push_str(&format!("options {}\n", options.join(" ")));
        }
        text
    }
}

fn push_new(list: &mut Vec<String>, one: &str) {
    if !list.iter().any(|known| known == one) {
        list.push(one.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HOST: &str =
        "# made by hand\nnameserver 192.0.2.1\nsearch old\nsearch example.com\noptions edns0 ndots:2\n";

    #[test]
    fn a_pod_resolves_the_cluster_first() {
        assert_eq!(
            resolv_conf("shop", None, false, None, HOST),
            "search shop.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.0.0.10\noptions ndots:5\n"
        );
        let same = resolv_conf("shop", Some("ClusterFirstWithHostNet"), true, None, HOST);
        assert_eq!(same, resolv_conf("shop", None, false, None, HOST));
    }

    #[test]
    fn a_pod_may_resolve_as_its_machine_does() {
        let expected = "search example.com\nnameserver 192.0.2.1\noptions edns0 ndots:2\n";
        assert_eq!(resolv_conf("shop", Some("Default"), false, None, HOST), expected);
        assert_eq!(resolv_conf("shop", Some("ClusterFirst"), true, None, HOST), expected);
    }

    #[test]
    fn what_the_pod_says_is_added_to_its_policy() {
        let config: PodDNSConfig = serde_json::from_value(json!({
            "nameservers": ["10.0.0.10", "192.0.2.7"],
            "searches": ["my.dns.search.suffix"],
            "options": [{"name": "ndots", "value": "1"}, {"name": "edns0"}],
        }))
        .unwrap();
        assert_eq!(
            resolv_conf("shop", None, false, Some(&config), HOST),
            "search shop.svc.cluster.local svc.cluster.local cluster.local my.dns.search.suffix\n\
             nameserver 10.0.0.10\nnameserver 192.0.2.7\noptions ndots:1 edns0\n"
        );
        assert_eq!(
            resolv_conf("shop", Some("None"), false, Some(&config), HOST),
            "search my.dns.search.suffix\nnameserver 10.0.0.10\nnameserver 192.0.2.7\noptions ndots:1 edns0\n"
        );
    }
}
