use serde_json::json;

use super::super::api::Kind;
use super::*;

fn scenario(steps: Value) -> Scenario {
    serde_json::from_value(json!({"about": "a test", "steps": steps})).unwrap()
}

fn strings() -> Strings {
    Strings { folder: PathBuf::from("/folder"), bind: true, told: Arc::default() }
}

fn entry(order: u64, kind: &str, object: Value) -> Entry {
    Entry { kind: Kind::named(kind).unwrap(), order, gone: false, object }
}

/// A pod on the node of everybody, whose container was started.
fn running(order: u64, image: &str, ready: &str) -> Vec<Entry> {
    let uid = format!("uid-{order}");
    let pod = json!({
        "metadata": {"name": format!("p{order}"), "uid": uid},
        "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": image}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    });
    let event = json!({"metadata": {}, "reason": "Started", "involvedObject": {"uid": uid}});
    vec![entry(order, "pod", pod), entry(order, "event", event)]
}

fn unbound(order: u64) -> Entry {
    let pod = json!({
        "metadata": {"name": format!("p{order}"), "uid": format!("uid-{order}")},
        "spec": {"containers": [{"name": "c", "image": "busybox:ready.1"}]},
    });
    entry(order, "pod", pod)
}

#[test]
fn pods_of_templates_and_patches_have_strings_and_others_have_none() {
    let object =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "puppet/fail:3"}]}}}});
    let tied = strings().tie(&scenario(json!([])), &object);
    let spec = &tied["spec"]["template"]["spec"];
    assert_eq!(spec["containers"][0]["image"], "busybox:fail.3");
    assert_eq!(spec["volumes"][0]["hostPath"]["path"], "/folder");
    assert!(spec["containers"][0]["readinessProbe"].is_null(), "nothing changes while it runs");
    let other = json!({"spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    assert_eq!(strings().tie(&scenario(json!([])), &other), other);
}

#[test]
fn where_readiness_changes_it_is_asked_for() {
    let object = json!({"containers": [{"name": "c", "image": "puppet/ready"}]});
    let changes = scenario(json!([{"pods": {"do": "unready"}}]));
    let probe = &strings().tie(&changes, &object)["containers"][0]["readinessProbe"];
    assert_eq!(probe["exec"]["command"][2], "test ! -e /strings/$UID.unready");
    assert!(probe["initialDelaySeconds"].is_null());
    let never = json!({"containers": [{"name": "c", "image": "puppet/running"}]});
    let probe = &strings().tie(&scenario(json!([])), &never)["containers"][0]["readinessProbe"];
    assert_eq!(probe["initialDelaySeconds"], 3600, "it is never ready, and nobody says so again and again");
}

#[test]
fn a_pod_is_bound_when_all_others_are_what_they_are_to_be() {
    let strings = strings();
    let mut view = running(1, "busybox:ready.1", "False");
    view.push(unbound(2));
    assert_eq!(strings.next(&view), Next::Wait);
    let mut view = running(1, "busybox:ready.1", "True");
    view.push(unbound(2));
    assert!(
        matches!(strings.next(&view), Next::Bind(pod, node) if pod["metadata"]["name"] == "p2" && node == NODE)
    );
    view.pop();
    assert_eq!(strings.next(&view), Next::Nothing);
    view.pop();
    assert_eq!(strings.next(&view), Next::Wait, "the node has not told of it yet");
}

#[test]
fn a_program_is_told_once_how_to_end() {
    let strings = strings();
    let view = running(1, "busybox:fail.3", "True");
    assert!(matches!(strings.next(&view), Next::End(_, 3)));
    strings.lock().ended.insert("uid-1".to_owned());
    assert_eq!(strings.next(&view), Next::Wait, "it ends");
}

#[test]
fn nobody_waits_for_what_does_not_end() {
    let strings = strings();
    let deleted = |image: &str, grace: u64| {
        let mut view = running(1, image, "True");
        view[0].object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        view[0].object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        view
    };
    assert_eq!(strings.next(&deleted("busybox:ready", 30)), Next::Wait);
    assert_eq!(strings.next(&deleted("busybox:stuck", 30)), Next::Nothing);
    assert_eq!(strings.next(&deleted("busybox:ready", 0)), Next::Nothing, "a finalizer holds it");
    let mut gone = deleted("busybox:ready", 30);
    gone[0].object["spec"]["nodeName"] = json!("b.ns");
    assert_eq!(strings.next(&gone), Next::Nothing, "its node does not run");
}

#[test]
fn the_end_of_a_pod_is_waited_for_until_it_is_told() {
    let strings = strings();
    let mut view = running(1, "busybox:ready", "True");
    view[0].gone = true;
    assert_eq!(strings.next(&view), Next::Wait);
    let event = json!({"metadata": {}, "reason": "Killing", "involvedObject": {"uid": "uid-1"}});
    view.push(entry(2, "event", event));
    assert_eq!(strings.next(&view), Next::Nothing);
    view.pop();
    strings.lock().ended.insert("uid-1".to_owned());
    assert_eq!(strings.next(&view), Next::Nothing, "it had ended by itself");
}
