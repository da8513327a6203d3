//! What to do, as data.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use jiff::Timestamp;
use kube_core::Resource;
use kube_core::object::HasStatus;
use serde::Serialize;
use serde_json::Value;

use crate::{Kind, ObjectKey, Outcome, Problem};

/// What one pass wants of the world. The executor carries it out in this order: children and deletes as they were
/// added, then at most one effect, then the status, and only what differs from what is there.
///
/// Children that this parent owns, of a kind that its controller [owns], and that are not in the plan, are removed.
///
/// [owns]: https://docs.rs/windlass
///
/// ```
/// use std::time::Duration;
///
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// use windlass_core::{Outcome, Plan};
///
/// /// Every deployment has a config map that says how many replicas it wants.
/// fn plan(deployment: &Deployment) -> Plan<Deployment> {
///     let metadata = &deployment.metadata;
///     let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
///     let child = ConfigMap {
///         metadata: ObjectMeta {
///             name: metadata.name.as_ref().map(|name| format!("{name}-replicas")),
///             namespace: metadata.namespace.clone(),
///             ..ObjectMeta::default()
///         },
///         data: Some([("replicas".to_owned(), replicas.to_string())].into()),
///         ..ConfigMap::default()
///     };
///     Plan::new().apply(child).requeue_after(Duration::from_secs(600))
/// }
///
/// let mut web = Deployment::default();
/// web.metadata.name = Some("web".into());
/// web.metadata.namespace = Some("default".into());
/// let plan = plan(&web);
/// assert_eq!(plan.actions[0].to_string(), "apply ConfigMap default/web-replicas");
/// assert_eq!(plan.outcome, Outcome::After(Duration::from_secs(600)));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<K, E = NoEffect> {
    /// What to do, in order.
    pub actions: Vec<Action<E>>,
    /// The status that the object should have; `None` leaves it alone.
    pub status: Option<Value>,
    /// What should come next, where the actions do not say it.
    pub outcome: Outcome,
    object: PhantomData<fn() -> K>,
}

/// One thing to do. Complete: whoever does it needs no other knowledge.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<E = NoEffect> {
    /// A child has to be like this.
    Apply(Child),
    /// An object has to go.
    Delete(Delete),
    /// Something outside of the API server has to happen.
    Effect(E),
}

/// A child as it should be: only the fields that the operator has an opinion on.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Its kind.
    pub kind: Kind,
    /// Where it is.
    pub key: ObjectKey,
    /// What it should be. The executor adds the reference to the owner.
    pub object: Value,
}

/// An object that has to go, and why: the reason is checked by whoever plans and again by whoever deletes.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// Its kind.
    pub kind: Kind,
    /// Where it is.
    pub key: ObjectKey,
    /// Which one of that name: another one is not touched.
    pub uid: String,
    /// Where set, the object must not have changed since.
    pub resource_version: Option<String>,
    /// Why it has to go.
    pub because: String,
}

/// The effect of an operator that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEffect {}

impl<K, E> Plan<K, E> {
    /// A plan to do nothing, until something changes.
    pub fn new() -> Plan<K, E> {
        Plan { actions: Vec::new(), status: None, outcome: Outcome::AwaitChange, object: PhantomData }
    }

    /// A child has to be like this.
    ///
    /// # Panics
    /// When the child has no name: names are deterministic, so that a crash never leaves a second one. Or when it
    /// cannot be written as JSON, which Kubernetes types always can.
    #[must_use]
    pub fn apply<C>(mut self, child: C) -> Plan<K, E>
    where
        C: Resource<DynamicType = ()> + Serialize,
        C::Scope: 'static,
    {
        self.actions.push(Action::Apply(Child::new(child)));
        self
    }

    /// An object has to go: this one, not another of its name.
    #[must_use]
    pub fn delete<C>(mut self, object: &C, because: impl Into<String>) -> Plan<K, E>
    where
        C: Resource<DynamicType = ()>,
        C::Scope: 'static,
    {
        let metadata = object.meta();
        self.actions.push(Action::Delete(Delete {
            kind: Kind::of::<C>(),
            key: ObjectKey::of(metadata),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: None,
            because: because.into(),
        }));
        self
    }

    /// Something outside has to happen. One effect is done in a pass; the next pass observes again.
    #[must_use]
    pub fn effect(mut self, effect: E) -> Plan<K, E> {
        self.actions.push(Action::Effect(effect));
        self
    }

    /// The status that the object should have.
    ///
    /// # Panics
    /// When the status cannot be written as JSON.
    #[must_use]
    pub fn status(mut self, status: K::Status) -> Plan<K, E>
    where
        K: HasStatus,
        K::Status: Serialize,
    {
        self.status = Some(serde_json::to_value(status).expect("a status is JSON"));
        self
    }

    /// Another look after a while, changed or not.
    #[must_use]
    pub fn requeue_after(mut self, delay: Duration) -> Plan<K, E> {
        self.outcome = Outcome::After(delay);
        self
    }

    /// Another look at a time.
    #[must_use]
    pub fn wait_until(mut self, time: Timestamp) -> Plan<K, E> {
        self.outcome = Outcome::At(time);
        self
    }

    /// This cannot be done until the spec changes. It shows as a condition. Children that are not in the plan stay: what
    /// an earlier spec asked for is better than nothing.
    #[must_use]
    pub fn terminal(mut self, reason: impl Into<String>, message: impl Into<String>) -> Plan<K, E> {
        self.outcome = Outcome::Terminal(Problem { reason: reason.into(), message: message.into() });
        self
    }

    /// Whether children that are not in the plan are removed: not by a plan that says that it cannot be done.
    pub fn prunes(&self) -> bool {
        !matches!(self.outcome, Outcome::Terminal(_))
    }
}

impl<K, E> Default for Plan<K, E> {
    fn default() -> Plan<K, E> {
        Plan::new()
    }
}

impl Child {
    /// A child from its type.
    ///
    /// # Panics
    /// As [`Plan::apply`].
    pub fn new<C>(child: C) -> Child
    where
        C: Resource<DynamicType = ()> + Serialize,
        C::Scope: 'static,
    {
        let kind = Kind::of::<C>();
        let key = ObjectKey::of(child.meta());
        assert!(
            !key.name().is_empty(),
            "a child of kind {kind} has no name: give it one that its parent determines"
        );
        let mut object = serde_json::to_value(child).expect("Kubernetes types are JSON");
        object["apiVersion"] = Value::from(kind.resource.api_version.clone());
        object["kind"] = Value::from(kind.resource.kind.clone());
        Child { kind, key, object }
    }
}

impl<E: fmt::Display> fmt::Display for Action<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Apply(child) => write!(f, "apply {} {}", child.kind, child.key),
            Action::Delete(delete) => write!(f, "delete {} {}: {}", delete.kind, delete.key, delete.because),
            Action::Effect(effect) => write!(f, "{effect}"),
        }
    }
}

impl fmt::Display for NoEffect {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
