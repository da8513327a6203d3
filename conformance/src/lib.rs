//! How we know that the embedded API server answers like kube-apiserver: the same requests to both.
//!
//! ```text
//! sequences/*.yaml ┐                        ┌▶ kube-apiserver + etcd ─▶ transcript ┐
//! generate (seed)  ┼▶ sequences ─▶ suite ─▶ run                                     compare ─▶ report
//! kubectl          ┘                        └▶ our server ───────────▶ transcript ┘     ▲
//!                                                                     docs/api-differences.md
//! ```
//!
//! `rules.yaml` names the rules; every sequence is about one. Nothing says what an answer should be: the real
//! server does, live in `make conformance`, or as recorded in `recorded/` for `make test`.

pub mod answer;
pub mod certificates;
pub mod client;
pub mod compare;
pub mod controllers;
pub mod envtest;
pub mod explained;
pub mod generate;
pub mod hook;
pub mod kubectl;
pub mod kubelet;
pub mod local;
pub mod metrics;
pub mod node;
pub mod operators;
pub mod plant;
pub mod proto;
pub mod published;
pub mod recorded;
pub mod report;
pub mod rng;
pub mod rules;
pub mod run;
pub mod sequence;
pub mod servers;
pub mod streams;
pub mod suite;
pub mod vars;
