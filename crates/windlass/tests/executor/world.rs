//! A server, a cache, an executor, and a parent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use kube::{Api, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::cache::{Cache, Declared};
use windlass::core::{Action, Child, Kind, ObjectKey, Plan};
use windlass::env::{Env, Task};
use windlass::executor::{Executor, Parent, Perform, Report};
use windlass::write::Writer;
use windlass_testing::TestCluster;

/// The parent of these tests.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(group = "test.example.com", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
pub struct WidgetSpec {
    #[serde(default)]
    pub size: i32,
}

/// Its status.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WidgetStatus {
    pub phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Something outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring(pub &'static str);

impl std::fmt::Display for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ring {}", self.0)
    }
}

pub type WidgetPlan = Plan<Widget, Ring>;

pub const FINALIZER: &str = "test.example.com/cleanup";

pub struct World {
    pub cluster: TestCluster,
    pub cache: Cache,
    pub executor: Executor,
    pub writer: Writer,
    pub env: Env,
    /// The names of the crash points that were passed.
    pub crash_points: Arc<Mutex<Vec<String>>>,
    /// What was performed; an effect that is named here fails.
    pub rung: Mutex<Vec<&'static str>>,
    pub failing: Mutex<Vec<&'static str>>,
    watching: Option<Task<()>>,
}

impl World {
    /// A world with one widget, `one`, whose executor owns ConfigMaps and Deployments.
    pub async fn new() -> World {
        World::with(|executor| executor).await
    }

    pub async fn with(adapt: impl FnOnce(Executor) -> Executor) -> World {
        let cluster = TestCluster::new().await;
        cluster.apply_yaml(&serde_json::to_string(&Widget::crd()).unwrap()).await.unwrap();
        cluster.apply_yaml(WIDGET).await.unwrap();
        World::on(cluster, adapt).await
    }

    /// Another process on the same server, which has just started.
    pub async fn after(before: &World) -> World {
        World::on(before.cluster.with_timeout(Duration::from_secs(10)), |executor| executor).await
    }

    /// Another process on the same server, which prunes or does not.
    pub async fn with_owned(before: &World, prune: bool) -> World {
        let cluster = before.cluster.with_timeout(Duration::from_secs(10));
        let mut world = World::on(cluster, |executor| executor).await;
        let executor = Executor::new(world.writer.clone(), world.cache.clone(), world.env.clone(), "widgets");
        world.executor = executor.owns(Kind::of::<ConfigMap>(), prune);
        world
    }

    /// Another process on the same server, whose cache has not begun.
    pub async fn without_cache(before: &World) -> World {
        let mut world = World::after(before).await;
        world.stop_watching();
        world.cache = Cache::new("test-operator");
        world.cache.declare::<ConfigMap>(Declared::typed().owned());
        let (client, env) = (world.cluster.client(), world.env.clone());
        world.writer = Writer::new(client, world.cache.clone(), env.clone(), "test-operator");
        let executor = Executor::new(world.writer.clone(), world.cache.clone(), env, "widgets");
        world.executor = executor.owns(Kind::of::<ConfigMap>(), true);
        world
    }

    pub async fn on(cluster: TestCluster, adapt: impl FnOnce(Executor) -> Executor) -> World {
        let crash_points = Arc::new(Mutex::new(Vec::new()));
        let passed = crash_points.clone();
        let env = Env::seeded(1, "2026-01-01T00:00:00Z".parse().unwrap());
        let env = env.with_crash_points(move |name| passed.lock().unwrap().push(name.to_owned()));
        let cache = Cache::new("test-operator");
        cache.declare::<ConfigMap>(Declared::typed().owned());
        cache.declare::<Deployment>(Declared::typed().owned());
        cache.declare::<Widget>(Declared::typed());
        let watching = cache.start(cluster.client(), &env, Arc::new(()));
        cache.synced().await;
        let writer = Writer::new(cluster.client(), cache.clone(), env.clone(), "test-operator");
        let executor = Executor::new(writer.clone(), cache.clone(), env.clone(), "widgets");
        let executor = executor.owns(Kind::of::<ConfigMap>(), true).owns(Kind::of::<Deployment>(), true);
        World {
            cluster,
            cache,
            executor: adapt(executor),
            writer,
            env,
            crash_points,
            rung: Mutex::default(),
            failing: Mutex::default(),
            watching: Some(watching),
        }
    }

    /// From here on the cache hears of nothing but our own writes.
    pub fn stop_watching(&mut self) {
        self.watching = None;
    }

    /// The widget as the cache has it.
    pub fn widget(&self) -> Widget {
        let key = ObjectKey::namespaced("default", "one");
        (*self.cache.get::<Widget>(&key).unwrap().expect("the widget is in the cache")).clone()
    }

    pub fn parent(&self) -> Parent {
        Parent::new(Kind::of::<Widget>(), &self.widget())
    }

