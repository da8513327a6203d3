//! A server to ask, and what must hold whatever it was asked.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_apiserver::api::{Body, Config, Ids, Request, Response, Server, Step, User, Watch, WatchPoll};
use windlass_apiserver::codec;
use windlass_apiserver::json;
use windlass_apiserver::store::{EventType, Kind, Store};

/// Deterministic identifiers.
#[derive(Clone)]
struct Counter(u64);

impl Ids for Counter {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ (self.0 >> 29)
    }
}

/// The server that every run starts from a fork of.
struct Ground {
    server: Server,
    now: Timestamp,
    ids: Counter,
    /// What is stored, to notice a fork that writes into its origin.
    content: BTreeMap<(Kind, String), u64>,
}

/// A forked server, with the watches that are open on it.
pub struct World {
    server: Server,
    now: Timestamp,
    ids: Counter,
    watches: Vec<Watch>,
}

/// An answer that was read to its end.
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The body; `null` where it is not JSON.
    pub tree: Value,
}

/// More polls than events can be.
const POLLS_MAX: usize = 10_000;

impl World {
    /// A fork of the server with its definitions.
    pub fn new() -> World {
        let ground = ground();
        World { server: ground.server.fork(), now: ground.now, ids: ground.ids.clone(), watches: Vec::new() }
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Lets time pass.
    pub fn pass(&mut self, seconds: u16) {
        self.now += SignedDuration::from_secs(seconds.into());
        self.server.tick(self.now);
    }

    /// Sends a request, reads the answer to its end, and checks what holds for all answers. A watch stays open.
    pub fn ask(&mut self, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Answer {
        let before = self.server.store().revision();
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&method);
        let one = method != Method::DELETE;
        let request = Request { method, uri, headers, body, user: User::admin().into() };
        let response = match self.server.step(request, self.now, &mut self.ids) {
            Step::Done(response) => response,
            Step::Relay(..) => panic!("nobody else is there"),
            Step::Call(questions, _) => panic!("nobody is there to be asked: {questions:?}"),
            Step::Wait { deadline, pending, .. } => {
                self.now = self.now.max(deadline);
                match self.server.resume(pending, self.now, &mut self.ids) {
                    Step::Done(response) => response,
                    _ => panic!("waits beyond its deadline"),
                }
            }
        };
        let after = self.server.store().revision();
        assert!(after >= before, "revision {before} became {after}");
        let code = response.status.as_u16();
        assert!(after == before || !reads, "a read wrote");
        // A collection is deleted one by one, and what came before the refusal is gone.
        assert!(after == before || code < 400 || !one, "refused with {code}, and yet it wrote");
        let answer = self.read(response);
        self.poll();
        answer
    }

    fn read(&mut self, response: Response) -> Answer {
        let code = response.status.as_u16();
        let media =
            response.headers.get("content-type").map(|value| value.to_str().expect("our headers are text"));
        let media = media.unwrap_or_default().to_owned();
        let mut bytes = Vec::new();
        match response.body {
            Body::Full(all) => bytes.extend_from_slice(&all),
            Body::List(mut list) => {
                while let Some(piece) = list.next_piece() {
                    bytes.extend_from_slice(&piece.into_bytes());
                }
            }
            Body::Watch(watch) => {
                self.watches.push(*watch);
                return Answer { code, tree: Value::Null };
            }
            // The front writes it.
            Body::Metrics => {}
        }
        if media.starts_with("text/") || bytes.is_empty() {
            return Answer { code, tree: Value::Null };
        }
        let tree = match media.contains("yaml") {
            true => {
                let parsed = codec::parse(&bytes, codec::Format::Yaml);
                parsed
                    .unwrap_or_else(|e| panic!("{code} {media}: {e}: {}", String::from_utf8_lossy(&bytes)))
                    .value
            }
            false => {
                let read = json::read(&bytes);
                read.unwrap_or_else(|e| panic!("{code} {media}: {e}: {}", String::from_utf8_lossy(&bytes)))
                    .value
            }
        };
        assert!(tree.is_object(), "{code} {tree}");
        if code >= 400 {
            assert_eq!((&tree["kind"], &tree["code"]), (&json!("Status"), &json!(code)), "{tree}");
        }
        Answer { code, tree }
    }

    /// Reads all that the watches have.
    fn poll(&mut self) {
        for watch in &mut self.watches {
            let polls = (0..POLLS_MAX).take_while(|_| match watch.poll(self.server.store(), self.now) {
                WatchPoll::Data(bytes) => {
                    for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
                        let event = json::read(line).expect("events are JSON").value;
                        assert!(event["type"].is_string() && event["object"].is_object(), "{event}");
                    }
                    true
                }
                // Nobody is here to convert anything.
                WatchPoll::Convert(_) | WatchPoll::Idle(_) | WatchPoll::End => false,
            });
            assert!(polls.count() < POLLS_MAX, "a watch that never rests");
        }
    }

    /// What must hold at the end of a run.
    pub fn check(mut self) {
        let ground = ground();
        assert_eq!(content(ground.server.store()), ground.content, "a fork wrote into its origin");
        let since = ground.server.store().revision();
        check_history(ground.server.store(), self.server.store(), since);
        let stored = stored_after(self.server.store(), since);
        for (kind, key) in stored {
            self.check_object(&kind, &key);
        }
    }

