//! What probes do to a pod.

use super::*;

fn probed(kind: &str, probe: Value) -> Value {
    let mut container = container("web");
    container[kind] = probe;
    container
}

#[test]
fn a_container_is_ready_when_its_probe_says_so() {
    let web = probed("readinessProbe", json!({"periodSeconds": 5, "failureThreshold": 2}));
    let mut world = World::new(json!({"containers": [web]}));
    let no = || Finding::Failure("connection refused".to_owned());
    world.findings.insert(("web", ProbeKind::Readiness), no());
    world.wait(6);
    assert!(world.line().starts_with("Running | web running | "), "{}", world.line());
    assert!(world.line().contains("-Ready(ContainersNotReady)"));
    let ready =
        world.status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!(ready.message.as_deref(), Some("containers with unready status: [web]"));
    world.findings.clear();
    world.wait(4);
    assert!(world.line().starts_with("Running | web running ready | "), "{}", world.line());
    world.findings.insert(("web", ProbeKind::Readiness), no());
    world.wait(5);
    assert!(
        world.line().starts_with("Running | web running ready | "),
        "once is not enough: {}",
        world.line()
    );
    world.wait(5);
    assert!(world.line().starts_with("Running | web running | "), "{}", world.line());
    assert!(world.news().contains("[web] Unhealthy: Readiness probe failed: connection refused"));
}

#[test]
fn a_container_that_is_gone_when_it_is_asked_is_not_told_of() {
    let web = probed("readinessProbe", json!({"periodSeconds": 1}));
    let mut world = World::new(json!({"containers": [web]}));
    world.deaf.insert("web");
    world.wait(2);
    world.findings.insert(("web", ProbeKind::Readiness), Finding::Errored("no container".to_owned()));
    world.wait(1);
    let told = "Readiness probe errored and resulted in unknown state: no container";
    assert!(world.news().contains(told), "while it runs it is");
    world.delete(5);
    world.wait(2);
    let news = world.news();
    assert!(!news.contains(told), "{news}");
}

#[test]
fn a_container_that_is_found_dead_is_started_again() {
    let probe = json!({"initialDelaySeconds": 3, "periodSeconds": 1, "failureThreshold": 2, "terminationGracePeriodSeconds": 4});
    let mut world = World::new(json!({"containers": [probed("livenessProbe", probe)]}));
    world.deaf.insert("web");
    world.findings.insert(("web", ProbeKind::Liveness), Finding::Failure("dead".to_owned()));
    world.wait(7);
    world.findings.clear();
    assert!(world.line().starts_with("Running | web running ready | "), "{}", world.line());
    world.wait(3);
    assert!(
        world.line().starts_with("Running | web running ready restarts=1 last=Error(137)"),
        "{}",
        world.line()
    );
    insta::assert_snapshot!(world.news(), @r#"
    0: web starts (0)
    0: [web] Pulled: Container image "busybox" already present on machine
    0: [web] Created: Created container: web
    0: [web] Started: Started container web
    3: [web] Unhealthy: Liveness probe failed: dead
    4: [web] Unhealthy: Liveness probe failed: dead
    4: [web] Killing: Container web failed liveness probe, will be restarted
    4: web TERM
    8: web KILL
    8: web starts (1)
    8: [web] Pulled: Container image "busybox" already present on machine
    8: [web] Created: Created container: web
    8: [web] Started: Started container web
    "#);
}

#[test]
fn a_dead_container_of_a_pod_that_has_one_go_fails_it() {
    let web = probed("livenessProbe", json!({"failureThreshold": 1}));
    let mut world = World::new(json!({"restartPolicy": "Never", "containers": [web]}));
    world.findings.insert(("web", ProbeKind::Liveness), Finding::Failure("dead".to_owned()));
    world.settle();
    assert!(world.line().starts_with("Failed | web Error(143) | "), "{}", world.line());
    assert!(world.news().contains("[web] Killing: Container web failed liveness probe\n"));
}

#[test]
fn the_other_probes_wait_until_it_has_started() {
    let mut web = probed("startupProbe", json!({"periodSeconds": 2, "failureThreshold": 5}));
    web["readinessProbe"] = json!({"periodSeconds": 60, "initialDelaySeconds": 1});
    web["livenessProbe"] = json!({"periodSeconds": 1, "failureThreshold": 1});
    let mut world = World::new(json!({"containers": [web]}));
    world.findings.insert(("web", ProbeKind::Startup), Finding::Failure("not yet".to_owned()));
    world.findings.insert(("web", ProbeKind::Liveness), Finding::Failure("dead".to_owned()));
    world.wait(5);
    assert!(world.line().starts_with("Running | web running | "), "{}", world.line());
    let started = |world: &World| world.status.container_statuses.as_ref().unwrap()[0].started;
    assert_eq!(started(&world), Some(false));
    world.findings.clear();
    world.wait(2);
    assert_eq!(started(&world), Some(true));
    assert!(world.line().starts_with("Running | web running ready | "), "{}", world.line());
    assert!(!world.news().contains("Liveness"));
}

#[test]
fn a_container_that_never_starts_is_started_again() {
    let web = probed("startupProbe", json!({"periodSeconds": 1, "failureThreshold": 3}));
    let mut world = World::new(json!({"containers": [web]}));
    world.findings.insert(("web", ProbeKind::Startup), Finding::Failure("not yet".to_owned()));
    world.wait(3);
    assert!(
        world.line().starts_with("Running | web running restarts=1 last=Error(143) | "),
        "{}",
        world.line()
    );
    assert!(world.news().contains("[web] Killing: Container web failed startup probe, will be restarted"));
}

#[test]
fn readiness_gates_are_others_to_open() {
    let gates = json!([{"conditionType": "example.com/open"}]);
    let mut world = World::new(json!({"readinessGates": gates, "containers": [container("web")]}));
    world.settle();
    assert!(world.line().contains("-Ready(ReadinessGatesNotReady) +ContainersReady"), "{}", world.line());
    let open = json!({"type": "example.com/open", "status": "True"});
    let mut pod = Pod::clone(world.life.pod());
    pod.status = Some(world.status.clone());
    pod.status.as_mut().unwrap().conditions.as_mut().unwrap().push(serde_json::from_value(open).unwrap());
    world.take(Report::Changed(Arc::new(pod)));
    world.settle();
    assert!(world.line().contains("+example.com/open"), "{}", world.line());
    assert!(world.line().contains("+Ready +ContainersReady"), "{}", world.line());
}
