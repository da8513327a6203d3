//! What a path asks for.

use percent_encoding::percent_decode_str;

/// A container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub namespace: String,
    pub pod: String,
    /// Empty where the pod is meant.
    pub container: String,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    Pods,
    Logs(Target),
    Exec(Target),
    Attach(Target),
    Forward(Target),
}

/// Reads a path. A pod's uid, which older clients put before the container, says nothing that its name does not.
pub(super) fn route(path: &str) -> Option<Route> {
    let decode = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let parts: Vec<String> = path.trim_matches('/').split('/').map(decode).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let target = |namespace: &str, pod: &str, container: &str| {
        let owned = [namespace, pod, container].map(str::to_owned);
        let [namespace, pod, container] = owned;
        Target { namespace, pod, container }
    };
    Some(match parts[..] {
        ["healthz"] => Route::Health,
        ["pods"] => Route::Pods,
        ["containerLogs", namespace, pod, container] => Route::Logs(target(namespace, pod, container)),
        ["exec", namespace, pod, container] | ["exec", namespace, pod, _, container] => {
            Route::Exec(target(namespace, pod, container))
        }
        ["attach", namespace, pod, container] | ["attach", namespace, pod, _, container] => {
            Route::Attach(target(namespace, pod, container))
        }
        ["portForward", namespace, pod] | ["portForward", namespace, pod, _] => {
            Route::Forward(target(namespace, pod, ""))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_kubelet() {
        let target = Target { namespace: "ns".into(), pod: "p".into(), container: "c".into() };
        assert_eq!(route("/containerLogs/ns/p/c"), Some(Route::Logs(target.clone())));
        assert_eq!(route("/exec/ns/p/c"), Some(Route::Exec(target.clone())));
        assert_eq!(route("/exec/ns/p/uid/c"), Some(Route::Exec(target.clone())));
        assert_eq!(route("/attach/ns/p/c"), Some(Route::Attach(target.clone())));
        let pod = Target { container: String::new(), ..target };
        assert_eq!(route("/portForward/ns/p"), Some(Route::Forward(pod)));
        assert_eq!(route("/healthz"), Some(Route::Health));
        assert_eq!(route("/pods/"), Some(Route::Pods));
        for path in ["/", "/run/ns/p/c", "/exec/ns/p", "/containerLogs/ns"] {
            assert_eq!(route(path), None, "{path}");
        }
    }
}
