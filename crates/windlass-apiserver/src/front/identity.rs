//! Who asks: client certificates and bearer tokens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderValue, Method, header};
use memchr::memchr;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use sha2::{Digest as _, Sha256};

use crate::api::{Authorization, Checked, NAMED, User};
use crate::status::Status;
use crate::x509;

/// How the users of a connection are known.
#[derive(Clone)]
pub struct Identity {
    certificates: Arc<dyn ClientCertVerifier>,
    /// By the token's digest: how long a look-up takes says nothing about a token.
    tokens: Arc<BTreeMap<[u8; 32], Arc<User>>>,
}

/// What tells which of a user's credentials was shown.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// What those who do not say who they are may read, where everybody else may do everything.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

impl Identity {
    /// Trusts these certificates, and these tokens.
    pub fn new(
        certificates: Arc<dyn ClientCertVerifier>,
        tokens: impl IntoIterator<Item = (String, User)>,
    ) -> Identity {
        let tokens =
            tokens.into_iter().map(|(token, user)| (digest(token.as_bytes()), Arc::new(user))).collect();
        Identity { certificates, tokens: Arc::new(tokens) }
    }

    /// Who the other end of a connection is by its certificates.
    pub(super) fn of_certificates(&self, chain: Option<&[CertificateDer<'_>]>) -> Certified {
        let Some((leaf, intermediates)) = chain.and_then(<[_]>::split_first) else {
            return Certified::Nobody;
        };
        match self.certificates.verify_client_cert(leaf, intermediates, UnixTime::now()) {
            Ok(_) => user(leaf),
            Err(error) => {
                tracing::debug!(%error, "a client certificate was refused");
                Certified::Refused
            }
        }
    }

    /// Whose request this is. A certificate counts before a token, and what is presented and wrong is not forgiven. A token
    /// that is not known here may be a service account's. Where requests are judged, those who do not say who they are go on
    /// as nobody in particular.
    pub(super) fn of_request<'a>(
        &self,
        certified: &Certified,
        method: &Method,
        path: &str,
        headers: &'a HeaderMap,
        judged: Authorization,
    ) -> Result<Shown<'a>, Status> {
        if let Certified::User(user) = certified {
            return Ok(Shown::User(user.clone()));
        }
        match bearer(headers) {
            Some(token) => {
                let digest = digest(token);
                if let Some(user) = self.tokens.get(&digest) {
                    return Ok(Shown::User(user.clone()));
                }
                Ok(Shown::Token(Token { text: token, digest }))
            }
            None if judged == Authorization::Rbac => match certified {
                Certified::Nobody => Ok(Shown::User(User::anonymous().into())),
                _ => Err(unauthorized()),
            },
            None => {
                let public = PUBLIC.contains(&path) && matches!(certified, Certified::Nobody);
                match *method {
                    _ if !public => Err(unauthorized()),
                    Method::GET => Ok(Shown::User(User::anonymous().into())),
                    _ => Err(forbidden(method, path)),
                }
            }
        }
    }
}

/// What is said to those whose token counts for nothing because of a space too many, and who show nothing else.
pub(super) fn warning(certified: &Certified, headers: &HeaderMap) -> Option<HeaderValue> {
    let is_ignored = bearer_word(headers).is_some_and(<[u8]>::is_empty);
    (is_ignored && !matches!(certified, Certified::User(_))).then_some(HeaderValue::from_static(
        "299 - \"the provided Authorization header contains extra space before the bearer token, and is ignored\"",
    ))
}

/// What a request shows of its sender.
pub(super) enum Shown<'a> {
    User(Arc<User>),
    Token(Token<'a>),
}

/// A bearer token that may be a service account's.
pub(super) struct Token<'a> {
    pub text: &'a [u8],
    digest: [u8; 32],
}

/// The token that was last shown on a connection, and found right in itself: a signature takes longer to check than most
/// requests to answer. And whom it spoke for, when what it names was last changed then.
#[derive(Default)]
pub(super) struct LastToken(Mutex<Option<Seen>>);

struct Seen {
    digest: [u8; 32],
    checked: Arc<Checked>,
    bearer: Option<(Named, Arc<User>)>,
}

/// When something was last changed of each of the kinds that tokens name.
pub(super) type Named = [u64; NAMED.len()];

