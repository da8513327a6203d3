//! What can be set.

use jiff::SignedDuration;

use super::admission::Plugins;
use super::authorize::Authorization;
use super::token::Issuer;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// What `/version` says.
    pub version: String,
    /// How long history is kept for watches and continued lists.
    pub history: SignedDuration,
    /// The largest request body.
    pub body_max: usize,
    /// The address under which clients reach the server, as `/api` tells them.
    pub address: String,
    /// The certificate authority of client certificates, in PEM, for `extension-apiserver-authentication`.
    pub client_ca: String,
    /// Who signs tokens of service accounts; without it there are none.
    pub tokens: Option<Issuer>,
    /// The admission plugins that are on: those of kube-apiserver, but for ServiceAccount, which is off where no controller
    /// makes the account `default` of each namespace.
    pub plugins: Plugins,
    /// How requests are judged.
    pub authorization: Authorization,
    /// How many of the latest requests [`Server::audit`](super::Server::audit) remembers: for tests. A server that nobody
    /// looks into is better without.
    pub audit_max: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            version: "v1.36.4".into(),
            history: SignedDuration::from_mins(5),
            body_max: 3 << 20,
            address: "127.0.0.1:6443".into(),
            client_ca: String::new(),
            tokens: None,
            plugins: Plugins::default().without(["ServiceAccount"]).expect("a plugin"),
            authorization: Authorization::Rbac,
            audit_max: 10_000,
        }
    }
}
