//! Who may: random roles and bindings, and questions about them.
//!
//! The real server hears of roles and bindings a little after they are written, of each kind on its own. So every policy ends
//! with a mark of each kind, and the questions begin when the marks are known.

use serde_json::{Value, json};

use crate::rng::Rng;
use crate::sequence::{Step, Until};

const API: &str = "/apis/rbac.authorization.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";
const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

const VERBS: [&str; 9] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"];
const GROUPS: [&str; 4] = ["", "apps", "*", "batch"];
const RESOURCES: [&str; 9] = [
    "configmaps",
    "secrets",
    "pods",
    "pods/log",
    "*/scale",
    "deployments",
    "*",
    "deployments/status",
    "*/status",
];
const PATHS: [&str; 6] = ["/metrics", "/logs/*", "*", "/api*", "/healthz", "/openapi/v3"];
const NAMES: [&str; 2] = ["a", "b"];

/// One to three of them, each once.
fn some<'a>(rng: &mut Rng, all: &[&'a str]) -> Vec<&'a str> {
    let mut out = Vec::new();
    for _ in 0..=rng.below(3) {
        let one = rng.pick(all);
        if !out.contains(&one) {
            out.push(one);
        }
    }
    out
}

fn rule(rng: &mut Rng, cluster: bool) -> Value {
    if cluster && rng.chance(20) {
        return json!({"verbs": some(rng, &["get", "post", "*"]), "nonResourceURLs": some(rng, &PATHS)});
    }
    let mut rule = json!({
        "verbs": some(rng, &VERBS), "apiGroups": some(rng, &GROUPS), "resources": some(rng, &RESOURCES),
    });
    if rng.chance(25) {
        rule["resourceNames"] = json!(some(rng, &NAMES));
    }
    rule
}

fn rules(rng: &mut Rng, cluster: bool) -> Value {
    (0..rng.below(4)).map(|_| rule(rng, cluster)).collect()
}

/// The users of a sequence are its own, since bindings of the cluster are everybody's.
fn user(rng: &mut Rng) -> &'static str {
    rng.pick(&["{id}-ann", "{id}-bob", "system:serviceaccount:{ns}:sam", "system:serviceaccount:{ns}x:sam"])
}

fn subject(rng: &mut Rng, local: bool) -> Value {
    match rng.below(4) {
        0 => json!({"kind": "Group", "apiGroup": GROUP, "name": "{id}-team"}),
        1 if local && rng.chance(50) => json!({"kind": "ServiceAccount", "name": "sam"}),
        1 => json!({"kind": "ServiceAccount", "name": "sam", "namespace": rng.pick(&["{ns}", "{ns}x"])}),
        _ => json!({"kind": "User", "apiGroup": GROUP, "name": rng.pick(&["{id}-ann", "{id}-bob"])}),
    }
}

