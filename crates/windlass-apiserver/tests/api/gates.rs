//! The gates before writes: quotas, limit ranges, levels of security, sizes.

use crate::world::World;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

fn pod(name: &str, cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}]}})
}

/// A quota, with the status that its controller writes.
fn quota(world: &mut World, hard: &Value) {
    world.post(QUOTAS, &json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).expect(201);
    let used: Value = hard.as_object().unwrap().keys().map(|name| (name.clone(), json!("0"))).collect();
    let status = json!({"status": {"hard": hard, "used": used}});
    world.patch("merge", &format!("{QUOTAS}/q/status"), &status).expect(200);
}

fn used(world: &mut World) -> Value {
    world.get(&format!("{QUOTAS}/q")).expect(200)["status"]["used"].clone()
}

#[test]
fn a_quota_counts_what_is_written_and_refuses_the_rest() {
    let mut world = World::new();
    quota(&mut world, &json!({"requests.cpu": "1", "count/configmaps": "1"}));
    world.post(PODS, &pod("a", "600m")).expect(201);
    assert_eq!(used(&mut world)["requests.cpu"], "600m");
    let refused = world.post(PODS, &pod("b", "500m")).expect(403);
    assert_eq!(
        refused["message"],
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1"
    );
    world.post(&format!("{PODS}?dryRun=All"), &pod("b", "400m")).expect(201);
    assert_eq!(used(&mut world), json!({"count/configmaps": "0", "requests.cpu": "600m"}));
    world.post(PODS, &pod("b", "400m")).expect(201);
    let silent = json!({"metadata": {"name": "c"}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
    let refused = world.post(PODS, &silent).expect(403);
    assert!(refused["message"].as_str().unwrap().ends_with("must specify requests.cpu for: c"), "{refused}");
    let managers = world.get(&format!("{QUOTAS}/q")).expect(200)["metadata"]["managedFields"].clone();
    let mut managers = managers.as_array().unwrap().iter();
    assert!(managers.any(|one| one["manager"] == "kube-apiserver" && one["subresource"] == "status"));
}

#[test]
fn a_quota_that_nobody_has_counted_yet_lets_nothing_pass() {
    let mut world = World::new();
    world.post(QUOTAS, &json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})).expect(201);
    world.post(PODS, &pod("a", "1")).expect(201);
    let status = json!({"status": {"hard": {"pods": "1"}}});
    world.patch("merge", &format!("{QUOTAS}/q/status"), &status).expect(200);
    let refused = world.post(PODS, &pod("b", "1")).expect(403);
    assert!(refused["message"].as_str().unwrap().ends_with("status unknown for quota: q, resources: pods"));
}

#[test]
fn labels_of_a_namespace_say_what_its_pods_may_be() {
    let mut world = World::new();
    let labels = json!({"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted"});
    world.patch("merge", "/api/v1/namespaces/default", &json!({"metadata": {"labels": labels}})).expect(200);
    let mut body = pod("a", "1");
    let allowed = world.post(PODS, &body);
    allowed.expect(201);
    assert!(
        allowed.warnings()[0].contains("would violate PodSecurity \\\"restricted:latest\\\""),
        "{allowed:?}"
    );
    body["metadata"]["name"] = json!("b");
    body["spec"]["hostNetwork"] = json!(true);
    let refused = world.post(PODS, &body).expect(403);
    assert_eq!(
        refused["message"],
        "pods \"b\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
    let stricter = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let told = world.patch("merge", "/api/v1/namespaces/default", &stricter);
    told.expect(200);
    assert!(told.warnings()[1].contains("a: allowPrivilegeEscalation != false"), "{told:?}");
    let wrong = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "strict"}}});
    world.patch("merge", "/api/v1/namespaces/default", &wrong).expect(422);
}

#[test]
fn a_pod_is_resized_as_far_as_limits_and_its_node_allow() {
    let mut world = World::new();
    let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}});
    world.post("/api/v1/nodes", &node).expect(201);
    let mut body = pod("a", "500m");
    body["spec"]["nodeName"] = json!("n");
    world.post(PODS, &body).expect(201);
    let size = |cpu: &str| {
        let resources = json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
        json!({"spec": {"containers": [{"name": "c", "image": "y", "resources": resources}]}})
    };
    let path = format!("{PODS}/a/resize");
    let resized = world.patch("strategic", &path, &size("1")).expect(200);
    assert_eq!(resized["spec"]["containers"][0]["resources"]["limits"]["cpu"], "1");
    assert_eq!(
        (&resized["spec"]["containers"][0]["image"], &resized["metadata"]["generation"]),
        (&json!("x"), &json!(2))
    );
    let refused = world.patch("strategic", &path, &size("3")).expect(403);
    assert!(refused["message"].as_str().unwrap().ends_with("cpu, requested: 3000, allocatable: 2000"));
    assert_eq!(refused["details"]["causes"][0]["reason"], "NodeCapacity");
    let limits = json!([{"type": "Container", "max": {"cpu": "1500m"}}]);
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": limits}});
    world.post("/api/v1/namespaces/default/limitranges", &range).expect(201);
    let refused = world.patch("strategic", &path, &size("1800m")).expect(403);
    assert!(refused["message"].as_str().unwrap().contains("maximum cpu usage per Container is 1500m"));
}

#[test]
fn a_resize_leaves_what_is_no_size() {
    let mut world = World::new();
    let refuse = |world: &mut World, name: &str, patch: Value| {
        let refused = world.patch("strategic", &format!("{PODS}/{name}/resize"), &patch).expect(422);
        let detail = "spec: Forbidden: only cpu and memory resources are mutable";
        assert_eq!(refused["message"], format!("Pod \"{name}\" is invalid: {detail}"));
    };
    let mut small = pod("a", "");
    small["spec"]["containers"][0]["resources"] = json!({});
    world.post(PODS, &small).expect(201);
    refuse(&mut world, "a", json!({"spec": {"resources": {}}}));

    let mut claims = pod("b", "500m");
    claims["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "x"}]);
    claims["spec"]["containers"][0]["resources"]["claims"] = json!([{"name": "gpu"}]);
    world.post(PODS, &claims).expect(201);
    let resources = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}});
    refuse(&mut world, "b", json!({"spec": {"containers": [{"name": "c", "resources": resources}]}}));
}

/// The plugin of runtime classes asks for a class as any client does, and what no client can ask for is its own failure.
#[test]
fn a_runtime_class_is_asked_for_by_a_name_that_can_be_one() {
    let mut world = World::new();
    let mut refusal = |class: &str, code: u16| {
        let mut pod = pod("a", "1");
        pod["spec"]["runtimeClassName"] = json!(class);
        world.post(PODS, &pod).expect(code)["message"].clone()
    };
    assert_eq!(refusal("a", 403), "pods \"a\" is forbidden: pod rejected: RuntimeClass \"a\" not found");
    assert_eq!(refusal("a/..", 500), "invalid resource name \"a/..\": [may not contain '/']");
}