impl LastToken {
    /// What the token says, as it was found before, or by this check.
    pub fn or_check(
        &self,
        token: &Token<'_>,
        check: impl FnOnce() -> Option<Checked>,
    ) -> Option<Arc<Checked>> {
        if let Some(seen) = &*self.lock()
            && seen.digest == token.digest
        {
            return Some(seen.checked.clone());
        }
        let checked = Arc::new(check()?);
        *self.lock() = Some(Seen { digest: token.digest, checked: checked.clone(), bearer: None });
        Some(checked)
    }

    /// Whom this token spoke for, if nothing that it names can have changed since.
    pub fn bearer(&self, token: &Arc<Checked>, now: &Named) -> Option<Arc<User>> {
        let seen = self.lock();
        let (then, user) = seen.as_ref().filter(|seen| Arc::ptr_eq(&seen.checked, token))?.bearer.as_ref()?;
        token.names().all(|kind| then[kind] == now[kind]).then(|| user.clone())
    }

    /// Notes whom the token spoke for.
    pub fn note(&self, token: &Arc<Checked>, then: Named, user: Arc<User>) {
        if let Some(seen) = &mut *self.lock()
            && Arc::ptr_eq(&seen.checked, token)
        {
            seen.bearer = Some((then, user));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who is at the other end of a connection.
pub(super) struct Caller {
    pub certified: Certified,
    pub last: LastToken,
}

impl From<Certified> for Caller {
    fn from(certified: Certified) -> Caller {
        Caller { certified, last: LastToken::default() }
    }
}

/// What a connection's certificates say.
#[derive(Clone, Debug)]
pub(super) enum Certified {
    Nobody,
    Refused,
    User(Arc<User>),
}

/// The user that a certificate in DER names. One without a name is as good as none.
fn user(certificate: &[u8]) -> Certified {
    let Some(named) = x509::of_certificate(certificate) else { return Certified::Refused };
    if named.common_name.is_empty() {
        return Certified::Nobody;
    }
    let mut user = User::new(&named.common_name, named.organizations.iter().map(String::as_str));
    let id = digest(certificate).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={id}")]);
    match named.uids.as_slice() {
        [] => Certified::User(user.into()),
        [uid] if !uid.is_empty() => Certified::User(User { uid: uid.clone(), ..user }.into()),
        _ => Certified::Refused,
    }
}

/// The token that is presented: the second word of the header. What follows it counts for nothing, and after two spaces there
/// is none.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    bearer_word(headers).filter(|token| !token.is_empty())
}

/// The second word of the header, if the first is `Bearer`.
fn bearer_word(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes().trim_ascii();
    let (scheme, rest) = value.split_at(memchr(b' ', value)?);
    let rest = &rest[1..];
    let word = &rest[..memchr(b' ', rest).unwrap_or(rest.len())];
    scheme.eq_ignore_ascii_case(b"bearer").then_some(word)
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Nobody in particular may read, and nothing else, not even whether it can be read.
fn forbidden(method: &Method, path: &str) -> Status {
    let verb = method.as_str().to_ascii_lowercase();
    let message = format!("forbidden: User \"system:anonymous\" cannot {verb} path {path:?}");
    let mut status = Status::new(403, "Forbidden", message);
    status.details = Some(Box::default());
    status
}

pub(super) fn unauthorized() -> Status {
    Status::new(401, "Unauthorized", "Unauthorized")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Issuer;
    use crate::front::signing::SigningKey;

    /// A signature is checked once for all requests that show it; what is wrong is never remembered as right.
    #[test]
    fn a_token_is_checked_once_on_a_connection() {
        let key = SigningKey::new(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let issuer = Issuer::new(Arc::new(key));
        let now = jiff::Timestamp::now();
        let claims =
            serde_json::json!({"iss": issuer.url, "aud": issuer.audiences, "exp": now.as_second() + 60});
        let (token, last) = (issuer.sign(&claims), LastToken::default());
        let mut checks = 0;
        let mut show = |token: &str| {
            let check = || {
                checks += 1;
                issuer.check(token, &[], now).ok().flatten()
            };
            let shown = Token { text: token.as_bytes(), digest: digest(token.as_bytes()) };
            let found = last.or_check(&shown, check).is_some();
            (found, checks)
        };
        let forged = format!("{}x", &token[..token.len() - 1]);
        assert_eq!(show(&token), (true, 1));
        assert_eq!(show(&token), (true, 1));
        assert_eq!(show(&forged), (false, 2));
        assert_eq!(show(&forged), (false, 3));
        assert_eq!(show(&token), (true, 3));
    }
}
