//! How a pod ends.

use super::*;

#[test]
fn a_pod_that_is_deleted_is_asked_and_then_made_to_end() {
    let mut world = World::new(json!({"containers": [container("a"), container("b")]}));
    world.deaf.insert("b");
    world.settle();
    world.news();
    world.delete(30);
    world.settle();
    assert!(world.line().starts_with("Running | a Error(143), b running ready"), "{}", world.line());
    assert_eq!(world.finish, None);
    world.wait(30);
    assert!(world.line().starts_with("Failed | a Error(143), b Error(137) | "), "{}", world.line());
    assert_eq!(world.finish, Some(Finish::Delete));
    insta::assert_snapshot!(world.news(), @r"
    0: [a] Killing: Stopping container a
    0: [b] Killing: Stopping container b
    0: a TERM
    0: b TERM
    30: b KILL
    30: release
    ");
    world.take(Report::Gone);
    world.settle();
    assert_eq!(world.finish, Some(Finish::Forget));
}

#[test]
fn a_pod_that_ends_well_when_asked_has_succeeded() {
    let mut world = World::new(json!({"containers": [container("a")]}));
    world.deaf.insert("a");
    world.settle();
    world.delete(30);
    world.settle();
    world.exit("a", 0);
    world.settle();
    assert!(world.line().starts_with("Succeeded | a Completed(0) | "), "{}", world.line());
}

#[test]
fn the_pre_stop_hook_runs_inside_of_the_grace() {
    let mut web = container("web");
    web["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", "100"]}}});
    let mut world = World::new(json!({"containers": [web]}));
    world.hooks.insert("web");
    world.deaf.insert("web");
    world.settle();
    world.news();
    world.delete(10);
    world.wait(20);
    insta::assert_snapshot!(world.news(), @r"
    0: [web] Killing: Stopping container web
    0: web PreStop
    10: web TERM
    12: web KILL
    12: release
    ");
    let containers = world.life.pod().spec.as_ref().unwrap().containers.clone();
    let mut world = World::new(json!({"containers": containers}));
    world.hooks.insert("web");
    world.settle();
    world.news();
    world.delete(10);
    world.wait(4);
    world.hooked("web", Hook::PreStop, Err("exit status 1".to_owned()));
    world.settle();
    insta::assert_snapshot!(world.news(), @r"
    0: [web] Killing: Stopping container web
    0: web PreStop
    4: [web] FailedPreStopHook: PreStopHook failed
    4: web TERM
    4: release
    ");
}

#[test]
fn patience_can_be_taken_away() {
    let mut world = World::new(json!({"containers": [container("web")]}));
    world.deaf.insert("web");
    world.settle();
    world.delete(300);
    world.wait(5);
    world.delete(1);
    world.settle();
    world.news();
    world.wait(5);
    insta::assert_snapshot!(world.news(), @r"
    7: web KILL
    7: release
    ");
}

#[test]
fn sidecars_start_first_and_end_last() {
    let sidecar = |name: &str| json!({"name": name, "image": "busybox", "restartPolicy": "Always"});
    let mut first = sidecar("one");
    first["startupProbe"] = json!({"periodSeconds": 1});
    let init = json!([first, sidecar("two"), container("init")]);
    let mut world = World::new(json!({"initContainers": init, "containers": [container("web")]}));
    world.findings.insert(("one", ProbeKind::Startup), Finding::Failure("not yet".to_owned()));
    world.wait(1);
    assert!(world.line().starts_with("Pending | one running, two PodInitializing, init PodInitializing"));
    world.findings.clear();
    world.wait(1);
    assert!(
        world
            .line()
            .starts_with("Pending | one running ready, two running ready, init running, web PodInitializing"),
        "{}",
        world.line()
    );
    world.exit("init", 0);
    world.settle();
    assert!(world.line().starts_with(
        "Running | one running ready, two running ready, init Completed(0) ready, web running ready"
    ));
    world.exit("two", 0);
    world.settle();
    assert!(world.line().contains("two running ready restarts=1 last=Completed(0)"), "{}", world.line());
    world.deaf.insert("web");
    world.news();
    world.delete(30);
    world.wait(3);
    world.exit("web", 0);
    world.wait(1);
    insta::assert_snapshot!(world.news(), @r"
    2: [one] Killing: Stopping container one
    2: [two] Killing: Stopping container two
    2: [web] Killing: Stopping container web
    2: web TERM
    5: two TERM
    5: one TERM
    5: release
    ");
    assert!(world.line().starts_with("Succeeded | "), "{}", world.line());
}

#[test]
fn a_job_with_a_sidecar_completes() {
    let sidecar = json!({"name": "proxy", "image": "busybox", "restartPolicy": "Always"});
    let spec =
        json!({"restartPolicy": "Never", "initContainers": [sidecar], "containers": [container("work")]});
    let mut world = World::new(spec);
    world.settle();
    world.exit("work", 0);
    world.settle();
    assert!(
        world.line().starts_with("Succeeded | proxy Error(143), work Completed(0) | "),
        "{}",
        world.line()
    );
    assert_eq!(world.finish, None, "it stays for people to look at");
    world.delete(0);
    world.settle();
    assert_eq!(world.finish, Some(Finish::Delete));
}

#[test]
fn a_pod_that_is_active_for_too_long_fails() {
    let mut world = World::new(json!({"activeDeadlineSeconds": 60, "containers": [container("web")]}));
    world.wait(59);
    assert!(world.line().starts_with("Running | web running ready"), "{}", world.line());
    world.wait(1);
    assert!(world.line().starts_with("Failed DeadlineExceeded | web Error(143) | "), "{}", world.line());
    let message = "60: DeadlineExceeded: Pod was active on the node longer than the specified deadline";
    assert!(world.news().contains(message));
}

#[test]
fn a_pod_that_was_never_started_goes_at_once() {
    let mut world = World::new(json!({"containers": [container("web")]}));
    world.broken.insert("web", NotStarted::Pull("no such image".to_owned()));
    world.wait(3);
    world.delete(30);
    world.settle();
    assert_eq!(world.finish, Some(Finish::Delete));
    assert!(world.line().starts_with("Failed | web ContainerStatusUnknown(137) | "), "{}", world.line());
}

#[test]
fn a_pod_that_has_vanished_is_ended_and_forgotten() {
    let mut world = World::new(json!({"containers": [container("web")]}));
    world.settle();
    world.take(Report::Gone);
    world.settle();
    assert_eq!(world.finish, Some(Finish::Forget));
    assert!(world.news().ends_with("web TERM\n0: release"));
}

#[test]
fn a_pod_that_is_being_deleted_is_not_started_by_the_next_process() {
    let mut world = World::new(json!({"containers": [container("web")]}));
    world.settle();
    let mut pod = Pod::clone(world.life.pod());
    pod.status = Some(world.status.clone());
    pod.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(start()));
    let mut again = World::of(pod);
    again.settle();
    assert_eq!((again.runs, again.finish), (0, Some(Finish::Delete)));
    assert!(again.line().starts_with("Failed | web Unknown(255) | "), "{}", again.line());
}

#[test]
fn a_node_that_is_shut_down_gives_everybody_their_grace() {
    let mut web = container("web");
    web["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", "3"]}}});
    let mut world = World::new(json!({"containers": [web, container("deaf")]}));
    world.hooks.insert("web");
    world.deaf.insert("deaf");
    world.settle();
    world.news();
    world.take(Report::Stop);
    world.wait(3);
    world.hooked("web", Hook::PreStop, Ok(()));
    world.wait(27);
    insta::assert_snapshot!(world.news(), @r"
    0: [web] Killing: Stopping container web
    0: web PreStop
    0: [deaf] Killing: Stopping container deaf
    0: deaf TERM
    3: web TERM
    30: deaf KILL
    ");
    assert!(!world.life.is_active() && world.finish.is_none(), "nothing runs, and nothing is taken away");
}
