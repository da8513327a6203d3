//! CronJobs, and jobs that go after a while, on a server in this process.

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::World;

/// A CronJob whose time has come: it was to run every minute since the last hour.
async fn due(world: &World, spec: Value) {
    let mut cron = json!({
        "metadata": {"name": "tick"},
        "spec": {"schedule": "* * * * *", "suspend": true, "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}],
        }}}}},
    });
    for (field, value) in spec.as_object().unwrap() {
        cron["spec"][field] = value.clone();
    }
    world.create::<CronJob>(cron).await;
    came(world, 1).await;
    world.patch::<CronJob>("tick", json!({"spec": {"suspend": false}})).await;
}

/// Its last run was so many minutes ago.
async fn came(world: &World, minutes: i64) {
    let last = jiff::Timestamp::now().as_second() / 60 - minutes;
    let last = jiff::Timestamp::from_second(last * 60).unwrap().to_string();
    let status = json!({"status": {"lastScheduleTime": last}});
    let crons = world.api::<CronJob>();
    crons.patch_status("tick", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

async fn finish(world: &World, name: &str) {
    let now = jiff::Timestamp::now().to_string();
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now});
    let status = json!({"status": {
        "startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }});
    world.api::<Job>().patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

fn active(cron: &CronJob) -> usize {
    cron.status.as_ref().and_then(|status| status.active.as_ref()).map_or(0, Vec::len)
}

#[tokio::test]
async fn makes_a_job_when_it_is_time_and_sees_it_end() {
    let world = World::with(["cronjob"]).await;
    due(&world, json!({"timeZone": "Europe/Berlin"})).await;
    let jobs = world.until_all::<Job>("one", |jobs| jobs.len() == 1).await;
    let name = jobs[0].metadata.name.clone().unwrap();
    let annotations = jobs[0].metadata.annotations.clone().unwrap();
    let at = &annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    let time: jiff::Timestamp = at.parse().unwrap();
    assert!(at.ends_with("+01:00") || at.ends_with("+02:00"), "{at}");
    assert_eq!(name, format!("tick-{}", time.as_second() / 60));
    let cron = world.until::<CronJob>("tick", "one active", |cron| active(cron) == 1).await;
    assert_eq!(cron.status.unwrap().last_schedule_time.unwrap().0, time);
    finish(&world, &name).await;
    let cron = world.until::<CronJob>("tick", "none active", |cron| active(cron) == 0).await;
    assert!(cron.status.unwrap().last_successful_time.is_some());
    let told = world.stop().await;
    assert!(told.contains(&format!("Created job {name}")), "{told:?}");
    assert!(told.contains(&format!("Saw completed job: {name}, condition: Complete")), "{told:?}");
    assert_eq!(told.len(), 2, "{told:?}");
}

#[tokio::test]
async fn one_that_forbids_company_waits() {
    let world = World::with(["cronjob"]).await;
    due(&world, json!({"concurrencyPolicy": "Forbid", "schedule": "0 0 1 1 *"})).await;
    let cron = world.until::<CronJob>("tick", "there", |_| true).await;
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}});
    let running = world
        .create::<Job>(json!({
            "metadata": {"name": "running", "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": cron.metadata.uid, "controller": true,
            }]},
            "spec": {"template": template},
        }))
        .await;
    let listed = json!({"status": {"active": [{
        "apiVersion": "batch/v1", "kind": "Job", "name": "running", "namespace": "default", "uid": running.metadata.uid,
    }]}});
    let crons = world.api::<CronJob>();
    crons.patch_status("tick", &PatchParams::default(), &Patch::Merge(listed)).await.unwrap();
    came(&world, 1).await;
    world.patch::<CronJob>("tick", json!({"spec": {"schedule": "* * * * *"}})).await;
    let note = "Not starting job because prior execution is running and concurrency policy is Forbid";
    let told = || world.list::<k8s_openapi::api::core::v1::Event>();
    crate::world::eventually(&world.cluster, "told", || {
        told().iter().any(|event| event.message.as_deref() == Some(note))
    })
    .await;
    assert_eq!(world.list::<Job>().len(), 1);
    world.stop().await;
}

#[tokio::test]
async fn only_so_many_of_those_that_ended_are_kept() {
    let world = World::with(["cronjob"]).await;
    due(&world, json!({"successfulJobsHistoryLimit": 0})).await;
    let jobs = world.until_all::<Job>("one", |jobs| jobs.len() == 1).await;
    world.until::<CronJob>("tick", "one active", |cron| active(cron) == 1).await;
    finish(&world, jobs[0].metadata.name.as_deref().unwrap()).await;
    world
        .until_all::<Job>("none", |jobs| jobs.iter().all(|job| job.metadata.deletion_timestamp.is_some()))
        .await;
    world.stop().await;
}

#[tokio::test]
async fn what_came_too_long_ago_is_missed() {
    let world = World::with(["cronjob"]).await;
    due(&world, json!({"schedule": "0 0 1 1 *", "startingDeadlineSeconds": 100})).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(world.list::<Job>().is_empty());
    world.stop().await;
}

#[tokio::test]
async fn a_job_goes_when_its_time_after_the_end_is_over() {
    let world = World::with(["ttl-after-finished"]).await;
    for (name, seconds) in [("soon", 0), ("later", 1000)] {
        world
            .create::<Job>(json!({
                "metadata": {"name": name},
                "spec": {"ttlSecondsAfterFinished": seconds, "template": {"spec": {
                    "restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}],
                }}},
            }))
            .await;
        finish(&world, name).await;
    }
    let ends = |job: &Job| job.metadata.deletion_timestamp.is_some();
    world.until::<Job>("soon", "ends", ends).await;
    assert!(world.list::<Job>().iter().any(|job| !ends(job)));
    world.stop().await;
}