    /// One pass of a plan.
    pub async fn pass(&self, plan: &WidgetPlan) -> Report {
        self.pass_for(&self.parent(), plan).await
    }

    pub async fn pass_for(&self, parent: &Parent, plan: &WidgetPlan) -> Report {
        self.executor.run(parent, plan, self).await
    }

    /// Passes until one writes nothing.
    pub async fn settle(&self, plan: &WidgetPlan) -> Report {
        for _ in 0..10 {
            let report = self.pass(plan).await;
            if report.writes.is_empty() && !report.conflicted {
                return report;
            }
        }
        panic!("ten passes did not settle it: {:?}", self.mutations());
    }

    /// The requests so far that could change something, as `patch configmaps one 200`.
    pub fn mutations(&self) -> Vec<String> {
        let records = self.cluster.requests().into_iter();
        let records = records.filter(|record| !matches!(record.verb, "get" | "list" | "watch"));
        let text = |record: windlass_testing::Record| {
            let sub = if record.subresource.is_empty() {
                String::new()
            } else {
                format!("/{}", record.subresource)
            };
            format!("{} {}{sub} {} {}", record.verb, record.resource, record.name, record.code)
        };
        records.map(text).collect()
    }

    /// What the server was asked to change while something ran.
    pub async fn mutations_of<T>(&self, run: impl Future<Output = T>) -> (T, Vec<String>) {
        let before = self.mutations().len();
        let result = run.await;
        (result, self.mutations().split_off(before))
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.cluster.client(), "default")
    }

    /// What somebody else does to an object.
    pub async fn edit<K>(&self, name: &str, patch: Value)
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        self.api::<K>().patch(name, &params, &Patch::Merge(patch)).await.unwrap();
        self.caught_up().await;
    }

    /// What somebody else does to the widget while nobody watches.
    pub async fn edit_unseen(&self, name: &str, patch: Value) {
        self.api::<Widget>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn map(&self, name: &str) -> Option<ConfigMap> {
        self.api::<ConfigMap>().get_opt(name).await.unwrap()
    }

    pub async fn data(&self, name: &str) -> Value {
        json!(self.map(name).await.expect("the ConfigMap is there").data)
    }

    /// Waits until the cache has what the server has.
    pub async fn caught_up(&self) {
        for _ in 0..500 {
            let world = self.cluster.world();
            let maps = versions(&world.list::<ConfigMap>(None)) == cached::<ConfigMap>(&self.cache);
            let widgets = versions(&world.list::<Widget>(None)) == cached::<Widget>(&self.cache);
            if maps
                && widgets
                && versions(&world.list::<Deployment>(None)) == cached::<Deployment>(&self.cache)
            {
                return;
            }
            self.env.sleep(Duration::from_millis(2)).await;
        }
        panic!("the cache does not catch up:\n{}", self.cluster.dump());
    }
}

impl Perform<Ring> for World {
    async fn perform(&self, effect: &Ring) -> Result<(), windlass::Error> {
        if self.failing.lock().unwrap().contains(&effect.0) {
            return Err(windlass::Error::retry(format!("{} is broken", effect.0)));
        }
        self.rung.lock().unwrap().push(effect.0);
        Ok(())
    }
}

fn versions<K: kube::Resource>(objects: &[K]) -> Vec<(ObjectKey, Option<String>)> {
    let mut versions: Vec<_> =
        objects.iter().map(|object| (ObjectKey::of(object.meta()), object.resource_version())).collect();
    versions.sort();
    versions
}

fn cached<K>(cache: &Cache) -> Vec<(ObjectKey, Option<String>)>
where
    K: windlass::cache::Cached + kube::Resource<DynamicType = ()>,
    K::Scope: 'static,
{
    let objects: Vec<K> = cache.list::<K>(None).unwrap().iter().map(|object| (**object).clone()).collect();
    versions(&objects)
}

const WIDGET: &str = "{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: one, namespace: default}, spec: {size: 1}}";

/// A ConfigMap as a child.
pub fn map(name: &str, data: Value) -> Child {
    child::<ConfigMap>(name, json!({"data": data}))
}

pub fn child<K>(name: &str, rest: Value) -> Child
where
    K: kube::Resource<DynamicType = ()>,
    K::Scope: 'static,
{
    let kind = Kind::of::<K>();
    let mut object = rest;
    object["apiVersion"] = kind.resource.api_version.clone().into();
    object["kind"] = kind.resource.kind.clone().into();
    object["metadata"]["name"] = name.into();
    object["metadata"]["namespace"] = "default".into();
    Child { kind, key: ObjectKey::namespaced("default", name), object }
}

pub fn plan(children: impl IntoIterator<Item = Child>) -> WidgetPlan {
    let mut plan = Plan::new();
    plan.actions.extend(children.into_iter().map(Action::Apply));
    plan
}

pub fn phase(phase: &str) -> WidgetStatus {
    WidgetStatus { phase: Some(phase.to_owned()), ..WidgetStatus::default() }
}
