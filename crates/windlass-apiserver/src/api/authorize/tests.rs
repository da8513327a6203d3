//! The policy against a plain reading of the same objects, and paths against where they lead.

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::*;
use crate::api::config::Config;
use crate::api::registry::Registry;
use crate::api::route::{self, Route};
use crate::api::server::{Ids, Step};

struct Counter(u64);

impl Ids for Counter {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }
}

struct World {
    server: Server,
    ids: Counter,
}

impl World {
    fn new() -> World {
        let mut ids = Counter(7);
        World { server: Server::new(Config::default(), Timestamp::UNIX_EPOCH, &mut ids), ids }
    }

    fn ask(&mut self, method: Method, path: &str, body: &Value) -> u16 {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request =
            Request { method, uri: path.parse().unwrap(), headers, body, user: User::admin().into() };
        match self.server.step(request, Timestamp::UNIX_EPOCH, &mut self.ids) {
            Step::Done(response) => response.status.as_u16(),
            _ => panic!("{path} is answered at once"),
        }
    }
}

const NAMESPACES: [&str; 2] = ["default", "kube-public"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const VERBS: [&str; 4] = ["get", "list", "create", "*"];
const GROUPS: [&str; 3] = ["", "apps", "*"];
const RESOURCES: [&str; 6] = ["pods", "pods/log", "*/log", "deployments", "*", "*/scale"];
const PATHS: [&str; 4] = ["/metrics", "/logs/*", "*", "/lo*"];

fn texts(all: &'static [&'static str], least: usize) -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(all, least..=2)
}

fn rules() -> impl Strategy<Value = Value> {
    let of_resources = (texts(&VERBS, 1), texts(&GROUPS, 1), texts(&RESOURCES, 1), texts(&NAMES, 0))
        .prop_map(|(verbs, groups, resources, names)| match names.is_empty() {
            true => json!({"verbs": verbs, "apiGroups": groups, "resources": resources}),
            false => {
                json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names})
            }
        });
    let of_paths = (texts(&VERBS, 1), texts(&PATHS, 1))
        .prop_map(|(verbs, paths)| json!({"verbs": verbs, "nonResourceURLs": paths}));
    (prop::collection::vec(of_resources, 0..3), prop::collection::vec(of_paths, 0..2), any::<bool>())
        .prop_map(|(resources, paths, cluster)| {
            let paths = if cluster { paths } else { Vec::new() };
            json!(resources.into_iter().chain(paths).collect::<Vec<_>>())
        })
}

/// A change of the policy: where, and what is there then.
#[derive(Clone, Debug)]
struct Written {
    plural: &'static str,
    namespace: &'static str,
    name: &'static str,
    body: Value,
}

fn subjects() -> impl Strategy<Value = Value> {
    let users = select(vec!["ann", "bob", "system:serviceaccount:default:s"])
        .prop_map(|name| json!({"kind": "User", "apiGroup": GROUP, "name": name}));
    let groups = select(vec!["team", "system:authenticated"])
        .prop_map(|name| json!({"kind": "Group", "apiGroup": GROUP, "name": name}));
    let accounts = select(NAMESPACES.to_vec())
        .prop_map(|namespace| json!({"kind": "ServiceAccount", "name": "s", "namespace": namespace}));
    prop::collection::vec(prop_oneof![users, groups, accounts], 0..3).prop_map(|subjects| json!(subjects))
}

fn written() -> impl Strategy<Value = Written> {
    let place = (select(NAMES.to_vec()), select(NAMESPACES.to_vec()), any::<bool>());
    let role = (place.clone(), rules()).prop_map(|((name, namespace, cluster), mut rules)| {
        if !cluster && let Some(rules) = rules.as_array_mut() {
            rules.retain(|rule| rule.get("nonResourceURLs").is_none());
        }
        let (plural, namespace) = if cluster { ("clusterroles", "") } else { ("roles", namespace) };
        Written { plural, namespace, name, body: json!({"metadata": {"name": name}, "rules": rules}) }
    });
    let binding = (place, select(NAMES.to_vec()), any::<bool>(), subjects()).prop_map(
        |((name, namespace, cluster), role, of_cluster, subjects)| {
            let kind = if cluster || of_cluster { "ClusterRole" } else { "Role" };
            let body = json!({
                "metadata": {"name": name}, "subjects": subjects,
                "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
            });
            let (plural, namespace) =
                if cluster { ("clusterrolebindings", "") } else { ("rolebindings", namespace) };
            Written { plural, namespace, name, body }
        },
    );
    prop_oneof![role, binding]
}

fn users() -> impl Strategy<Value = User> {
    select(vec![
        User::new("ann", []),
        User::new("bob", ["team"]),
        User::account("default", "s"),
        User::account("kube-public", "s"),
        User::anonymous(),
    ])
}

fn questions() -> impl Strategy<Value = Attributes<'static>> {
    let resource = (
        select(vec!["get", "list", "create"]),
        select(vec!["", "apps"]),
        select(vec!["pods", "deployments"]),
        select(vec!["", "log", "scale"]),
        select(vec!["", "a", "c"]),
        select(vec!["", "default", "kube-public"]),
    );
    let resource = resource.prop_map(|(verb, group, resource, sub, name, namespace)| {
        Attributes::resource(verb, group, resource).below(sub).named(name).within(namespace)
    });
    let path = (select(vec!["get", "list"]), select(vec!["/metrics", "/logs/a/b", "/logs", "/x"]));
    prop_oneof![4 => resource, 1 => path.prop_map(|(verb, path)| Attributes::path(verb, path))]
}

