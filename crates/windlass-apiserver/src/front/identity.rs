//! Who asks: client certificates and bearer tokens.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, Method, header};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use sha2::{Digest as _, Sha256};

use super::subject;
use crate::api::User;
use crate::status::Status;

/// How the users of a connection are known.
#[derive(Clone)]
pub struct Identity {
    certificates: Arc<dyn ClientCertVerifier>,
    /// By the token's digest: how long a look-up takes says nothing about a token.
    tokens: Arc<BTreeMap<[u8; 32], User>>,
}

/// What those who do not say who they are may read.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

impl Identity {
    /// Trusts these certificates, and these tokens.
    pub fn new(
        certificates: Arc<dyn ClientCertVerifier>,
        tokens: impl IntoIterator<Item = (String, User)>,
    ) -> Identity {
        let tokens = tokens.into_iter().map(|(token, user)| (digest(token.as_bytes()), user)).collect();
        Identity { certificates, tokens: Arc::new(tokens) }
    }

    /// Who the other end of a connection is by its certificates.
    pub(super) fn of_certificates(&self, chain: Option<&[CertificateDer<'_>]>) -> Certified {
        let Some((leaf, intermediates)) = chain.and_then(<[_]>::split_first) else {
            return Certified::Nobody;
        };
        match self.certificates.verify_client_cert(leaf, intermediates, UnixTime::now()) {
            Ok(_) => subject::user(leaf).map_or(Certified::Refused, Certified::User),
            Err(error) => {
                tracing::debug!(%error, "a client certificate was refused");
                Certified::Refused
            }
        }
    }

    /// Whose request this is. A certificate counts before a token, and what is presented and wrong is not forgiven.
    /// `account` knows the tokens of service accounts.
    pub(super) fn of_request(
        &self,
        certified: &Certified,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        account: impl FnOnce(&str) -> Option<User>,
    ) -> Result<User, Status> {
        if let Certified::User(user) = certified {
            return Ok(user.clone());
        }
        match bearer(headers) {
            Some(token) => {
                let known = self.tokens.get(&digest(token)).cloned();
                known.or_else(|| account(std::str::from_utf8(token).ok()?)).ok_or_else(unauthorized)
            }
            None => {
                let public = PUBLIC.contains(&path) && matches!(certified, Certified::Nobody);
                match *method {
                    _ if !public => Err(unauthorized()),
                    Method::GET => Ok(anonymous()),
                    _ => Err(forbidden(method, path)),
                }
            }
        }
    }
}

/// What a connection's certificates say.
#[derive(Clone, Debug)]
pub(super) enum Certified {
    Nobody,
    Refused,
    User(User),
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii()).filter(|token| !token.is_empty())
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn anonymous() -> User {
    User { name: "system:anonymous".into(), groups: vec!["system:unauthenticated".into()] }
}

/// Nobody in particular may read, and nothing else, not even whether it can be read.
fn forbidden(method: &Method, path: &str) -> Status {
    let verb = method.as_str().to_ascii_lowercase();
    let message = format!("forbidden: User \"system:anonymous\" cannot {verb} path {path:?}");
    let mut status = Status::new(403, "Forbidden", message);
    status.details = Some(Box::default());
    status
}

fn unauthorized() -> Status {
    Status::new(401, "Unauthorized", "Unauthorized")
}
