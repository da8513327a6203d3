//! Writes, and what their failures mean.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use windlass::Env;
use windlass::cache::{Cache, Declared};
use windlass::core::{Child, Kind, ObjectKey, Origin};
use windlass::env::Task;
use windlass::write::{Deleted, Error, Mode, Propagation, Target, Writer};
use windlass_testing::TestCluster;

struct World {
    cluster: TestCluster,
    cache: Cache,
    writer: Writer,
    _watching: Task<()>,
}

impl World {
    async fn new() -> World {
        let cluster = TestCluster::new().await;
        let env = Env::seeded(1, "2026-01-01T00:00:00Z".parse().unwrap());
        let cache = Cache::new("us");
        cache.declare::<ConfigMap>(Declared::typed().owned());
        let watching = cache.start(cluster.client(), &env, Arc::new(()));
        cache.synced().await;
        let writer = Writer::new(cluster.client(), cache.clone(), env, "us");
        World { cluster, cache, writer, _watching: watching }
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.cluster.client())
    }

    async fn make(&self, data: Value) -> ConfigMap {
        let object = serde_json::from_value(json!({"metadata": {"name": "a"}, "data": data})).unwrap();
        self.maps().create(&PostParams::default(), &object).await.unwrap()
    }
}

fn origin() -> Origin {
    Origin { controller: "test".into(), key: ObjectKey::namespaced("default", "parent") }
}

fn key() -> ObjectKey {
    ObjectKey::namespaced("default", "a")
}

fn map(data: Value) -> Child {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    Child { kind: Kind::of::<ConfigMap>(), key: key(), object }
}

#[tokio::test]
async fn a_create_takes_nothing_over() {
    let world = World::new().await;
    // Nothing of it is in the way of what we apply: but for the version, the server would take it.
    let theirs = world.make(json!({"x": "theirs"})).await;
    let error = world.writer.apply(&map(json!({"y": "ours"})), Mode::Create, &origin()).await.unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error:?}");
    assert_eq!(world.maps().get("a").await.unwrap(), theirs);
}

#[tokio::test]
async fn what_is_written_is_in_the_cache_at_once() {
    let world = World::new().await;
    let made =
        world.writer.apply(&map(json!({"k": "1", "none": null})), Mode::Create, &origin()).await.unwrap();
    assert_eq!(made["data"], json!({"k": "1"}), "a null says nothing");
    let cached = world.cache.get::<ConfigMap>(&key()).unwrap().unwrap();
    assert_eq!(json!(cached.resource_version()), made["metadata"]["resourceVersion"]);
    let set = world.cache.managed(&Kind::of::<ConfigMap>(), &key()).unwrap();
    assert_eq!(set, Some(json!({"f:data": {"f:k": {}}})));

    let uid = cached.uid().unwrap();
    let kind = Kind::of::<ConfigMap>();
    let deleted =
        world.writer.delete(&kind, &key(), &uid, None, Propagation::Background, &origin()).await.unwrap();
    assert_eq!(deleted, Deleted::Gone);
    assert_eq!(world.cache.get::<ConfigMap>(&key()).unwrap(), None);
    // Once more is as good.
    let deleted =
        world.writer.delete(&kind, &key(), &uid, None, Propagation::Background, &origin()).await.unwrap();
    assert_eq!(deleted, Deleted::Absent);
}

#[tokio::test]
async fn an_update_takes_what_is_ours_by_force_and_leaves_another_object_alone() {
    let world = World::new().await;
    let theirs = world.make(json!({"k": "theirs"})).await;
    let uid = theirs.uid().unwrap();
    let ours = map(json!({"k": "ours"}));
    let applied = world.writer.apply(&ours, Mode::Update { uid: &uid }, &origin()).await.unwrap();
    assert_eq!(applied["data"], json!({"k": "ours"}));
    for exists in [true, false] {
        let other = Mode::Update { uid: "11111111-2222-3333-4444-555555555555" };
        let error = world.writer.apply(&map(json!({"k": "2"})), other, &origin()).await.unwrap_err();
        assert!(error.is_conflict(), "{error:?}");
        assert_eq!(world.maps().get_opt("a").await.unwrap().is_some(), exists);
        world.maps().delete("a", &DeleteParams::default()).await.ok();
    }
}

#[tokio::test]
async fn a_delete_is_of_the_object_and_the_version_that_were_looked_at() {
    let world = World::new().await;
    let object = world.make(json!({})).await;
    let (kind, uid) = (Kind::of::<ConfigMap>(), object.uid().unwrap());
    for (uid, version) in [("other", None), (uid.as_str(), Some("1"))] {
        let error =
            world.writer.delete(&kind, &key(), uid, version, Propagation::Background, &origin()).await;
        assert!(error.unwrap_err().is_conflict());
        assert!(world.maps().get_opt("a").await.unwrap().is_some());
    }
    let version = object.resource_version();
    let deleted = world
        .writer
        .delete(&kind, &key(), &uid, version.as_deref(), Propagation::Foreground, &origin())
        .await
        .unwrap();
    assert_eq!(deleted, Deleted::Going, "the garbage collector has to look at it first");
    let cached = world.cache.get::<ConfigMap>(&key()).unwrap().expect("it is still there");
    assert!(cached.metadata.deletion_timestamp.is_some());
}