/// The rule by the letter: every binding is looked at, and every word of it compared.
fn is_allowed(objects: &[&Written], user: &User, asked: &Attributes<'_>) -> bool {
    let list = |value: &Value, key: &str| -> Vec<String> {
        let all = value[key].as_array().cloned().unwrap_or_default();
        all.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let matches = |rule: &Value| {
        let star = |key: &str, wanted: &str| list(rule, key).iter().any(|own| own == "*" || own == wanted);
        star("verbs", &asked.verb)
            && match &asked.asked {
                Asked::Path(path) => {
                    list(rule, "nonResourceURLs").iter().any(|own| match own.strip_suffix('*') {
                        Some(start) => path.starts_with(start),
                        None => own == path,
                    })
                }
                Asked::Resource { group, resource, subresource, name, .. } => {
                    let full = match subresource.is_empty() {
                        true => resource.to_string(),
                        false => format!("{resource}/{subresource}"),
                    };
                    let any = format!("*/{subresource}");
                    let resources = list(rule, "resources");
                    let names = list(rule, "resourceNames");
                    star("apiGroups", group)
                        && resources
                            .iter()
                            .any(|own| own == "*" || *own == full || !subresource.is_empty() && *own == any)
                        && (names.is_empty() || names.iter().any(|own| own == name))
                }
            }
    };
    objects.iter().any(|binding| {
        let here = match binding.plural {
            "clusterrolebindings" => true,
            "rolebindings" => binding.namespace == asked.namespace(),
            _ => return false,
        };
        let bound = binding.body["subjects"].as_array().unwrap().iter().any(|subject| {
            let name = subject["name"].as_str().unwrap();
            match subject["kind"].as_str().unwrap() {
                "User" => user.name == name,
                "Group" => user.groups.iter().any(|group| group == name),
                _ => {
                    let namespace = subject["namespace"].as_str().unwrap();
                    user.name == format!("system:serviceaccount:{namespace}:{name}")
                }
            }
        });
        let role = &binding.body["roleRef"];
        let (plural, namespace) = match role["kind"].as_str().unwrap() {
            "Role" => ("roles", binding.namespace),
            _ => ("clusterroles", ""),
        };
        let rules = objects.iter().find(|role_object| {
            role_object.plural == plural
                && role_object.namespace == namespace
                && role["name"] == role_object.name
        });
        let rules = rules.and_then(|role| role.body["rules"].as_array()).into_iter().flatten();
        here && bound && rules.into_iter().any(matches)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decisions_are_what_a_plain_reading_says(
        steps in prop::collection::vec((written(), any::<bool>()), 1..12),
        asked in prop::collection::vec((users(), questions()), 20),
    ) {
        let mut world = World::new();
        // What a new cluster allows is not part of the reading.
        world.ask(Method::DELETE, &format!("/apis/{GROUP}/v1/clusterrolebindings"), &Value::Null);
        let mut there: Vec<Written> = Vec::new();
        for (one, delete) in steps {
            let place = match one.namespace {
                "" => format!("/apis/{GROUP}/v1/{}", one.plural),
                namespace => format!("/apis/{GROUP}/v1/namespaces/{namespace}/{}", one.plural),
            };
            let same = |other: &Written| (other.plural, other.namespace, other.name) == (one.plural, one.namespace, one.name);
            let path = format!("{place}/{}", one.name);
            if let Some(at) = there.iter().position(same) {
                if delete {
                    prop_assert_eq!(world.ask(Method::DELETE, &path, &Value::Null), 200);
                    there.remove(at);
                } else if one.body["roleRef"] == there[at].body["roleRef"] {
                    prop_assert_eq!(world.ask(Method::PUT, &path, &one.body), 200);
                    there[at] = one;
                }
            } else {
                prop_assert_eq!(world.ask(Method::POST, &place, &one.body), 201);
                there.push(one);
            }
            let objects: Vec<&Written> = there.iter().collect();
            world.server.follow_policy();
            for (user, question) in &asked {
                let decided = world.server.decide(user, question).is_allowed();
                prop_assert_eq!(decided, is_allowed(&objects, user, question), "{:?} {:?} {:?}", user.name, question, there);
            }
        }
        // What was followed step by step is what is read at once.
        let whole = Kept::read(&world.server.store);
        for (user, question) in &asked {
            let followed = world.server.policy.policy.decide(user, question).reason();
            prop_assert_eq!(whole.policy.decide(user, question).reason(), followed);
        }
    }

    #[test]
    fn what_a_path_is_judged_by_is_where_it_leads(
        words in prop::collection::vec(select(vec![
            "api", "apis", "v1", "apps", "namespaces", "a", "pods", "deployments", "status", "log", "finalize", "watch",
            "proxy", "secrets", "..", ".", "", "%2f", "a%2fpods", "API", "%70ods", "clusterroles", "b%2F..",
            "rbac.authorization.k8s.io", "scale", "nodes", "serviceaccounts", "token",
        ]), 1..9),
        method in select(vec!["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]),
    ) {
        let uri: Uri = format!("/{}", words.join("/")).parse().unwrap();
        let method: Method = method.parse().unwrap();
        let query = Query::default();
        let path = decoded(uri.path());
        let read = Attributes::of_request(&method, &path, &query);
        if let Ok(Route::Resource(target)) = route::route(&Registry::new(), uri.path()) {
            let read = read.expect("what leads somewhere says what it is");
            prop_assert_eq!(&of_target(&target, &read), &read, "{}", uri);
            let verb = route::verb(&method, &target, false);
            if let Ok(verb) = verb {
                prop_assert_eq!(verb.as_str(), &*read.verb, "{}", uri);
            }
        }
    }
}
