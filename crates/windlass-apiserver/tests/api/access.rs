//! Who may: refusals in the words of the real server, and what users are told of themselves.

use serde_json::{Value, json};

use crate::world::{Answer, World};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const GROUP: &str = "rbac.authorization.k8s.io";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";
const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A request as somebody.
fn by(world: &mut World, user: &str, method: &str, path: &str, body: Value) -> Answer {
    let headers = [("impersonate-user", user), ("content-type", "application/json")];
    let text = if body.is_null() { String::new() } else { body.to_string() };
    world.ask(method, path, &headers, text)
}

fn refusal(answer: &Answer) -> String {
    answer.expect(403)["message"].as_str().unwrap().to_owned()
}

fn cluster_role(world: &mut World, name: &str, rules: Value) {
    let body = json!({"metadata": {"name": name}, "rules": rules});
    world.post(&format!("{RBAC}/clusterroles"), &body).expect(201);
}

fn bind(world: &mut World, name: &str, namespace: &str, kind: &str, role: &str, user: &str) {
    let body = json!({
        "metadata": {"name": name}, "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [{"kind": "User", "apiGroup": GROUP, "name": user}],
    });
    let path = match namespace {
        "" => format!("{RBAC}/clusterrolebindings"),
        namespace => format!("{RBAC}/namespaces/{namespace}/rolebindings"),
    };
    world.post(&path, &body).expect(201);
}

#[test]
fn refusals_say_who_may_not_do_what_where() {
    let mut world = World::new();
    let cases = [
        (
            "GET",
            CONFIG_MAPS,
            r#"configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "default""#,
        ),
        (
            "PUT",
            "/api/v1/nodes/x/status",
            r#"nodes "x" is forbidden: User "bob" cannot update resource "nodes/status" in API group "" at the cluster scope"#,
        ),
        (
            "GET",
            "/apis/apps/v1/deployments?watch=true",
            r#"deployments.apps is forbidden: User "bob" cannot watch resource "deployments" in API group "apps" at the cluster scope"#,
        ),
        ("GET", "/metrics", r#"forbidden: User "bob" cannot get path "/metrics""#),
        ("DELETE", CONFIG_MAPS, "cannot deletecollection resource"),
    ];
    for (method, path, expected) in cases {
        let told = refusal(&by(&mut world, "bob", method, path, Value::Null));
        assert!(told.contains(expected), "{told}");
    }
    let told = refusal(&by(&mut world, "b<o>b", "GET", "/metrics", Value::Null));
    assert_eq!(told, r#"forbidden: User "b&lt;o&gt;b" cannot get path "/metrics""#);
    bind(&mut world, "one", "", "ClusterRole", "none", "bob");
    bind(&mut world, "two", "default", "Role", "nothing", "bob");
    let told = refusal(&by(&mut world, "bob", "GET", CONFIG_MAPS, Value::Null));
    let missing = r#": RBAC: [clusterrole.rbac.authorization.k8s.io "none" not found, role.rbac.authorization.k8s.io "nothing" not found]"#;
    assert!(told.ends_with(missing), "{told}");
}

#[test]
fn a_binding_counts_at_once_and_only_where_it_is() {
    let mut world = World::new();
    let rules = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}]);
    cluster_role(&mut world, "reader", rules);
    bind(&mut world, "read", "default", "ClusterRole", "reader", "bob");
    by(&mut world, "bob", "GET", CONFIG_MAPS, Value::Null).expect(200);
    by(&mut world, "bob", "GET", "/api/v1/namespaces/kube-system/configmaps", Value::Null).expect(403);
    by(&mut world, "bob", "GET", "/api/v1/configmaps", Value::Null).expect(403);
    by(&mut world, "bob", "POST", CONFIG_MAPS, json!({"metadata": {"name": "a"}})).expect(403);
    by(&mut world, "ann", "GET", CONFIG_MAPS, Value::Null).expect(403);
    let rules = json!([{"op": "replace", "path": "/rules/0/verbs", "value": ["create"]}]);
    world.patch("json", &format!("{RBAC}/clusterroles/reader"), &rules).expect(200);
    by(&mut world, "bob", "GET", CONFIG_MAPS, Value::Null).expect(403);
    by(&mut world, "bob", "POST", CONFIG_MAPS, json!({"metadata": {"name": "a"}})).expect(201);
    world.delete(&format!("{RBAC}/namespaces/default/rolebindings/read")).expect(200);
    by(&mut world, "bob", "POST", CONFIG_MAPS, json!({"metadata": {"name": "b"}})).expect(403);
}

#[test]
fn no_trick_of_a_path_reaches_what_its_user_may_not_have() {
    let mut world = World::new();
    cluster_role(&mut world, "reader", json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]));
    bind(&mut world, "read", "default", "ClusterRole", "reader", "bob");
    by(&mut world, "bob", "GET", "/api/v1/namespaces/default/secrets", Value::Null).expect(200);
    for path in [
        "/api/v1/namespaces/kube-system%2fsecrets",
        "/api/v1/namespaces//secrets",
        "/api/v1%2fsecrets",
        "/api/v1/namespaces/default%2f..%2fkube-system/secrets",
        "/%61pi/v1/secrets",
        "/api/v1/watch/secrets",
        "/api/v1/namespaces/kube-system/secrets/?x=/namespaces/default/",
    ] {
        let answer = by(&mut world, "bob", "GET", path, Value::Null);
        assert!(answer.code == 403 || answer.code == 404, "{path}: {} {}", answer.code, answer.text);
        assert!(!answer.text.contains("SecretList"), "{path}");
    }
}

