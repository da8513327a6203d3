//! Who is started when, and who is started again.

use super::*;

#[test]
fn a_pod_of_one_container_runs() {
    let mut world = World::new(json!({"containers": [container("web")]}));
    let turn = world.life.turn(start());
    world.status = turn.status;
    assert_eq!(
        world.line(),
        "Pending | web ContainerCreating | -PodReadyToStartContainers +Initialized -Ready(ContainersNotReady) \
         -ContainersReady(ContainersNotReady)"
    );
    turn.actions.into_iter().for_each(|action| world.act(action));
    world.settle();
    assert_eq!(
        world.line(),
        "Running | web running ready | +PodReadyToStartContainers +Initialized +Ready +ContainersReady"
    );
    assert_eq!(world.status.pod_ip.as_deref(), Some("10.244.0.2"));
    assert_eq!(world.status.observed_generation, Some(1));
    insta::assert_snapshot!(world.news(), @r#"
    0: web starts (0)
    0: [web] Pulled: Container image "busybox" already present on machine
    0: [web] Created: Created container: web
    0: [web] Started: Started container web
    "#);
    assert_eq!(world.wake, None, "a pod that is well costs nothing");
}

#[test]
fn init_containers_run_in_order() {
    let init = json!([container("one"), container("two")]);
    let mut world = World::new(json!({"initContainers": init, "containers": [container("web")]}));
    world.settle();
    assert_eq!(
        world.line(),
        "Pending | one running, two PodInitializing, web PodInitializing | +PodReadyToStartContainers \
         -Initialized(ContainersNotInitialized) -Ready(ContainersNotReady) -ContainersReady(ContainersNotReady)"
    );
    let initialized = &world.status.conditions.as_ref().unwrap()[1];
    assert_eq!(initialized.message.as_deref(), Some("containers with incomplete status: [one two]"));
    world.exit("one", 0);
    world.settle();
    assert!(world.line().starts_with("Pending | one Completed(0) ready, two running, web PodInitializing"));
    world.exit("two", 0);
    world.settle();
    assert_eq!(
        world.line(),
        "Running | one Completed(0) ready, two Completed(0) ready, web running ready | \
         +PodReadyToStartContainers +Initialized +Ready +ContainersReady"
    );
    world.exit("web", 1);
    world.settle();
    assert!(
        world.line().ends_with("+Initialized +Ready +ContainersReady"),
        "init containers do not run again"
    );
}

#[test]
fn an_init_container_that_fails_is_started_again_or_fails_the_pod() {
    let spec = json!({"initContainers": [container("one")], "containers": [container("web")]});
    let mut world = World::new(spec.clone());
    world.settle();
    world.exit("one", 3);
    world.wait(1);
    world.exit("one", 3);
    world.wait(2);
    assert!(
        world
            .line()
            .starts_with("Pending | one CrashLoopBackOff restarts=1 last=Error(3), web PodInitializing"),
        "{}",
        world.line()
    );

    let mut never = spec;
    never["restartPolicy"] = json!("Never");
    let mut world = World::new(never);
    world.settle();
    world.exit("one", 3);
    world.settle();
    assert_eq!(
        world.line(),
        "Failed | one Error(3), web PodInitializing | -PodReadyToStartContainers \
         -Initialized(ContainersNotInitialized) -Ready(PodFailed) -ContainersReady(PodFailed)"
    );
}

#[test]
fn a_container_that_crashes_waits_longer_each_time() {
    let mut world = World::new(json!({"containers": [container("web")]}));
    world.settle();
    world.exit("web", 1);
    world.settle();
    assert!(
        world.line().starts_with("Running | web running ready restarts=1 last=Error(1)"),
        "at once at first"
    );
    world.wait(5);
    world.exit("web", 2);
    world.settle();
    assert!(world.line().starts_with("Running | web Error(2) restarts=1 | "), "{}", world.line());
    world.news();
    world.wait(9);
    assert_eq!(
        world.line(),
        "Running | web CrashLoopBackOff restarts=1 last=Error(2) | +PodReadyToStartContainers +Initialized \
         -Ready(ContainersNotReady) -ContainersReady(ContainersNotReady)"
    );
    let waiting =
        world.status.container_statuses.as_ref().unwrap()[0].state.as_ref().unwrap().waiting.clone();
    let message = waiting.and_then(|waiting| waiting.message).unwrap();
    assert_eq!(message, "back-off 10s restarting failed container=web pod=web_default(u1)");
    world.wait(1);
    assert!(world.line().starts_with("Running | web running ready restarts=2 last=Error(2)"));
    world.exit("web", 2);
    world.wait(19);
    assert!(world.line().contains("CrashLoopBackOff"));
    world.wait(1);
    assert!(world.line().starts_with("Running | web running ready restarts=3"));
    world.wait(601);
    world.exit("web", 2);
    world.settle();
    assert!(
        world.line().starts_with("Running | web running ready restarts=4"),
        "ten good minutes are a new start"
    );
}

#[test]
fn policies_decide_what_an_exit_means() {
    let ends = |policy: &str, code: i32| {
        let mut world = World::new(json!({"restartPolicy": policy, "containers": [container("web")]}));
        world.settle();
        world.exit("web", code);
        world.settle();
        world.line()
    };
    let completed = "-PodReadyToStartContainers +Initialized(PodCompleted) -Ready(PodCompleted) -ContainersReady(PodCompleted)";
    assert_eq!(ends("Never", 0), format!("Succeeded | web Completed(0) | {completed}"));
    assert_eq!(ends("OnFailure", 0), format!("Succeeded | web Completed(0) | {completed}"));
    assert_eq!(
        ends("Never", 7),
        "Failed | web Error(7) | -PodReadyToStartContainers +Initialized -Ready(PodFailed) -ContainersReady(PodFailed)"
    );
    assert!(ends("OnFailure", 7).starts_with("Running | web running ready restarts=1 last=Error(7)"));
    assert!(ends("Always", 0).starts_with("Running | web running ready restarts=1 last=Completed(0)"));
}

#[test]
fn one_of_two_that_has_ended_leaves_the_other_alone() {
    let spec = json!({"restartPolicy": "Never", "containers": [container("a"), container("b")]});
    let mut world = World::new(spec);
    world.settle();
    world.exit("a", 0);
    world.settle();
    assert!(world.line().starts_with("Running | a Completed(0), b running ready | "), "{}", world.line());
    world.exit("b", 1);
    world.settle();
    assert!(world.line().starts_with("Failed | a Completed(0), b Error(1)"), "{}", world.line());
}

#[test]
fn an_image_that_is_not_there_is_looked_for_again() {
    let mut world = World::new(json!({"containers": [container("web")]}));
    world.broken.insert("web", NotStarted::Pull("no such image".to_owned()));
    world.settle();
    assert!(world.line().starts_with("Pending | web ErrImagePull | "), "{}", world.line());
    world.wait(9);
    assert!(world.line().starts_with("Pending | web ImagePullBackOff | "), "{}", world.line());
    let waiting =
        world.status.container_statuses.as_ref().unwrap()[0].state.as_ref().unwrap().waiting.clone();
    let message = waiting.and_then(|waiting| waiting.message).unwrap();
    assert_eq!(message, "Back-off pulling image \"busybox\": ErrImagePull: no such image");
    world.wait(1);
    assert!(world.line().starts_with("Pending | web ErrImagePull | "), "{}", world.line());
    world.wait(19);
    world.broken.clear();
    assert!(world.line().starts_with("Pending | web ImagePullBackOff | "), "{}", world.line());
    world.wait(1);
    assert!(world.line().starts_with("Running | web running ready | "), "{}", world.line());
    insta::assert_snapshot!(world.news(), @r#"
    0: web cannot start
    0: [web] Pulling: Pulling image "busybox"
    0: [web] Failed: Failed to pull image "busybox": no such image
    0: [web] Failed: Error: ErrImagePull
    1: [web] BackOff: Back-off pulling image "busybox"
    1: [web] Failed: Error: ImagePullBackOff
    10: web cannot start
    10: [web] Pulling: Pulling image "busybox"
    10: [web] Failed: Failed to pull image "busybox": no such image
    10: [web] Failed: Error: ErrImagePull
    11: [web] BackOff: Back-off pulling image "busybox"
    11: [web] Failed: Error: ImagePullBackOff
    30: web starts (0)
    30: [web] Pulled: Container image "busybox" already present on machine
    30: [web] Created: Created container: web
    30: [web] Started: Started container web
    "#);
}

#[test]
fn a_missing_configuration_is_waited_for() {
    let mut world = World::new(json!({"containers": [container("web"), container("other")]}));
    world
        .broken
        .insert("web", NotStarted::Config("configmap \"conf\" not found".to_owned(), Pulled::Present));
    world.settle();
    assert!(
        world.line().starts_with("Pending | other running ready, web CreateContainerConfigError | "),
        "{}",
        world.line()
    );
    world.wait(5);
    assert_eq!(world.news().matches("web cannot start").count(), 2, "it is looked for again by and by");
    world.broken.clear();
    world.take(Report::Retry);
    world.settle();
    assert!(
        world.line().starts_with("Running | other running ready, web running ready | "),
        "{}",
        world.line()
    );
}

#[test]
fn a_program_that_cannot_be_started_counts_as_a_crash() {
    let broken = |at: Timestamp| {
        let run = Started {
            id: "windlass://9".to_owned(),
            image: "busybox".to_owned(),
            image_id: "sha256:1".to_owned(),
            pulled: Pulled::Present,
            user: None,
            at,
        };
        NotStarted::Run("exec: \"nosuch\": executable file not found in $PATH".to_owned(), run)
    };
    let mut world = World::new(json!({"containers": [container("web")]}));
    world.broken.insert("web", broken(start()));
    world.wait(5);
    assert!(
        world.line().starts_with("Running | web CrashLoopBackOff restarts=1 last=StartError(128)"),
        "{}",
        world.line()
    );
    let mut world = World::new(json!({"restartPolicy": "Never", "containers": [container("web")]}));
    world.broken.insert("web", broken(start()));
    world.settle();
    assert!(world.line().starts_with("Failed | web StartError(128) | "), "{}", world.line());
}

#[test]
fn an_image_changed_in_place_starts_that_container_again_alone() {
    let spec = json!({"restartPolicy": "Never", "containers": [container("a"), container("b")]});
    let mut world = World::new(spec);
    world.settle();
    world.news();
    world.change(|pod| pod.spec.as_mut().unwrap().containers[0].image = Some("alpine".to_owned()));
    world.settle();
    assert!(
        world.line().starts_with("Running | a running ready restarts=1 last=Error(143), b running ready"),
        "{}",
        world.line()
    );
    insta::assert_snapshot!(world.news(), @r#"
    0: [a] Killing: Container a definition changed, will be restarted
    0: a TERM
    0: a starts (1)
    0: [a] Pulled: Container image "alpine" already present on machine
    0: [a] Created: Created container: a
    0: [a] Started: Started container a
    "#);
}

#[test]
fn a_post_start_hook_holds_the_next_one_up_and_kills_if_it_fails() {
    let mut web = container("a");
    web["lifecycle"] = json!({"postStart": {"exec": {"command": ["true"]}}});
    let mut world = World::new(json!({"containers": [web, container("b")]}));
    world.hooks.insert("a");
    world.settle();
    assert!(
        world.line().starts_with("Pending | a ContainerCreating, b ContainerCreating | "),
        "{}",
        world.line()
    );
    world.hooked("a", Hook::PostStart, Ok(()));
    world.settle();
    assert!(world.line().starts_with("Running | a running ready, b running ready | "), "{}", world.line());
    world.exit("a", 1);
    world.settle();
    world.news();
    world.hooked("a", Hook::PostStart, Err("it said no".to_owned()));
    world.settle();
    insta::assert_snapshot!(world.news(), @r"
    0: [a] FailedPostStartHook: PostStartHook failed
    0: [a] Killing: FailedPostStartHook
    0: a TERM
    0: [a] BackOff: Back-off restarting failed container a in pod web_default(u1)
    ");
    world.wait(1);
    assert!(world.line().contains("a CrashLoopBackOff restarts=1 last=Error(143)"), "{}", world.line());
}

#[test]
fn ephemeral_containers_start_once() {
    let mut world = World::new(json!({"containers": [container("web")]}));
    world.settle();
    world.change(|pod| {
        let debug = serde_json::from_value(json!({"name": "debug", "image": "busybox"})).unwrap();
        pod.spec.as_mut().unwrap().ephemeral_containers = Some(vec![debug]);
    });
    world.settle();
    let debug = |world: &World| said(&world.status.ephemeral_container_statuses.as_ref().unwrap()[0]);
    assert_eq!(debug(&world), "debug running");
    world.exit("debug", 1);
    world.wait(60);
    assert_eq!(debug(&world), "debug Error(1)");
    assert!(world.line().starts_with("Running | web running ready"));
}

#[test]
fn a_place_that_cannot_be_made_is_tried_again() {
    let mut world = World::new(json!({"containers": [container("web")]}));
    let turn = world.life.turn(start());
    assert_eq!(turn.actions, [Action::Prepare]);
    let note = "MountVolume.SetUp failed for volume \"conf\" : configmap \"conf\" not found".to_owned();
    world.take(Report::NotPrepared { reason: "FailedMount", note });
    let turn = world.life.turn(start());
    assert_eq!((turn.actions.len(), turn.wake), (0, Some(later(start(), Duration::from_secs(5)))));
    world.wait(5);
    assert!(world.line().starts_with("Running"), "{}", world.line());
    assert!(world.news().starts_with("0: FailedMount: MountVolume.SetUp failed for volume \"conf\""));
}

#[test]
fn a_pod_of_a_process_before_this_one_is_started_again() {
    let mut world =
        World::new(json!({"initContainers": [container("init")], "containers": [container("web")]}));
    world.settle();
    world.exit("init", 0);
    world.settle();
    let mut pod = Pod::clone(world.life.pod());
    pod.status = Some(world.status.clone());
    let mut again = World::of(pod.clone());
    again.settle();
    again.exit("init", 0);
    again.settle();
    assert_eq!(
        again.line(),
        "Running | init Completed(0) ready restarts=1, web running ready restarts=1 \
         last=Unknown(255) | +PodReadyToStartContainers +Initialized +Ready +ContainersReady"
    );
    assert!(
        again
            .news()
            .starts_with("0: SandboxChanged: Pod sandbox changed, it will be killed and re-created.\n")
    );
    pod.spec.as_mut().unwrap().restart_policy = Some("Never".to_owned());
    let mut never = World::of(pod);
    never.settle();
    assert!(
        never.line().starts_with("Failed | init Completed(0) ready, web Unknown(255)"),
        "{}",
        never.line()
    );
    assert_eq!(never.runs, 0, "it had its one go");
}
