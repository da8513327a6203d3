//! What a Deployment allows: how many pods there may be, and how long it may take.

use k8s_openapi::api::apps::v1::{Deployment, RollingUpdateDeployment};

use crate::controllers::share::{Round, share};

/// How many pods it wants.
pub(super) fn replicas(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// Whether it is updated by and by.
pub(super) fn is_rolling(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("Recreate")
}

/// How many pods there may be above what is wanted.
pub(super) fn surge(deployment: &Deployment) -> i32 {
    if is_rolling(deployment) { fenceposts(deployment).0 } else { 0 }
}

/// How many pods may be missing of what is wanted.
pub(super) fn unavailable(deployment: &Deployment) -> i32 {
    let replicas = replicas(deployment);
    if is_rolling(deployment) { fenceposts(deployment).1.min(replicas) } else { 0 }
}

/// How many seconds may go by without progress; `None` where nobody counts.
pub(super) fn deadline(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)
}

/// How many old sets are kept; `None` keeps all.
pub(super) fn history(deployment: &Deployment) -> Option<usize> {
    let limit = deployment.spec.as_ref()?.revision_history_limit.filter(|limit| *limit != i32::MAX)?;
    Some(limit.try_into().unwrap_or_default())
}

/// Both together: where rounding leaves room for neither, one may be missing, so that something can move.
fn fenceposts(deployment: &Deployment) -> (i32, i32) {
    let rolling: Option<&RollingUpdateDeployment> = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.strategy.as_ref())
        .and_then(|strategy| strategy.rolling_update.as_ref());
    let replicas = replicas(deployment);
    let surge = share(rolling.and_then(|rolling| rolling.max_surge.as_ref()), replicas, Round::Up);
    let missing = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
    let unavailable = share(missing, replicas, Round::Down);
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limits(replicas: i32, surge: &str, unavailable: &str) -> (i32, i32) {
        let deployment: Deployment = serde_json::from_value(json!({"spec": {
            "replicas": replicas, "selector": {}, "template": {},
            "strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
        }}))
        .unwrap();
        (super::surge(&deployment), super::unavailable(&deployment))
    }

    #[test]
    fn something_can_always_move() {
        assert_eq!(limits(10, "25%", "25%"), (3, 2));
        assert_eq!(limits(1, "25%", "25%"), (1, 0));
        assert_eq!(limits(2, "0%", "1%"), (0, 1));
        assert_eq!(limits(1, "0%", "100%"), (0, 1));
        assert_eq!(limits(0, "0%", "10%"), (0, 0));
    }
}