pub(super) fn role(name: &str, rules: Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

pub(super) fn binding(name: &str, kind: &str, role: &str, subjects: Value) -> Value {
    json!({
        "metadata": {"name": name}, "subjects": subjects,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
    })
}

pub(super) fn here(plural: &str) -> String {
    format!("{API}/namespaces/{{ns}}/{plural}")
}

pub(super) fn everywhere(plural: &str) -> String {
    format!("{API}/{plural}")
}

/// Roles and bindings; some bindings are to roles that are not there.
fn policy(rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    for name in NAMES {
        if rng.chance(85) {
            let body = role(&format!("{{id}}-{name}"), rules(rng, true));
            steps.push(Step::with("POST", everywhere("clusterroles"), body));
        }
        if rng.chance(75) {
            steps.push(Step::with("POST", here("roles"), role(name, rules(rng, false))));
        }
    }
    for index in 0..=rng.below(3) {
        let subjects: Value = (0..=rng.below(2)).map(|_| subject(rng, false)).collect();
        let role = rng.pick(&["{id}-a", "{id}-b"]);
        let body = binding(&format!("{{id}}-{index}"), "ClusterRole", role, subjects);
        steps.push(Step::with("POST", everywhere("clusterrolebindings"), body));
    }
    for index in 0..=rng.below(3) {
        let subjects: Value = (0..=rng.below(2)).map(|_| subject(rng, true)).collect();
        let (kind, role) = if rng.chance(50) {
            ("ClusterRole", rng.pick(&["{id}-a", "{id}-b"]))
        } else {
            ("Role", rng.pick(&NAMES))
        };
        let body = binding(&format!("{index}"), kind, role, subjects);
        steps.push(Step::with("POST", here("rolebindings"), body));
    }
    steps
}

/// What comes after is asked when the server knows what came before.
pub(super) fn settled(mark: &str) -> Vec<Step> {
    let rules = || json!([{"verbs": ["mark"], "apiGroups": [""], "resources": ["marks"]}]);
    let subjects = |who: &str| json!([{"kind": "User", "apiGroup": GROUP, "name": who}]);
    let (all, local) = (format!("{{id}}-{mark}-all"), format!("{{id}}-{mark}-local"));
    let asked = |user: &str| {
        let spec = json!({
            "user": user, "resourceAttributes": {"verb": "mark", "resource": "marks", "namespace": "{ns}"},
        });
        let mut step = Step::with("POST", format!("{REVIEWS}/subjectaccessreviews"), json!({"spec": spec}));
        step.until = Some(Until { status: 201, at: "/status/allowed".into(), is: true.into() });
        step.quiet()
    };
    vec![
        Step::with("POST", everywhere("clusterroles"), role(&all, rules())).quiet(),
        Step::with(
            "POST",
            everywhere("clusterrolebindings"),
            binding(&all, "ClusterRole", &all, subjects(&all)),
        )
        .quiet(),
        Step::with("POST", here("roles"), role(mark, rules())).quiet(),
        Step::with("POST", here("rolebindings"), binding(mark, "Role", mark, subjects(&local))).quiet(),
        asked(&all),
        asked(&local),
    ]
}

fn resource_attributes(rng: &mut Rng) -> Value {
    let mut asked = json!({
        "verb": rng.pick(&VERBS[..8]), "group": rng.pick(&["", "apps"]),
        "resource": rng.pick(&["configmaps", "secrets", "pods", "deployments"]),
    });
    if rng.chance(70) {
        asked["namespace"] = json!(rng.pick(&["{ns}", "{ns}", "default"]));
    }
    if rng.chance(40) {
        asked["name"] = json!(rng.pick(&["a", "b", "c"]));
    }
    if rng.chance(30) {
        asked["subresource"] = json!(rng.pick(&["status", "scale", "log"]));
    }
    asked
}

fn spec(rng: &mut Rng) -> Value {
    if rng.chance(20) {
        let path = rng.pick(&["/metrics", "/logs/a", "/api", "/apis", "/healthz", "/openapi/v3", "/logs"]);
        return json!({"nonResourceAttributes": {"verb": rng.pick(&["get", "post"]), "path": path}});
    }
    json!({"resourceAttributes": resource_attributes(rng)})
}

/// A question as the administrator asks it of others.
fn question(rng: &mut Rng) -> Step {
    let mut spec = spec(rng);
    if rng.chance(85) {
        spec["user"] = json!(user(rng));
    }
    if rng.chance(40) {
        spec["groups"] = json!(some(rng, &["{id}-team", "system:authenticated", "nobody"]));
    }
    if rng.chance(3) {
        spec["groups"] = json!(["system:masters"]);
    }
    if rng.chance(4) {
        spec["resourceAttributes"] =
            json!({"verb": "get", "fieldSelector": {"rawSelector": rng.pick(&["a=b", "a", ""])}});
    }
    if rng.chance(15) {
        let path = format!("{REVIEWS}/namespaces/{{ns}}/localsubjectaccessreviews");
        return Step::with("POST", path, json!({"spec": spec}));
    }
    Step::with("POST", format!("{REVIEWS}/subjectaccessreviews"), json!({"spec": spec}))
}

fn speaking_as(step: Step, rng: &mut Rng) -> Step {
    let step = step.header("impersonate-user", user(rng));
    if rng.chance(30) { step.header("impersonate-group", "{id}-team") } else { step }
}

/// SubjectAccessReviews over a policy, and again after it has changed.
pub fn decide(rng: &mut Rng) -> Vec<Step> {
    let mut steps = policy(rng);
    steps.extend(settled("one"));
    let questions: Vec<Step> = (0..6).map(|_| question(rng)).collect();
    steps.extend(questions.clone());
    if rng.chance(60) {
        let name = rng.pick(&NAMES);
        steps.push(match rng.below(4) {
            0 => Step::new("DELETE", format!("{}/{{id}}-0", everywhere("clusterrolebindings"))),
            1 => Step::new("DELETE", format!("{}/{name}", here("roles"))),
            2 => {
                let own = format!("{{id}}-{name}");
                let body = role(&own, rules(rng, true));
                Step::with("PUT", format!("{}/{own}", everywhere("clusterroles")), body)
            }
            _ => {
                let subjects: Value = (0..=rng.below(2)).map(|_| subject(rng, true)).collect();
                Step::patch("merge", format!("{}/0", here("rolebindings")), json!({"subjects": subjects}))
            }
        });
        steps.extend(settled("two"));
        steps.extend(questions);
    }
    steps
}

/// What users are told of themselves.
pub fn told(rng: &mut Rng) -> Vec<Step> {
    let mut steps = policy(rng);
    steps.extend(settled("one"));
    for _ in 0..4 {
        let step = match rng.below(3) {
            0 => {
                let body = json!({"spec": {"namespace": rng.pick(&["{ns}", "{ns}", "default", ""])}});
                Step::with("POST", format!("{REVIEWS}/selfsubjectrulesreviews"), body)
            }
            1 => Step::with("POST", SELF, json!({})),
            _ => {
                Step::with("POST", format!("{REVIEWS}/selfsubjectaccessreviews"), json!({"spec": spec(rng)}))
            }
        };
        steps.push(speaking_as(step, rng));
    }
    steps
}

fn request(rng: &mut Rng) -> Step {
    let plural = rng.pick(&["configmaps", "secrets"]);
    let all = format!("/api/v1/namespaces/{{ns}}/{plural}");
    let name = rng.pick(&["a", "b", "c"]);
    match rng.below(10) {
        0 => Step::with("POST", all, json!({"metadata": {"name": name}})),
        1 => Step::new("DELETE", format!("{all}/{name}")),
        2 => Step::new("DELETE", all),
        3 => Step::with("PUT", format!("{all}/{name}"), json!({"metadata": {"name": name}})),
        4 => Step::patch("merge", format!("{all}/{name}"), json!({"metadata": {"labels": {"x": "y"}}})),
        5 => Step::new("GET", format!("{all}?fieldSelector=metadata.name%3D{name}")),
        6 => Step::new(
            "GET",
            rng.pick(&["/api", "/metricz", "/healthz", "/openapi/v3", "/logs/a", "/version"]),
        ),
        7 => Step::new("GET", format!("/api/v1/{plural}?limit=1&labelSelector=none%3D{{id}}")),
        8 => Step::new("GET", all),
        _ => Step::new("GET", format!("{all}/{name}")),
    }
}

/// Requests of users, who may or may not.
pub fn requests(rng: &mut Rng) -> Vec<Step> {
    let mut steps = policy(rng);
    steps.push(Step::with("POST", "/api/v1/namespaces/{ns}/configmaps", json!({"metadata": {"name": "a"}})));
    steps.push(Step::with("POST", "/api/v1/namespaces/{ns}/secrets", json!({"metadata": {"name": "b"}})));
    steps.extend(settled("one"));
    steps.extend((0..6).map(|_| {
        let step = request(rng);
        speaking_as(step, rng)
    }));
    steps
}

/// Users who write roles and bindings: nobody grants what he does not have.
pub fn escalate(rng: &mut Rng) -> Vec<Step> {
    let own = if rng.chance(15) {
        json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}])
    } else {
        let mut own = rules(rng, true);
        let all = own.as_array_mut().expect("rules are a list");
        let kinds = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];
        all.push(
            json!({"verbs": ["create", "update", "patch", "get"], "apiGroups": [GROUP], "resources": kinds}),
        );
        if rng.chance(25) {
            let verb = rng.pick(&["escalate", "bind", "*"]);
            let mut more = json!({"verbs": [verb], "apiGroups": [GROUP], "resources": some(rng, &kinds)});
            if rng.chance(40) {
                more["resourceNames"] = json!(["{id}-a", "a"]);
            }
            all.push(more);
        }
        own
    };
    let me = json!([{"kind": "User", "apiGroup": GROUP, "name": "{id}-eve"}]);
    let mut steps = vec![
        Step::with("POST", everywhere("clusterroles"), role("{id}-eve", own)),
        Step::with("POST", everywhere("clusterroles"), role("{id}-a", rules(rng, true))),
        Step::with("POST", here("roles"), role("a", rules(rng, false))),
        Step::with(
            "POST",
            everywhere("clusterrolebindings"),
            binding("{id}-eve", "ClusterRole", "{id}-eve", me.clone()),
        ),
    ];
    if rng.chance(20) {
        let lost = binding("{id}-lost", "ClusterRole", "{id}-lost", me);
        steps.push(Step::with("POST", everywhere("clusterrolebindings"), lost));
    }
    steps.extend(settled("one"));
    for index in 0..4 {
        let subjects = json!([{"kind": "User", "apiGroup": GROUP, "name": "somebody"}]);
        let step = match rng.below(7) {
            0 => Step::with("POST", here("roles"), role(&format!("r{index}"), rules(rng, false))),
            1 => {
                let mut body = role(&format!("{{id}}-r{index}"), rules(rng, true));
                if rng.chance(30) {
                    body["aggregationRule"] =
                        json!({"clusterRoleSelectors": [{"matchLabels": {"x": "{id}"}}]});
                }
                Step::with("POST", everywhere("clusterroles"), body)
            }
            2 => {
                let (kind, name) = if rng.chance(50) {
                    ("Role", "a")
                } else {
                    ("ClusterRole", rng.pick(&["{id}-a", "{id}-none", "view"]))
                };
                Step::with("POST", here("rolebindings"), binding(&format!("b{index}"), kind, name, subjects))
            }
            3 => {
                let name = rng.pick(&["{id}-a", "{id}-none", "system:discovery"]);
                let body = binding(&format!("{{id}}-b{index}"), "ClusterRole", name, subjects);
                Step::with("POST", everywhere("clusterrolebindings"), body)
            }
            4 => Step::with("PUT", format!("{}/a", here("roles")), role("a", rules(rng, false))),
            5 => Step::patch(
                "merge",
                format!("{}/{{id}}-a", everywhere("clusterroles")),
                match rng.chance(50) {
                    true => json!({"rules": rules(rng, true)}),
                    false => json!({"metadata": {"finalizers": ["example.com/one"]}}),
                },
            ),
            _ => Step::patch(
                "merge",
                format!("{}/a", here("roles")),
                json!({"metadata": {"labels": {"x": "y"}}}),
            ),
        };
        steps.push(step.header("impersonate-user", "{id}-eve"));
    }
    // Nobody else is to trip over it.
    let free = json!({"metadata": {"finalizers": null}});
    steps.push(Step::patch("merge", format!("{}/{{id}}-a", everywhere("clusterroles")), free).quiet());
    steps
}

