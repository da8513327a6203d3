//! Requests in, responses out: routing, negotiation, verbs, discovery and watches as one synchronous step.
//!
//! ```text
//! Request → route → verb → decode → prepare → own (managedFields) → validate → commit → Response
//!                     └→ list, get, watch: bytes copied from the store, never serialised
//! ```
//!
//! [`Server::step`] never blocks. What somebody else answers (a node about its containers) comes back as [`Step::Relay`]:
//! the front goes there and passes the answer on. What has to wait for a revision that is not there yet comes back as
//! [`Step::Wait`], and goes on by [`Server::resume`]; what has to ask the outside (webhooks) comes back as
//! [`Step::Call`], and goes on by [`Server::answered`]. The front waits, or asks.

mod about;
pub mod admission;
mod allowance;
pub mod audit;
mod authorize;
mod bind;
mod bootstrap;
mod conditions;
mod config;
mod conversion;
mod convert;
mod create;
mod custom;
mod decode;
mod definitions;
mod delete;
mod discovery;
mod evict;
mod filter;
mod flows;
mod health;
mod list;
mod matching;
mod negotiate;
mod object;
mod openapi;
mod options;
mod patch;
mod piece;
mod policies;
mod read;
pub mod registry;
mod relay;
mod response;
mod retype;
mod route;
mod scale;
mod server;
mod shape;
mod shown;
mod token;
mod update;
mod user;
mod watch;
mod webhooks;
mod yaml;

pub use about::{About, Labels};
pub use allowance::{allowance, timed_out};
pub use authorize::{Attributes, Authorization, UnknownMode};
pub use config::Config;
pub use conversion::{Known, Wanted};
pub use list::ListBody;
pub use piece::Piece;
pub use relay::{Peer, Relay, Relayed};
pub use response::{Body, Response, warn};
pub use route::Verb;
pub use server::{Ids, Pending, Request, Server, Step, refuse, too_large};
pub use token::{Bearer, Checked, Issuer, NAMED, Signer, Used};
pub use user::User;
pub use watch::{Watch, WatchPoll};
pub use webhooks::{Consulted, Failure, Place, Question, Reply, Review, Service};
pub use yaml::write as write_yaml;
