//! `/healthz`, `/livez` and `/readyz`.
//!
//! Each check of kube-apiserver is here by its name: monitors ask for some of them by their paths. A server that answers
//! has done all that they tell of.

use super::options::Query;
use super::response::{Body, Response};

/// What is looked at before anything else, by the probes that do.
const FIRST: [(&str, &[&str]); 6] = [
    ("ping", &["healthz", "livez", "readyz"]),
    ("log", &["healthz", "livez", "readyz"]),
    ("loopback-serving-certificate", &["healthz", "livez"]),
    ("etcd", &["healthz", "livez", "readyz"]),
    ("etcd-readiness", &["readyz"]),
    ("informer-sync", &["readyz"]),
];

/// What is done once, after the start; all probes look at it.
const STARTED: [&str; 30] = [
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

/// The probes.
const PROBES: [&str; 3] = ["healthz", "livez", "readyz"];

/// The checks of a probe, in order.
fn checks(probe: &str) -> impl Iterator<Item = &'static str> {
    let first = FIRST.iter().filter(move |(_, probes)| probes.contains(&probe)).map(|(name, _)| *name);
    first.chain(STARTED).chain((probe == "readyz").then_some("shutdown"))
}

/// The paths of all checks.
pub(super) fn paths() -> impl Iterator<Item = String> {
    PROBES.into_iter().flat_map(|probe| {
        let own = checks(probe).map(move |check| format!("/{probe}/{check}"));
        std::iter::once(format!("/{probe}")).chain(own)
    })
}

/// Answers a probe, or one check of it: `readyz`, `livez/etcd`.
pub(super) fn answer(path: &str, query: &Query<'_>) -> Response {
    let (probe, check) = path.split_once('/').unwrap_or((path, ""));
    if !check.is_empty() {
        return match checks(probe).any(|one| one == check) {
            true => Response::new(200, "text/plain; charset=utf-8", Body::Full("ok".into())),
            false => Response::text(404, "404 page not found\n"),
        };
    }
    if query.get("verbose").is_none() {
        return Response::text(200, "ok");
    }
    let mut unknown = query.all("exclude");
    let mut text = String::new();
    for check in checks(probe) {
        let before = unknown.len();
        unknown.retain(|one| *one != check);
        let excluded = if unknown.len() < before { " excluded:" } else { "" };
        text += &format!("[+]{check}{excluded} ok\n");
    }
    if !unknown.is_empty() {
        unknown.sort();
        unknown.dedup();
        let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
        text += &format!("warn: some health checks cannot be excluded: no matches for {}\n", names.join(","));
    }
    text += &format!("{probe} check passed\n");
    Response::text(200, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, query: &str) -> (u16, String) {
        let response = answer(path, &Query::parse(query));
        let Body::Full(bytes) = &response.body else { panic!("a probe is answered at once") };
        (response.status.as_u16(), String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn a_probe_tells_of_its_checks_and_of_what_cannot_be_left_out() {
        assert_eq!(text("livez", ""), (200, "ok".to_owned()));
        let (code, said) = text("readyz", "verbose&exclude=etcd&exclude=none");
        assert_eq!(code, 200);
        assert!(
            said.contains("[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n[+]etcd-readiness ok\n"),
            "{said}"
        );
        let end = "no matches for \"none\"\nreadyz check passed\n";
        assert!(said.ends_with(end), "{said}");
    }

    #[test]
    fn a_check_is_one_of_its_probe() {
        assert_eq!(text("readyz/informer-sync", "").0, 200);
        assert_eq!(text("livez/informer-sync", "").0, 404);
        assert_eq!(text("livez/poststarthook/rbac/bootstrap-roles", "verbose").1, "ok");
    }
}
