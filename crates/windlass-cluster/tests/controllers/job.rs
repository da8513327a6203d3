//! Jobs on a server in this process.

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::World;

fn job(spec: Value) -> Value {
    let mut job = json!({
        "metadata": {"name": "work"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}],
        }}},
    });
    for (field, value) in spec.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    job
}

/// Ends all pods that have not: as `phase`.
async fn end(world: &World, phase: &str, is: impl Fn(&Pod) -> bool) {
    for pod in world.list::<Pod>() {
        let ended = matches!(
            pod.status.as_ref().and_then(|status| status.phase.as_deref()),
            Some("Succeeded" | "Failed")
        );
        if ended || !is(&pod) {
            continue;
        }
        let code = i32::from(phase == "Failed");
        let status = json!({"status": {"phase": phase, "containerStatuses": [{
            "name": "c", "image": "busybox", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "finishedAt": jiff::Timestamp::now().to_string()}},
        }]}});
        let name = pod.metadata.name.unwrap();
        world.api::<Pod>().patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }
}

fn conditions(status: &JobStatus) -> Vec<String> {
    let all = status.conditions.iter().flatten().filter(|condition| condition.status == "True");
    all.map(|condition| format!("{} {}", condition.type_, condition.reason.as_deref().unwrap_or_default()))
        .collect()
}

fn is(count: usize) -> impl Fn(&[Pod]) -> bool {
    move |pods| pods.len() == count
}

async fn finished(world: &World) -> JobStatus {
    let job = world
        .until::<Job>("work", "finished", |job| {
            let status = job.status.clone().unwrap_or_default();
            let last = conditions(&status).pop().unwrap_or_default();
            last.starts_with("Complete") || last.starts_with("Failed")
        })
        .await;
    job.status.unwrap()
}

#[tokio::test]
async fn is_complete_when_enough_pods_have_succeeded() {
    let world = World::with(["job"]).await;
    world.create::<Job>(job(json!({"completions": 3, "parallelism": 2}))).await;
    world.until_all("two at once", is(2)).await;
    end(&world, "Succeeded", |_| true).await;
    world.until_all("and one more", is(3)).await;
    end(&world, "Succeeded", |_| true).await;
    let status = finished(&world).await;
    assert_eq!(status.succeeded, Some(3));
    assert_eq!(conditions(&status), ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]);
    assert!(status.completion_time.is_some() && status.active.is_none());
    assert!(world.list::<Pod>().iter().all(|pod| pod.metadata.finalizers.is_none()), "all are counted");
    let told = world.stop().await;
    assert!(told.contains(&"Job completed".to_owned()), "{told:?}");
}

#[tokio::test]
async fn fails_after_too_many_failures() {
    let world = World::with(["job"]).await;
    world.create::<Job>(job(json!({"backoffLimit": 0, "parallelism": 2, "completions": 2}))).await;
    let pods = world.until_all("two", is(2)).await;
    let first = pods[0].metadata.name.clone();
    end(&world, "Failed", |pod| pod.metadata.name == first).await;
    // The other one never had a node: it goes at once.
    let status = finished(&world).await;
    assert_eq!(conditions(&status), ["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]);
    assert_eq!(status.failed, Some(2));
    let told = world.stop().await;
    assert!(told.contains(&"Job has reached the specified backoff limit".to_owned()), "{told:?}");
}

#[tokio::test]
async fn waits_after_a_failure() {
    let world = World::with(["job"]).await;
    world.create::<Job>(job(json!({"backoffLimit": 3}))).await;
    world.until_all("one", is(1)).await;
    end(&world, "Failed", |_| true).await;
    world.until::<Job>("work", "counted", |job| job.status.as_ref().unwrap().failed == Some(1)).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(world.list::<Pod>().len(), 1, "the next one comes after ten seconds");
    world.stop().await;
}

#[tokio::test]
async fn indexes_are_told_and_counted() {
    let world = World::with(["job"]).await;
    world.create::<Job>(job(json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3}))).await;
    let pods = world.until_all::<Pod>("three", is(3)).await;
    let mut hosts: Vec<_> = pods.iter().map(|pod| pod.spec.clone().unwrap().hostname.unwrap()).collect();
    hosts.sort();
    assert_eq!(hosts, ["work-0", "work-1", "work-2"]);
    assert!(pods[0].metadata.name.as_deref().unwrap().starts_with("work-0-"));
    let variable = &pods[0].spec.as_ref().unwrap().containers[0].env.as_ref().unwrap()[0];
    assert_eq!(variable.name, "JOB_COMPLETION_INDEX");
    end(&world, "Succeeded", |pod| pod.metadata.name.as_deref().unwrap().starts_with("work-1-")).await;
    world
        .until::<Job>("work", "one", |job| {
            job.status.as_ref().unwrap().completed_indexes.as_deref() == Some("1")
        })
        .await;
    end(&world, "Succeeded", |_| true).await;
    let status = finished(&world).await;
    assert_eq!((status.completed_indexes.as_deref(), status.succeeded), (Some("0-2"), Some(3)));
    world.stop().await;
}

