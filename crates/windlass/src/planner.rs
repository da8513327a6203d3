//! The pure heart of an operator, and what surrounds it.

use std::fmt;
use std::future::Future;

use jiff::Timestamp;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_core::Plan;

use crate::{Context, Error};

/// A kind that a controller can be for: a Kubernetes type, or one that `#[derive(CustomResource)]` made.
pub trait Object:
    Resource<DynamicType = (), Scope: 'static>
    + DeserializeOwned
    + Serialize
    + Clone
    + fmt::Debug
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope: 'static>
        + DeserializeOwned
        + Serialize
        + Clone
        + fmt::Debug
        + Send
        + Sync
        + 'static
{
}

/// An operator's knowledge of one kind: look, decide, act.
///
/// # Expected flow
/// 1. [`observe`](Planner::observe) reads what the decision needs, from the cache and from outside.
/// 2. [`plan`](Planner::plan) decides, as a pure function.
/// 3. The executor applies the children that differ, does at most one effect through
///    [`perform`](Planner::perform), and writes the status if it changed.
/// 4. When something was written, it starts at 1 again.
///
/// # Guarantees
/// - An object is never reconciled twice at once, and never before the operator's own last writes of it are seen.
/// - With a [`FINALIZER`](Planner::FINALIZER), nothing is written outside of the object before it carries the finalizer,
///   and the finalizer stays until [`cleanup`](Planner::cleanup) has nothing left to do.
///
/// # Assumptions
/// - The process may end between any two writes: whatever is there then is where the next pass starts.
/// - `plan` and `cleanup` read no clock, no client and no memory: the same arguments give the same plan.
pub trait Planner: Send + Sync + 'static {
    /// The kind that this is for.
    type Object: Object;
    /// What a decision needs to know beside the object.
    type Observed: Send + Sync;
    /// What can be done outside of the API server; [`NoEffect`](crate::core::plan::NoEffect) for nothing.
    type Effect: Clone + fmt::Debug + fmt::Display + PartialEq + Send + Sync + 'static;

    /// The finalizer that keeps an object until it is cleaned up; `None` where deletion needs nothing.
    const FINALIZER: Option<&'static str> = None;

    /// Reads what a decision needs.
    fn observe(
        &self,
        ctx: &Context,
        object: &Self::Object,
    ) -> impl Future<Output = Result<Self::Observed, Error>> + Send;

    /// Decides what has to be. Pure.
    fn plan(
        &self,
        object: &Self::Object,
        seen: &Self::Observed,
        now: Timestamp,
    ) -> Plan<Self::Object, Self::Effect>;

    /// Decides what has to be done before a deleted object may go. Pure.
    ///
    /// Children that are not in this plan are removed; by default none are. When there is nothing left to do, the
    /// finalizer is removed. Without a [`FINALIZER`](Planner::FINALIZER) it is never called.
    fn cleanup(
        &self,
        object: &Self::Object,
        seen: &Self::Observed,
        now: Timestamp,
    ) -> Plan<Self::Object, Self::Effect> {
        let _ = (object, seen, now);
        Plan::new()
    }

    /// Does one effect. It may be done again after a crash: make it so that the second time does no harm.
    fn perform(
        &self,
        ctx: &Context,
        object: &Self::Object,
        effect: &Self::Effect,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (ctx, object);
        let message = format!("the planner plans `{effect}`, and has no `perform` that does it");
        async { Err(Error::terminal("EffectNotImplemented", message)) }
    }
}
