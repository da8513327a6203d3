//! Build Kubernetes operators in Rust: say what should be, and the framework makes it so.
//!
//! ```text
//! API server ─► source ─► cache ─► event {old, new} ─► predicate, mapper ─► queue (key, cause, priority)
//!      ▲                                                                            │
//!      └────────── executor ◄── plan ◄── observe ◄── worker ◄───────────────────────┘
//! ```
//!
//! - An [`Operator`] is the one definition: what its program runs, what `manifests` prints, what a test starts.
//! - A [`Controller`] says which objects are looked at, and when: [`owns`](Controller::owns),
//!   [`watches`](Controller::watches), [`reads`](Controller::reads).
//! - A [`Planner`] is the operator's knowledge: it observes, and plans as a pure function. The [`executor`] applies what
//!   differs. A function that acts as it decides is possible, too: [`Controller::raw`].
//! - A [`Context`] is what a pass has at hand: the [`cache`], the operator's own state, [`events`].
//! - [`Env`] is where time, randomness and tasks come from, so that a test can repeat what happened.
//! - Around them: [`election`], [`metrics`] under controller-runtime's names, [`health`], [`http`], [`log`], a [`client`]
//!   that repeats only what is safe to repeat.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use windlass::core::plan::NoEffect;
//! use windlass::core::Plan;
//! use windlass::jiff::Timestamp;
//! use windlass::k8s_openapi::api::core::v1::{ConfigMap, Namespace};
//! use windlass::kube::ResourceExt as _;
//! use windlass::kube::api::ObjectMeta;
//! use windlass::{Context, Controller, Env, Error, Operator, Planner, Settings};
//!
//! /// Every namespace has a ConfigMap that says its name.
//! struct Greeter;
//!
//! impl Planner for Greeter {
//!     type Object = Namespace;
//!     type Observed = ();
//!     type Effect = NoEffect;
//!
//!     async fn observe(&self, _: &Context, _: &Namespace) -> Result<(), Error> {
//!         Ok(())
//!     }
//!
//!     fn plan(&self, namespace: &Namespace, _: &(), _: Timestamp) -> Plan<Namespace> {
//!         let name = namespace.name_any();
//!         Plan::new().apply(ConfigMap {
//!             metadata: ObjectMeta {
//!                 name: Some("hello".into()),
//!                 namespace: Some(name.clone()),
//!                 ..ObjectMeta::default()
//!             },
//!             data: Some(BTreeMap::from([("namespace".into(), name)])),
//!             ..ConfigMap::default()
//!         })
//!     }
//! }
//!
//! fn operator() -> Operator {
//!     Operator::new("greeter", "0.1.0").controller(Controller::new(Greeter).owns::<ConfigMap>())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // In a test, on a server in the same process; `operator().main()` is the program.
//! let cluster = windlass_testing::TestCluster::new().await;
//! let running = operator().start(cluster.client(), Settings::for_tests(Env::system())).await.unwrap();
//! let says = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["namespace"] == "default");
//! cluster.wait_for("default", "hello", "the greeting", says).await.unwrap();
//! running.stop().await.unwrap();
//! # }
//! ```
//!
//! The book's first chapter builds an operator step by step. The examples of this crate show one concept each.

pub mod cache;
pub mod client;
mod context;
mod controller;
pub mod election;
pub mod env;
mod error;
pub mod events;
pub mod executor;
pub mod health;
pub mod http;
pub mod log;
pub mod metrics;
pub mod operator;
mod planner;
mod rules;
pub mod source;
pub mod write;

pub use context::Context;
pub use controller::{Controller, PAUSED, RECONCILE_NOW};
pub use env::Env;
pub use error::Error;
pub use operator::{Operator, Running, Settings};
pub use planner::{Object, Planner};
pub use rules::Rules;

pub use windlass_core as core;
pub use {jiff, k8s_openapi, kube, schemars, serde, serde_json};