/// An account with a token, and what it may.
fn account(rng: &mut Rng, own: Value) -> Vec<Step> {
    let me = json!([{"kind": "ServiceAccount", "name": "imp", "namespace": "{ns}"}]);
    let mut steps = vec![
        Step::with("POST", "/api/v1/namespaces/{ns}/serviceaccounts", json!({"metadata": {"name": "imp"}}))
            .quiet(),
        Step::with("POST", "/api/v1/namespaces/{ns}/serviceaccounts/imp/token", json!({"spec": {}}))
            .capture("tok", "/status/token")
            .quiet(),
        Step::with("POST", everywhere("clusterroles"), role("{id}-imp", own)),
    ];
    steps.push(match rng.chance(70) {
        true => Step::with(
            "POST",
            everywhere("clusterrolebindings"),
            binding("{id}-imp", "ClusterRole", "{id}-imp", me),
        ),
        false => Step::with("POST", here("rolebindings"), binding("imp", "ClusterRole", "{id}-imp", me)),
    });
    steps.extend(settled("one"));
    steps
}

const AUTHENTICATION: &str = "authentication.k8s.io";

/// An account that speaks as others, in the old way and in the new ones.
pub fn impersonate(rng: &mut Rng) -> Vec<Step> {
    let modes = ["user-info", "serviceaccount", "arbitrary-node"];
    let mut own = Vec::new();
    for _ in 0..=rng.below(4) {
        let mut rule = if rng.chance(60) {
            let what = some(rng, &["users", "groups", "serviceaccounts"]);
            json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": what})
        } else if rng.chance(50) {
            let what = some(rng, &["uids", "userextras/scopes", "userextras/acme.com/x", "userextras", "*"]);
            json!({"verbs": ["impersonate"], "apiGroups": [AUTHENTICATION], "resources": what})
        } else {
            let mode = rng.pick(&modes);
            own.push(json!({
                "verbs": [format!("impersonate-on:{mode}:{}", rng.pick(&["create", "get", "list"]))],
                "apiGroups": ["*"], "resources": ["*"],
            }));
            let what = some(rng, &["users", "groups", "serviceaccounts", "nodes", "uids", "*"]);
            json!({"verbs": [format!("impersonate:{mode}")], "apiGroups": [AUTHENTICATION], "resources": what})
        };
        if rng.chance(40) {
            rule["resourceNames"] = json!(some(rng, &["ann", "team", "sam", "n1", "7", "view"]));
        }
        own.push(rule);
    }
    let mut steps = account(rng, json!(own));
    for _ in 0..5 {
        let step = match rng.below(4) {
            0 => Step::new("GET", "/api/v1/namespaces/{ns}/configmaps"),
            1 => Step::new("GET", "/api"),
            _ => Step::with("POST", SELF, json!({})),
        };
        let mut step = step.header("authorization", "Bearer {tok}");
        let wanted = [
            "ann",
            "bob",
            "system:serviceaccount:{ns}x:sam",
            "system:serviceaccount:a:b:c",
            "system:node:n1",
            "system:node:N_1",
            "system:anonymous",
            "system:masters",
        ];
        if rng.chance(93) {
            step = step.header("impersonate-user", rng.pick(&wanted));
        }
        if rng.chance(25) {
            let group =
                rng.pick(&["team", "system:masters", "system:unauthenticated", "system:authenticated"]);
            step = step.header("impersonate-group", group);
        }
        if rng.chance(15) {
            step = step.header("impersonate-uid", "7");
        }
        if rng.chance(15) {
            let key = rng.pick(&["scopes", "acme.com%2fx", "acme.com%2fX%zz"]);
            step = step.header(&format!("impersonate-extra-{key}"), "view");
        }
        steps.push(step);
    }
    steps
}