#[test]
fn nobody_grants_what_he_does_not_have() {
    let mut world = World::new();
    let own = json!([
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["create", "update", "patch"], "apiGroups": [GROUP], "resources": ["roles", "rolebindings", "clusterroles"]},
    ]);
    cluster_role(&mut world, "own", own);
    bind(&mut world, "own", "", "ClusterRole", "own", "eve");
    let roles = format!("{RBAC}/namespaces/default/roles");
    let role = |name: &str, verbs: &[&str]| json!({"metadata": {"name": name}, "rules": [{"verbs": verbs, "apiGroups": [""], "resources": ["pods"]}]});
    by(&mut world, "eve", "POST", &roles, role("mine", &["get"])).expect(201);
    let told = refusal(&by(&mut world, "eve", "POST", &roles, role("more", &["get", "list", "delete"])));
    assert_eq!(
        told,
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"eve\" (groups=[\"system:authenticated\"]) is attempting \
         to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"delete\"]}"
    );
    let mut aggregated = role("all", &["get"]);
    aggregated["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let told = refusal(&by(&mut world, "eve", "POST", &format!("{RBAC}/clusterroles"), aggregated));
    assert!(told.ends_with("must have cluster-admin privileges to use the aggregationRule"), "{told}");
    let binding = |role: &str| json!({"metadata": {"name": format!("to-{role}")}, "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}});
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let told = refusal(&by(&mut world, "eve", "POST", &bindings, binding("cluster-admin")));
    assert!(
        told.contains(
            "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"
        ),
        "{told}"
    );
    let missing = by(&mut world, "eve", "POST", &bindings, binding("none")).expect(404);
    assert_eq!(missing["message"], "rolebindings.rbac.authorization.k8s.io \"none\" not found");
    let may = json!([
        {"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["roles"]},
        {"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["cluster-admin"]},
    ]);
    cluster_role(&mut world, "may", may);
    bind(&mut world, "may", "", "ClusterRole", "may", "eve");
    by(&mut world, "eve", "POST", &roles, role("more", &["*"])).expect(201);
    by(&mut world, "eve", "POST", &bindings, binding("cluster-admin")).expect(201);
    by(&mut world, "eve", "POST", &bindings, binding("edit")).expect(201);
    by(&mut world, "eve", "POST", &bindings, binding("system:node")).expect(403);
}

#[test]
fn users_are_told_who_they_are_and_what_they_may() {
    let mut world = World::new();
    let who = by(&mut world, "system:serviceaccount:default:sam", "POST", SELF, json!({})).expect(201);
    assert_eq!(
        who["status"]["userInfo"],
        json!({
            "username": "system:serviceaccount:default:sam",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        })
    );
    let node = by(&mut world, "system:node:n1", "POST", SELF, json!({})).expect(201);
    assert_eq!(node["status"]["userInfo"]["groups"], json!(["system:nodes", "system:authenticated"]));

    cluster_role(&mut world, "reader", json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]));
    bind(&mut world, "read", "default", "ClusterRole", "reader", "bob");
    let asked = |namespace: &str| json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace}}});
    let own = format!("{REVIEWS}/selfsubjectaccessreviews");
    let yes = by(&mut world, "bob", "POST", &own, asked("default")).expect(201);
    let why = "RBAC: allowed by RoleBinding \"read/default\" of ClusterRole \"reader\" to User \"bob\"";
    assert_eq!(yes["status"], json!({"allowed": true, "reason": why}));
    let no = by(&mut world, "bob", "POST", &own, asked("kube-system")).expect(201);
    assert_eq!(no["status"], json!({"allowed": false}));
    let rules = format!("{REVIEWS}/selfsubjectrulesreviews");
    let told = by(&mut world, "bob", "POST", &rules, json!({"spec": {"namespace": "default"}})).expect(201);
    let pods = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
    assert!(told["status"]["resourceRules"].as_array().unwrap().contains(&pods), "{told}");
    assert_eq!(told["status"]["incomplete"], false);
}

#[test]
fn only_those_who_may_impersonate_do() {
    let mut world = World::new();
    let headers = [("impersonate-group", "team")];
    let told = world.ask("GET", "/api", &headers, "").expect(400);
    assert_eq!(
        told["message"],
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"team\"}, Extra:map[string][]string(nil)} without \
         impersonating a user name"
    );
    let headers =
        [("impersonate-user", "bob"), ("impersonate-uid", "7"), ("impersonate-extra-acme.com%2fx", "y")];
    let who = world.ask("POST", SELF, &headers, "{}").expect(201);
    let expected = json!({
        "username": "bob", "uid": "7", "groups": ["system:authenticated"], "extra": {"acme.com/x": ["y"]},
    });
    assert_eq!(who["status"]["userInfo"], expected);
}
