//! The built-in controllers beside kube-controller-manager: the same scenarios, and the end states compared.
//!
//! ```text
//! controllers/GROUP/*.yaml ─▶ play ─┬▶ real: kube-apiserver + kube-controller-manager ─▶ picture ┐
//!                              ▲    ├▶ ours: kube-apiserver + our controllers ─────────▶ picture ┼▶ diff
//!                            puppet └▶ embedded: our server + our controllers ─────────▶ picture ┤
//!                                                                  controllers/recorded/ ────────┘
//! ```
//!
//! Neither side has a node: a [puppet] moves pods as their images are named. `make conformance ARGS=controllers` runs
//! both sides on real servers, `ARGS=record-controllers` writes the real end states down, and `make test` plays all
//! scenarios on our own server, in no time, against what was written. See `controllers/README.md`.
//!
//! With `--with-node` there is no puppet: our nodes run the pods as processes, on both sides, and what the puppet would
//! write is brought about on these by [strings].
//!
//! ```text
//! controllers/GROUP/*.yaml ─▶ play ─┬▶ kube-apiserver + kube-controller-manager + our nodes ─▶ picture ┐
//!                              ▲    └▶ kube-apiserver + our controllers + our nodes ─────────▶ picture ┴▶ diff
//!                           strings
//! ```

pub mod api;
mod chance;
pub mod diff;
mod heart;
pub mod mirror;
pub mod normal;
pub mod play;
pub mod puppet;
pub mod recorded;
pub mod run;
pub mod scenario;
pub mod side;
pub mod strings;
mod troupe;