/// Tokens that are nearly one.
pub fn tokens(rng: &mut Rng) -> Vec<Step> {
    let own = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}]);
    let mut steps = account(rng, own);
    for _ in 0..6 {
        let presented = rng.pick(&[
            "Bearer {tok}",
            "bEARER {tok}",
            "Bearer  {tok}",
            "Bearer {tok} more",
            "Bearer {tok}x",
            "Bearer x{tok}",
            "Bearer {tok}.",
            "Bearer .{tok}",
            "Basic {tok}",
            "Token {tok}",
            "{tok}",
            "Bearer",
            "Bearer ..",
            "Bearer eyJhbGciOiJub25lIn0.e30.",
            "Bearer,{tok}",
        ]);
        let path = rng.pick(&[
            "/api/v1/namespaces/{ns}/configmaps",
            "/api/v1/namespaces/{ns}/secrets",
            "/api",
            "/version",
            "/metrics",
        ]);
        let step = Step::new("GET", path).header("authorization", presented);
        // The figures of a server are its own.
        steps.push(if path == "/metrics" && presented.contains("{tok}") { step.quiet() } else { step });
    }
    steps
}

/// Paths with tricks, asked by somebody who may read ConfigMaps in one namespace: never more than the real server gives.
pub fn paths(rng: &mut Rng) -> Vec<Step> {
    let mut own = vec![json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]})];
    if rng.chance(40) {
        own.push(json!({"verbs": ["get"], "nonResourceURLs": some(rng, &["/api/*", "/logs", "//*", "/version/*"])}));
    }
    if rng.chance(30) {
        own.push(json!({"verbs": ["get"], "apiGroups": [""], "resources": some(rng, &["namespaces", "", "..", "pods/log"])}));
    }
    let mut steps = account(rng, json!(own));
    for _ in 0..7 {
        let words: Vec<&str> = [
            rng.pick(&[
                "/api/v1",
                "/api/v1",
                "/api/v1",
                "//api/v1",
                "/api//v1",
                "/%61pi/v1",
                "/API/v1",
                "/api/v1/.",
                "/api%2fv1",
            ]),
            rng.pick(&[
                "/namespaces",
                "/namespaces",
                "/namespaces",
                "/Namespaces",
                "//namespaces",
                "/watch/namespaces",
                "/proxy/namespaces",
                "%2fnamespaces",
            ]),
            rng.pick(&[
                "/{ns}",
                "/{ns}",
                "/{ns}",
                "/kube-node-lease",
                "/",
                "/{ns}/../kube-node-lease",
                "/{ns}%2f",
                "/kube-node-lease%2f..%2f{ns}",
                "%2f{ns}",
            ]),
            rng.pick(&[
                "/configmaps",
                "/configmaps",
                "/secrets",
                "%2fsecrets",
                "/ConfigMaps",
                "//configmaps",
                "/configmaps/",
                "/configmaps%2f..%2fsecrets",
                "/status",
                "/configmaps;secrets",
            ]),
            rng.pick(&[
                "",
                "",
                "",
                "/a",
                "/..",
                "/%2e%2e",
                "/a/status",
                "?watch=false",
                "?fieldSelector=metadata.name%3Da",
                "/a%00",
                "%20",
                "/",
            ]),
        ]
        .into();
        let mut path = words.concat();
        // Without a namespace it may be a list of everybody's objects, of which there are others on each server.
        if words[2] == "/" {
            path = path.replace("?fieldSelector=metadata.name%3Da", "");
            path += if path.contains('?') { "&" } else { "?" };
            path += "fieldSelector=metadata.name%3Dnobody";
        }
        let method = rng.pick(&["GET", "GET", "GET", "HEAD", "DELETE", "OPTIONS", "PUT"]);
        let step = match method {
            "PUT" => Step::with("PUT", path, json!({"metadata": {"name": "a"}})),
            _ => Step::new(method, path),
        };
        steps.push(step.header("authorization", "Bearer {tok}"));
    }
    steps
}