#[tokio::test]
async fn a_pod_takes_its_time_to_go() {
    let world = World::new().await;
    let pods: Api<Pod> = Api::default_namespaced(world.cluster.client());
    let spec = json!({"nodeName": "n", "serviceAccountName": "default", "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "a"}, "spec": spec});
    let pod = pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let (kind, uid) = (Kind::of::<Pod>(), pod.uid().unwrap());
    let deleted =
        world.writer.delete(&kind, &key(), &uid, None, Propagation::Background, &origin()).await.unwrap();
    assert_eq!(deleted, Deleted::Going);
    assert!(pods.get("a").await.unwrap().metadata.deletion_timestamp.is_some());
}

#[tokio::test]
async fn finalizers_and_status_are_of_the_version_that_was_looked_at() {
    let world = World::new().await;
    let object = world.make(json!({})).await;
    let (kind, key) = (Kind::of::<ConfigMap>(), key());
    let (uid, version) = (object.uid().unwrap(), object.resource_version().unwrap());
    let at = |uid, resource_version| Target { kind: &kind, key: &key, uid, resource_version };
    let ours = ["example.com/ours".to_owned()];
    for target in [at(uid.as_str(), "1"), at("other", version.as_str())] {
        let error = world.writer.set_finalizers(target, &ours, &origin()).await.unwrap_err();
        assert!(error.is_conflict(), "{error:?}");
    }
    let answer = world.writer.set_finalizers(at(&uid, &version), &ours, &origin()).await.unwrap().unwrap();
    assert_eq!(answer["metadata"]["finalizers"], json!(ours));
    world.maps().delete("a", &DeleteParams::default()).await.unwrap();
    let version = world.maps().get("a").await.unwrap().resource_version().unwrap();
    let answer = world.writer.set_finalizers(at(&uid, &version), &[], &origin()).await.unwrap();
    assert_eq!(answer, None, "it went with its last one");
    assert_eq!(world.cache.get::<ConfigMap>(&key).unwrap(), None);
    let error = world.writer.set_finalizers(at(&uid, &version), &ours, &origin()).await.unwrap_err();
    assert!(error.is_conflict() && world.maps().get_opt("a").await.unwrap().is_none(), "{error:?}");
    // A kind without the subresource is no reason to look again and again.
    world.make(json!({})).await;
    let error = world.writer.apply_status(at(&uid, &version), &json!({}), &origin()).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
}

#[tokio::test]
async fn labels_are_set_beside_those_there_are_on_the_object_that_was_looked_at() {
    let world = World::new().await;
    let theirs = json!({"metadata": {"name": "a", "labels": {"theirs": "1", "ours": "old"}}});
    let theirs = serde_json::from_value(theirs).unwrap();
    let object = world.maps().create(&PostParams::default(), &theirs).await.unwrap();
    let (kind, uid) = (Kind::of::<ConfigMap>(), object.uid().unwrap());
    let ours = [("ours", "new")];
    let answer = world.writer.set_labels(&kind, &key(), &uid, &ours, &origin()).await.unwrap();
    assert_eq!(answer["metadata"]["labels"], json!({"theirs": "1", "ours": "new"}));
    let cached = world.cache.get::<ConfigMap>(&key()).unwrap().expect("it is there");
    assert_eq!(cached.labels()["ours"], "new", "the next read has it");
    let error = world.writer.set_labels(&kind, &key(), "other", &ours, &origin()).await.unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    world.maps().delete("a", &DeleteParams::default()).await.unwrap();
    let error = world.writer.set_labels(&kind, &key(), &uid, &ours, &origin()).await.unwrap_err();
    assert!(error.is_conflict() && world.maps().get_opt("a").await.unwrap().is_none(), "{error:?}");
}

/// A writer to a server that always says the same.
fn to_server(code: u16, body: &'static str) -> Writer {
    let service = tower::service_fn(move |_: Request<Body>| async move {
        let answer = Response::builder().status(StatusCode::from_u16(code).unwrap());
        Ok::<_, tower::BoxError>(answer.body(Body::from(body.as_bytes().to_vec())).unwrap())
    });
    let env = Env::seeded(1, "2026-01-01T00:00:00Z".parse().unwrap());
    Writer::new(Client::new(service, "default"), Cache::new("us"), env, "us")
}

#[tokio::test]
async fn each_refusal_is_told_apart() {
    const UNTYPED: &str = r#"{"code": 500, "message": "failed to create typed patch object (x): .status.a: field not declared in schema"}"#;
    let cases = [
        (403, "{}", "Forbidden"),
        (404, "{}", "NotFound"),
        (409, "{}", "Conflict"),
        (413, "{}", "Invalid"),
        (422, "{}", "Invalid"),
        (429, "{}", "Server"),
        (500, "{}", "Server"),
        (500, UNTYPED, "Invalid"),
        (502, "<html>bad gateway</html>", "Server"),
        (200, "<html>hello</html>", "Answer"),
    ];
    for (code, body, variant) in cases {
        let uid = Mode::Update { uid: "u" };
        let error = to_server(code, body).apply(&map(json!({})), uid, &origin()).await.unwrap_err();
        assert!(format!("{error:?}").starts_with(variant), "{code}: {error:?}");
        assert!(
            error.to_string().contains("apply ConfigMap default/a")
                && error.to_string().starts_with("cannot")
        );
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up_on() {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, tower::BoxError>>()
    });
    let env = Env::seeded(1, "2026-01-01T00:00:00Z".parse().unwrap());
    let writer = Writer::new(Client::new(service, "default"), Cache::new("us"), env.clone(), "us");
    let writer = writer.with_timeout(Duration::from_secs(3));
    let start = env.moment();
    let error = writer.apply(&map(json!({})), Mode::Create, &origin()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot apply ConfigMap default/a: no answer in 3 s");
    assert_eq!(env.moment() - start, Duration::from_secs(3));
}
