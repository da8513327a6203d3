//! What a pod is called, and the names that it finds in its own files. Pure.

use k8s_openapi::api::core::v1::Pod;

/// A hostname has so many characters at most.
const NAME_MAX: usize = 63;

/// The hostname of a pod, and the domain that it is in, if any.
pub(crate) fn hostname(pod: &Pod, cluster_domain: &str) -> (String, Option<String>) {
    let spec = pod.spec.as_ref();
    let said = |text: Option<&String>| text.filter(|text| !text.is_empty()).cloned();
    if let Some(name) = said(spec.and_then(|spec| spec.hostname_override.as_ref())) {
        return (cut(&name), None);
    }
    let name = said(spec.and_then(|spec| spec.hostname.as_ref())).or_else(|| pod.metadata.name.clone());
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let domain = said(spec.and_then(|spec| spec.subdomain.as_ref()))
        .map(|subdomain| format!("{subdomain}.{namespace}.svc.{cluster_domain}"));
    (cut(&name.unwrap_or_default()), domain)
}

fn cut(name: &str) -> String {
    let end = name.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= NAME_MAX).last();
    let cut = &name[..end.unwrap_or(0)];
    if cut.len() == name.len() { cut.to_owned() } else { cut.trim_end_matches(['-', '.']).to_owned() }
}

/// The text of a pod's `/etc/hosts`. `host` is the machine's own, for pods on its network.
pub(crate) fn hosts(pod: &Pod, ips: &[String], cluster_domain: &str, host: &str) -> String {
    let spec = pod.spec.as_ref();
    let mut text = if spec.is_some_and(|spec| spec.host_network == Some(true)) {
        format!("# Kubernetes-managed hosts file (host network).\n{host}")
    } else {
        let (name, domain) = hostname(pod, cluster_domain);
        let mut text = String::from(
            "# Kubernetes-managed hosts file.\n\
             127.0.0.1\tlocalhost\n\
             ::1\tlocalhost ip6-localhost ip6-loopback\n\
             fe00::0\tip6-localnet\n\
             fe00::0\tip6-mcastprefix\n\
             fe00::1\tip6-allnodes\n\
             fe00::2\tip6-allrouters\n",
        );
        for ip in ips {
            match &domain {
                Some(domain) => text.push_str(&format!("{ip}\t{name}.{domain}\t{name}\n")),
                None => text.push_str(&format!("{ip}\t{name}\n")),
            }
        }
        text
    };
    let aliases = spec.and_then(|spec| spec.host_aliases.as_ref()).filter(|aliases| !aliases.is_empty());
    if let Some(aliases) = aliases {
        text.push_str("\n# Entries added by HostAliases.\n");
        for alias in aliases {
            let names = alias.hostnames.iter().flatten().cloned().collect::<Vec<_>>().join("\t");
            text.push_str(&format!("{}\t{names}\n", alias.ip));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_finds_itself_and_its_aliases() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "db-0", "namespace": "shop"},
            "spec": {"containers": [], "subdomain": "db", "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["a", "b"]}]},
        }))
        .unwrap();
        assert_eq!(hostname(&pod, "cluster.local").1.as_deref(), Some("db.shop.svc.cluster.local"));
        let text = hosts(&pod, &["10.244.0.2".to_owned()], "cluster.local", "");
        let end = "10.244.0.2\tdb-0.db.shop.svc.cluster.local\tdb-0\n\n# Entries added by HostAliases.\n10.1.2.3\ta\tb\n";
        assert!(text.starts_with("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"), "{text}");
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn a_long_name_is_cut_where_it_still_is_one() {
        let name = format!("{}-{}", "a".repeat(62), "b");
        let pod = Pod { metadata: serde_json::from_value(json!({"name": name})).unwrap(), ..Pod::default() };
        assert_eq!(hostname(&pod, "cluster.local").0, "a".repeat(62));
    }
}