/// Who may approve and sign certificates.
pub fn signers(rng: &mut Rng) -> Vec<Step> {
    const CSR: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let names = some(
        rng,
        &["example.com/one", "example.com/*", "example.org/*", "kubernetes.io/kube-apiserver-client"],
    );
    let mut own = vec![json!({
        "verbs": ["get", "update", "patch", "create"], "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"],
    })];
    own.push(json!({
        "verbs": some(rng, &["approve", "sign"]), "apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
        "resourceNames": names,
    }));
    let signer = rng.pick(&["example.com/one", "example.com/two", "kubernetes.io/kube-apiserver-client"]);
    let me = json!([{"kind": "User", "apiGroup": GROUP, "name": "{id}-amy"}]);
    let request = json!({
        "metadata": {"name": "{id}-csr"},
        "spec": {"signerName": signer, "request": REQUEST, "usages": ["client auth", "digital signature"]},
    });
    // Each says something else: whether it is a change depends on the second in which it is said, otherwise.
    let verdict = |kind: &str, turn: usize| {
        let message = format!("m{turn}");
        json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "Asked", "message": message}]}})
    };
    let mut steps = vec![
        Step::with("POST", everywhere("clusterroles"), role("{id}-amy", json!(own))),
        Step::with(
            "POST",
            everywhere("clusterrolebindings"),
            binding("{id}-amy", "ClusterRole", "{id}-amy", me),
        ),
    ];
    steps.extend(settled("one"));
    steps.push(
        Step::with("POST", CSR, request)
            .header("impersonate-user", "{id}-amy")
            .header("impersonate-uid", "u-1")
            .header("impersonate-extra-acme.com%2fx", "y"),
    );
    for turn in 0..3 {
        let (sub, body) = match rng.below(4) {
            0 => ("/status", json!({"status": {"certificate": CERTIFICATE}})),
            1 => ("/status", verdict("Failed", turn)),
            2 => ("", json!({"metadata": {"labels": {"x": "y"}}})),
            _ => ("/approval", verdict(rng.pick(&["Approved", "Denied"]), turn)),
        };
        let step = Step::patch("merge", format!("{CSR}/{{id}}-csr{sub}"), body);
        steps.push(if rng.chance(80) { step.header("impersonate-user", "{id}-amy") } else { step });
    }
    steps
}

