//! Logs on request: which run of a container is meant, and what of its log.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use hyper::body::Frame;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use windlass::Env;

use super::containers::Log;
use crate::logs::{Reader, Selection};

/// What a client asks of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// The run before the last.
    pub previous: bool,
    /// What of the log.
    pub selection: Selection,
    /// Wait for more.
    pub follow: bool,
}

impl Asked {
    /// Reads the query of a request.
    pub fn parse(query: &str) -> Result<Asked, (u16, &'static str)> {
        const UNREADABLE: (u16, &str) = (400, r#"{"message": "Unable to decode query."}"#);
        const INVALID: (u16, &str) = (422, r#"{"message": "Invalid request."}"#);
        let mut asked = Asked::default();
        let flag = |value: &str| !matches!(value, "false" | "0" | "");
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let number = || value.parse::<i64>().map_err(|_| UNREADABLE);
            match &*name {
                "follow" => asked.follow = flag(&value),
                "previous" => asked.previous = flag(&value),
                "timestamps" => asked.selection.timestamps = flag(&value),
                "tailLines" | "tail" if value == "all" => {}
                "tailLines" | "tail" => {
                    asked.selection.tail = Some(number()?.try_into().map_err(|_| INVALID)?)
                }
                "limitBytes" => match number()? {
                    limit @ 1.. => asked.selection.limit = Some(limit.unsigned_abs()),
                    _ => return Err(INVALID),
                },
                "sinceSeconds" => match number()? {
                    seconds @ 1.. => asked.selection.since_seconds = Some(seconds),
                    _ => return Err(INVALID),
                },
                "sinceTime" => {
                    asked.selection.since_time = Some(value.parse().map_err(|_| UNREADABLE)?);
                }
                _ => {}
            }
        }
        match asked.selection.since_seconds.is_some() && asked.selection.since_time.is_some() {
            true => Err(INVALID),
            false => Ok(asked),
        }
    }
}

/// Whether a pod has a container of this name, of whatever sort.
pub(super) fn has_container(pod: &Pod, name: &str) -> bool {
    pod.spec.as_ref().is_some_and(|spec| {
        spec.containers.iter().any(|container| container.name == name)
            || spec.init_containers.iter().flatten().any(|container| container.name == name)
            || spec.ephemeral_containers.iter().flatten().any(|container| container.name == name)
    })
}

/// The status of a container of a pod.
pub(super) fn status_of<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all =
        [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses];
    all.into_iter().flatten().flatten().find(|status| status.name == name)
}

/// The id of the run whose log is meant, in kubelet's words if there is none.
pub(super) fn run_of(pod: &Pod, container: &str, previous: bool) -> Result<String, String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let about = format!("container {container:?} in pod {name:?}");
    let status = status_of(pod, container).ok_or_else(|| format!("{about} is not available"))?;
    let state = status.state.clone().unwrap_or_default();
    let last = status.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    let last = last.and_then(|last| last.container_id.clone()).filter(|id| !id.is_empty());
    if previous {
        return last.ok_or_else(|| format!("previous terminated {about} not found"));
    }
    if state.running.is_some() {
        return status.container_id.clone().ok_or_else(|| format!("{about} is not available"));
    }
    if let Some(terminated) = state.terminated {
        let own = terminated.container_id.filter(|id| !id.is_empty());
        return own.or(last).ok_or_else(|| format!("{about} is terminated"));
    }
    if let Some(last) = last {
        return Ok(last);
    }
    if status.last_state.as_ref().is_some_and(|last| last.terminated.is_some()) {
        return Err(format!("{about} is terminated"));
    }
    let Some(waiting) = state.waiting else {
        return Err(format!("{about} is waiting to start - no logs yet"));
    };
    let why = match waiting.reason.as_deref().unwrap_or_default() {
        "ErrImagePull" => "image can't be pulled",
        "ImagePullBackOff" => "trying and failing to pull image",
        other => other,
    };
    Err(format!("{about} is waiting to start: {why}"))
}

/// A log, piece by piece. It ends where the log ends, or goes on with it.
pub(super) fn tell(
    env: Env,
    reader: Reader,
    log: Log,
    follow: bool,
) -> impl Stream<Item = io::Result<Frame<Bytes>>> + Send {
    // When the container has ended, what it wrote last is still to be read.
    let telling = (env, reader, log, !follow);
    futures_util::stream::unfold(telling, |(env, mut reader, mut log, mut ended)| async move {
        loop {
            match reader.next().await {
                Ok(Some(some)) if some.is_empty() => {}
                Ok(Some(some)) => {
                    return Some((Ok(Frame::data(Bytes::from(some))), (env, reader, log, ended)));
                }
                Ok(None) if reader.is_over() || ended => return None,
                Ok(None) => ended = env.within(LOOK, &mut log.ended).await.is_some(),
                Err(error) => return Some((Err(error), (env, reader, log, ended))),
            }
        }
    })
}

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: serde_json::Value) -> Pod {
        let status = serde_json::json!({
            "metadata": { "name": "p" },
            "status": { "containerStatuses": [status] },
        });
        serde_json::from_value(status).unwrap()
    }

    fn status(state: serde_json::Value, last: serde_json::Value) -> Pod {
        pod(serde_json::json!({
            "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "containerID": "windlass://now", "state": state, "lastState": last,
        }))
    }

    #[test]
    fn the_run_is_found_in_the_status() {
        use serde_json::json;
        let ended = json!({ "terminated": { "exitCode": 0, "containerID": "windlass://before" } });
        let waiting = |reason: &str| json!({ "waiting": { "reason": reason } });
        let of = |state, last| run_of(&status(state, last), "c", false);
        assert_eq!(of(json!({ "running": {} }), json!({})).unwrap(), "windlass://now");
        assert_eq!(of(ended.clone(), json!({})).unwrap(), "windlass://before");
        assert_eq!(of(waiting("CrashLoopBackOff"), ended.clone()).unwrap(), "windlass://before");
        assert_eq!(
            of(waiting("ContainerCreating"), json!({})).unwrap_err(),
            r#"container "c" in pod "p" is waiting to start: ContainerCreating"#
        );
        assert_eq!(
            of(waiting("ImagePullBackOff"), json!({})).unwrap_err(),
            r#"container "c" in pod "p" is waiting to start: trying and failing to pull image"#
        );
        let previous = run_of(&status(json!({ "running": {} }), json!({})), "c", true);
        assert_eq!(previous.unwrap_err(), r#"previous terminated container "c" in pod "p" not found"#);
        let previous = run_of(&status(json!({ "running": {} }), ended), "c", true);
        assert_eq!(previous.unwrap(), "windlass://before");
        assert!(
            run_of(&status(json!({}), json!({})), "other", false).unwrap_err().ends_with("is not available")
        );
    }

    #[test]
    fn a_query_is_read_as_kubelet_reads_it() {
        let asked =
            Asked::parse("follow=true&tailLines=5&timestamps=true&sinceSeconds=10&limitBytes=7").unwrap();
        assert!(asked.follow && asked.selection.timestamps && !asked.previous);
        assert_eq!((asked.selection.tail, asked.selection.limit), (Some(5), Some(7)));
        assert_eq!(Asked::parse("tailLines=-1").unwrap_err().0, 422);
        assert_eq!(Asked::parse("tailLines=x").unwrap_err().0, 400);
        assert_eq!(Asked::parse("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z").unwrap_err().0, 422);
    }
}
