//! The walk-through operator: a `FooBar` names a target, and a ConfigMap holds it.

pub mod api;
pub mod build;
pub mod goal;
pub mod observe;
pub mod status;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::core::Plan;
use windlass::core::plan::NoEffect;
use windlass::jiff::Timestamp;
use windlass::{Context, Controller, Error, Operator, Planner};

use api::FooBar;
use observe::Observed;

/// Decides what a FooBar needs. Pure.
pub fn plan(foobar: &FooBar, seen: &Observed, now: Timestamp) -> Plan<FooBar> {
    Plan::new().apply(build::config_map(foobar)).status(status::of(foobar, seen, now))
}

/// The knowledge of this operator.
#[derive(Debug)]
pub struct FooBarPlanner;

impl Planner for FooBarPlanner {
    type Object = FooBar;
    type Observed = Observed;
    type Effect = NoEffect;

    /// A FooBar goes when its ConfigMap has gone.
    const FINALIZER: Option<&'static str> = Some("test.example.com/cleanup");

    async fn observe(&self, ctx: &Context, foobar: &FooBar) -> Result<Observed, Error> {
        observe::observe(ctx, foobar)
    }

    fn plan(&self, foobar: &FooBar, seen: &Observed, now: Timestamp) -> Plan<FooBar> {
        plan(foobar, seen, now)
    }
}

/// The one definition: what `run` runs, `manifests` prints and tests start.
pub fn operator() -> Operator {
    Operator::new("foobar-operator", env!("CARGO_PKG_VERSION"))
        .crd::<FooBar>()
        .controller(Controller::new(FooBarPlanner).owns::<ConfigMap>())
}
