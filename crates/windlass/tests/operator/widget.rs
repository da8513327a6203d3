//! A kind, and a planner for it that can do all that a planner can.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams};
use kube::{CustomResource, KubeSchema, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::core::condition::{self, Finding};
use windlass::core::{Kind, ObjectKey, Plan};
use windlass::executor::STALLED;
use windlass::jiff::Timestamp;
use windlass::{Context, Controller, Error, Operator, Planner};
use windlass_testing::TestCluster;

use crate::support::Log;

/// A box of some size, and bells that ring somewhere outside.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(group = "test.example.com", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
pub struct WidgetSpec {
    #[serde(default)]
    pub size: i32,
    #[serde(default)]
    pub bells: Vec<String>,
    /// Where the planner finds that it cannot be done: `observe`, `plan` or `perform`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct WidgetStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

pub const FINALIZER: &str = "test.example.com/cleanup";

/// What is outside of the cluster: bells, by the widget that they ring for.
#[derive(Clone, Default)]
pub struct Outside(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    ringing: BTreeSet<(ObjectKey, String)>,
    happened: Vec<String>,
}

impl Outside {
    pub fn ringing(&self, key: &ObjectKey) -> Vec<String> {
        let state = self.0.lock().unwrap();
        state.ringing.iter().filter(|(of, _)| of == key).map(|(_, bell)| bell.clone()).collect()
    }

    /// Everything that was done, in order.
    pub fn happened(&self) -> Vec<String> {
        self.0.lock().unwrap().happened.clone()
    }

    fn set(&self, key: &ObjectKey, bell: &Bell, note: String) {
        let mut state = self.0.lock().unwrap();
        match bell {
            Bell::Ring(bell) => state.ringing.insert((key.clone(), bell.clone())),
            Bell::Hush(bell) => state.ringing.remove(&(key.clone(), bell.clone())),
        };
        state.happened.push(note);
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Bell {
    Ring(String),
    Hush(String),
}

impl fmt::Display for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bell::Ring(bell) => write!(f, "ring {bell}"),
            Bell::Hush(bell) => write!(f, "hush {bell}"),
        }
    }
}

/// A widget has a ConfigMap that says its size, and its bells ring.
#[derive(Default)]
pub struct Boxes {
    pub log: Log,
}

pub struct Seen {
    child: Option<Arc<ConfigMap>>,
    ringing: Vec<String>,
}

impl Planner for Boxes {
    type Object = Widget;
    type Observed = Seen;
    type Effect = Bell;

    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    async fn observe(&self, ctx: &Context, widget: &Widget) -> Result<Seen, Error> {
        self.log.note(ctx.key());
        if widget.spec.fault.as_deref() == Some("observe") {
            return Err(Error::terminal("NotObservable", "there is nothing to observe"));
        }
        let child = ctx.get(&ObjectKey::of(&child(widget).metadata))?;
        Ok(Seen { child, ringing: ctx.state::<Outside>().ringing(ctx.key()) })
    }

    fn plan(&self, widget: &Widget, seen: &Seen, now: Timestamp) -> Plan<Widget, Bell> {
        if widget.spec.fault.as_deref() == Some("plan") {
            return Plan::new().terminal("NotPlannable", "there is no plan for this");
        }
        let plan = Plan::new().apply(child(widget));
        let silent = widget.spec.bells.iter().filter(|bell| !seen.ringing.contains(bell));
        let plan = silent.fold(plan, |plan, bell| plan.effect(Bell::Ring(bell.clone())));
        plan.status(status(widget, seen, now))
    }

    fn cleanup(&self, _: &Widget, seen: &Seen, _: Timestamp) -> Plan<Widget, Bell> {
        seen.ringing.iter().fold(Plan::new(), |plan, bell| plan.effect(Bell::Hush(bell.clone())))
    }

    async fn perform(&self, ctx: &Context, widget: &Widget, bell: &Bell) -> Result<(), Error> {
        if widget.spec.fault.as_deref() == Some("perform") {
            return Err(Error::terminal("NotDoable", "the bell is cracked"));
        }
        let live = ctx.writer().read(&Kind::of::<Widget>(), ctx.key()).await?.unwrap_or_default();
        let kept =
            live["metadata"]["finalizers"].as_array().is_some_and(|all| all.contains(&FINALIZER.into()));
        let kept = if kept { "kept" } else { "free to go" };
        ctx.state::<Outside>().set(ctx.key(), bell, format!("{bell} for {}, which is {kept}", ctx.key()));
        Ok(())
    }
}

fn child(widget: &Widget) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("{}-box", widget.name_any())),
            namespace: widget.namespace(),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("size".to_owned(), widget.spec.size.to_string())])),
        ..ConfigMap::default()
    }
}

fn status(widget: &Widget, seen: &Seen, now: Timestamp) -> WidgetStatus {
    let is_there = seen.child.as_ref().is_some_and(|there| there.data == child(widget).data);
    let ready = is_there && widget.spec.bells.iter().all(|bell| seen.ringing.contains(bell));
    let mut status = widget.status.clone().unwrap_or_default();
    let reason = if ready { "Done" } else { "Working" };
    let finding = Finding::new("Ready", ready, reason, "").of(widget.metadata.generation);
    condition::set(&mut status.conditions, finding, now);
    condition::remove(&mut status.conditions, STALLED);
    status.size = Some(widget.spec.size);
    status
}

/// An operator for widgets, which brings their kind.
pub fn operator(log: &Log, outside: &Outside) -> Operator {
    base(outside).crd::<Widget>().controller(controller(log))
}

pub fn base(outside: &Outside) -> Operator {
    Operator::new("test-operator", "0.0.0").state(outside.clone())
}

pub fn controller(log: &Log) -> Controller<Widget> {
    Controller::new(Boxes { log: log.clone() }).owns::<ConfigMap>()
}

/// Makes a widget, or gives it another spec.
pub async fn apply(cluster: &TestCluster, namespace: &str, name: &str, spec: Value) {
    let api: Api<Widget> = Api::namespaced(cluster.client(), namespace);
    let widget = json!({
        "apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec,
    });
    api.patch(name, &PatchParams::apply("user").force(), &Patch::Apply(widget)).await.unwrap();
}

pub async fn delete(cluster: &TestCluster, name: &str) {
    let api: Api<Widget> = Api::default_namespaced(cluster.client());
    api.delete(name, &DeleteParams::default()).await.unwrap();
}

pub fn get(cluster: &TestCluster, name: &str) -> Option<Widget> {
    cluster.world().get("default", name)
}

pub fn is_ready(cluster: &TestCluster, namespace: &str, name: &str) -> bool {
    let widget: Option<Widget> = cluster.world().get(namespace, name);
    widget
        .is_some_and(|widget| condition::is_true_of(conditions(&widget), "Ready", widget.metadata.generation))
}

pub fn conditions(widget: &Widget) -> &[Condition] {
    widget.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default()
}

/// The size that the child of a widget says.
pub fn boxed(cluster: &TestCluster, name: &str) -> Option<String> {
    let child: ConfigMap = cluster.world().get("default", &format!("{name}-box"))?;
    child.data.and_then(|data| data.get("size").cloned())
}

/// The writes that the server received, of all but leases and events: `patch configmaps/ one-box`.
pub fn writes(cluster: &TestCluster) -> Vec<String> {
    let requests = cluster.requests();
    let writes = requests.iter().filter(|one| {
        !matches!(one.verb, "get" | "list" | "watch") && !matches!(&*one.resource, "leases" | "events")
    });
    writes.map(|one| format!("{} {}/{} {}", one.verb, one.resource, one.subresource, one.name)).collect()
}