/// A request for a certificate of the user `amy` of the group `devs`.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFTk1Bc0dBMVVFQ2d3RVpHVjJjekVNTUFvR0ExVUVBd3dEWVcxNU1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVWQ2JMaFg5ZG5SUURLZC9DMFhwVlZsbmR1VDNibERLNmMvRHF1S0FCCmNCaldidmdPRjhQOHVldHFMVS9tZksxVUN0NHBkVXNWdzFIZ0o0Z0Q4SnJhaXFBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJUUNKVUdUZUVPdTdaOWZZbjVxOUdSVWJ3WlE1TTIzR09CRmNzSTFPOFVpaUZBSWdRVWpWK0gyYwpnWDZPdi9yMk1oZi9mK0owK3YxeFdYZkJYNWVFbjd2NDlBOD0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";
/// Some certificate.
const CERTIFICATE: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJrakNDQVRlZ0F3SUJBZ0lVWmtXR3RhUE1oSTNnZzFCcW5mVWtXeFdMZ25nd0NnWUlLb1pJemowRUF3SXcKSFRFTk1Bc0dBMVVFQ2d3RVpHVjJjekVNTUFvR0ExVUVBd3dEWVcxNU1DQVhEVEkyTVRFeE5qQTJNamsxTUZvWQpEekl4TWpZeE1ESXpNRFl5T1RVd1dqQWRNUTB3Q3dZRFZRUUtEQVJrWlhaek1Rd3dDZ1lEVlFRRERBTmhiWGt3CldUQVRCZ2NxaGtqT1BRSUJCZ2dxaGtqT1BRTUJCd05DQUFSVUpzdUZmMTJkRkFNcDM4TFJlbFZXV2QyNVBkdVUKTXJwejhPcTRvQUZ3R05adStBNFh3L3k1NjJvdFQrWjhyVlFLM2lsMVN4WERVZUFuaUFQd210cUtvMU13VVRBZApCZ05WSFE0RUZnUVVFRmM4UzRnaFkvaEllcmdNdUIySlQ0QnovOEl3SHdZRFZSMGpCQmd3Rm9BVUVGYzhTNGdoClkvaEllcmdNdUIySlQ0QnovOEl3RHdZRFZSMFRBUUgvQkFVd0F3RUIvekFLQmdncWhrak9QUVFEQWdOSkFEQkcKQWlFQTV5ZXFkWUF0TFZBZkJWZjZXRWk2a093WCtIdUNKY0NEcDhKa1J0ejZIamtDSVFDRTVvTUlLeHpubXpyagpGbVBuRHRsVG1aZWVYSlhobGExQ0dIU2pqR1NSTkE9PQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==";