    /// A stored object is canonical, carries its revision, and is served as it is stored.
    fn check_object(&mut self, kind: &Kind, key: &str) {
        let object = self.server.store().find(kind, key).expect("just listed").clone();
        let tree = json::read(object.body()).expect("stored bodies are JSON").value;
        assert_eq!(tree["metadata"]["resourceVersion"], json!(object.revision().to_string()));
        let served = self.server.registry().all().find(|resource| {
            resource.storage == *kind && resource.api_version() == resource.storage_api_version
        });
        // Where the definition is gone, so is the way to its objects.
        let Some(resource) = served.cloned() else { return };
        // Reviews and bindings are answered, and nobody reads them again.
        if !resource.has_verb("get") {
            return;
        }
        if !resource.is_custom() {
            let (types, id) = resource.types();
            let again =
                codec::canonical(types, id, tree.clone(), &mut Vec::new()).expect("stored objects decode");
            let again = codec::write(&again).bytes;
            assert!(
                again == object.body()[..],
                "{}\n{}",
                String::from_utf8_lossy(&again),
                String::from_utf8_lossy(object.body())
            );
        }
        let root = match &*resource.group {
            "" => "/api".to_owned(),
            group => format!("/apis/{group}"),
        };
        let place = match object.namespace() {
            "" => String::new(),
            namespace => format!("/namespaces/{namespace}"),
        };
        let path = format!("{root}/{}{place}/{}/{}", resource.version, resource.plural, object.name());
        let Ok(uri) = path.parse() else { panic!("{path:?} cannot be asked for") };
        let answer = self.ask(Method::GET, uri, HeaderMap::new(), Bytes::new());
        assert_eq!(answer.code, 200, "{path}: {}", answer.tree);
        if !resource.is_custom() {
            assert_eq!(answer.tree, tree, "{path}");
        }
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

/// The past of a fork leads from its origin to its present.
fn check_history(origin: &Store, fork: &Store, since: u64) {
    let mut fork = fork.clone();
    for kind in fork.kinds().cloned().collect::<Vec<_>>() {
        let Ok(past) = fork.at(&kind, since) else { continue };
        let versions = |snapshot: &windlass_apiserver::store::Snapshot| -> BTreeMap<String, u64> {
            snapshot.range(None, None).map(|object| (object.key().to_owned(), object.revision())).collect()
        };
        let mut state = versions(&past);
        assert_eq!(state, versions(&origin.list(&kind)), "the past of {kind:?} is not what it was");
        let mut last = since;
        for event in fork.events(&kind, since).expect("read above") {
            assert!(event.revision > last, "{} after {last}", event.revision);
            last = event.revision;
            let key = event.object.key().to_owned();
            match event.kind {
                EventType::Added => assert_eq!(state.insert(key, event.revision), None),
                EventType::Modified => assert!(state.insert(key, event.revision).is_some()),
                EventType::Deleted => assert!(state.remove(&key).is_some()),
            }
        }
        assert_eq!(state, versions(&fork.list(&kind)), "the events of {kind:?} do not lead to its state");
    }
}

fn content(store: &Store) -> BTreeMap<(Kind, String), u64> {
    let objects = store.kinds().flat_map(|kind| {
        let list = store.list(kind);
        let keys = list.range(None, None).map(|object| (object.key().to_owned(), object.revision()));
        keys.map(|(key, revision)| ((kind.clone(), key), revision)).collect::<Vec<_>>()
    });
    objects.collect()
}

fn stored_after(store: &Store, since: u64) -> Vec<(Kind, String)> {
    content(store).into_iter().filter(|(_, revision)| *revision > since).map(|(place, _)| place).collect()
}

fn ground() -> &'static Ground {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    GROUND.get_or_init(|| {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        let mut ids = Counter(42);
        let server = Server::new(Config::default(), now, &mut ids);
        let mut world = World { server, now, ids, watches: Vec::new() };
        for (path, body) in beginnings() {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", "application/json".parse().expect("a header"));
            let uri = path.parse().expect("a path");
            let answer = world.ask(Method::POST, uri, headers, body.to_string().into());
            assert_eq!(answer.code, 201, "{path}: {}", answer.tree);
        }
        let content = content(world.server.store());
        Ground { server: world.server, now: world.now, ids: world.ids, content }
    })
}

/// What every run finds.
fn beginnings() -> Vec<(&'static str, Value)> {
    let maps = "/api/v1/namespaces/default/configmaps";
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {
        "containers": [{"name": "a", "image": "nginx", "ports": [{"containerPort": 80}], "env": [{"name": "a", "value": "1"}]}],
    }});
    vec![
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("Foo", "Namespaced")),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("Bar", "Cluster")),
        (maps, json!({"metadata": {"name": "a", "labels": {"app": "web"}}, "data": {"a": "1", "b": "2"}})),
        (maps, json!({"metadata": {"name": "b", "finalizers": ["x.io/y"]}, "immutable": true})),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}}),
        ),
        (
            "/api/v1/namespaces/default/services",
            json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
        ),
        (
            "/apis/example.com/v1/namespaces/default/foos",
            json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": {"size": 2}}),
        ),
    ]
}

/// A definition with a bit of everything.
fn definition(kind: &str, scope: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let item = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 20}, "value": {"x-kubernetes-int-or-string": true},
    }});
    let spec = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 100},
        "replicas": {"type": "integer", "format": "int32", "default": 1},
        "ratio": {"type": "number", "multipleOf": 0.5},
        "color": {"type": "string", "default": "red", "enum": ["red", "green", "blue"], "pattern": "^[a-z]+$"},
        "when": {"type": "string", "format": "date-time", "nullable": true},
        "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 10},
        "parts": {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "maxItems": 10},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        "either": {"type": "string", "anyOf": [{"minLength": 3}, {"maxLength": 1}]},
    }});
    let status = json!({"type": "object", "properties": {"replicas": {"type": "integer"}, "note": {"type": "string"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            "selectableFields": [{"jsonPath": ".spec.color"}],
            "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": scope,
            "names": {"plural": plural, "singular": singular, "kind": kind},
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    })
}