#[tokio::test]
async fn an_index_has_tries_of_its_own() {
    let world = World::with(["job"]).await;
    let spec = json!({
        "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 0,
        "backoffLimit": 10,
    });
    world.create::<Job>(job(spec)).await;
    world.until_all("two", is(2)).await;
    end(&world, "Failed", |pod| pod.metadata.name.as_deref().unwrap().starts_with("work-0-")).await;
    end(&world, "Succeeded", |_| true).await;
    let status = finished(&world).await;
    assert_eq!(
        (status.failed_indexes.as_deref(), status.completed_indexes.as_deref()),
        (Some("0"), Some("1"))
    );
    assert_eq!(conditions(&status), ["FailureTarget FailedIndexes", "Failed FailedIndexes"]);
    world.stop().await;
}

#[tokio::test]
async fn is_put_aside_and_resumed() {
    let world = World::with(["job"]).await;
    world.create::<Job>(job(json!({}))).await;
    world.until_all("one", is(1)).await;
    world.patch::<Job>("work", json!({"spec": {"suspend": true}})).await;
    world.until_all("none", is(0)).await;
    let aside = |job: &Job| conditions(job.status.as_ref().unwrap()) == ["Suspended JobSuspended"];
    let suspended = world.until::<Job>("work", "suspended", aside).await;
    assert_eq!(suspended.status.unwrap().failed, None, "what was taken away did not fail");
    world.patch::<Job>("work", json!({"spec": {"suspend": false}})).await;
    world.until_all("one again", is(1)).await;
    end(&world, "Succeeded", |_| true).await;
    finished(&world).await;
    let told = world.stop().await;
    assert!(told.contains(&"Job resumed".to_owned()), "{told:?}");
}

#[tokio::test]
async fn ends_at_its_deadline() {
    let world = World::with(["job"]).await;
    world.create::<Job>(job(json!({"activeDeadlineSeconds": 1}))).await;
    let status = finished(&world).await;
    assert_eq!(conditions(&status), ["FailureTarget DeadlineExceeded", "Failed DeadlineExceeded"]);
    assert!(world.list::<Pod>().is_empty());
    world.stop().await;
}

#[tokio::test]
async fn rules_decide_what_a_failure_means() {
    let world = World::with(["job"]).await;
    let spec = json!({"backoffLimit": 5, "podFailurePolicy": {"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}},
    ]}});
    world.create::<Job>(job(spec)).await;
    let pods = world.until_all::<Pod>("one", is(1)).await;
    end(&world, "Failed", |_| true).await;
    let status = finished(&world).await;
    let name = pods[0].metadata.name.as_deref().unwrap();
    let message = status.conditions.unwrap().pop().unwrap().message.unwrap();
    assert_eq!(
        message,
        format!(
            "Container c for pod default/{name} failed with exit code 1 matching FailJob rule at index 0"
        )
    );
    world.stop().await;
}

#[tokio::test]
async fn pods_of_a_job_that_is_gone_are_let_go() {
    let world = World::with(["job", "garbagecollector"]).await;
    world.create::<Job>(job(json!({"parallelism": 2, "completions": 2}))).await;
    world.until_all("two", is(2)).await;
    world.api::<Job>().delete("work", &DeleteParams::background()).await.unwrap();
    world.until_all("none", is(0)).await;
    world.stop().await;
}
