//! Tokens that live in Secrets: they have no end of their own, and count as long as their Secret has them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::review::{Bearer, Checked};
use crate::api::object::meta_str;
use crate::api::server::{Request, Server};
use crate::api::user::User;
use crate::json::str_at;
use crate::kinds::World;

/// A label on Secrets: the day on which somebody last came with its token.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// A label on Secrets whose token is not to count any more.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

impl Server {
    /// Whom a token speaks for that lives in a Secret.
    ///
    /// # Errors
    /// When its account is gone, or the Secret, or has another token.
    pub(super) fn legacy_bearer(
        &self,
        token: &Checked,
        text: &str,
        now: Timestamp,
    ) -> Result<Bearer, String> {
        let claim = |name: &str, missing: &str| {
            let value = token.claims[format!("kubernetes.io/serviceaccount/{name}")].as_str();
            value.filter(|value| !value.is_empty()).ok_or_else(|| format!("{missing} claim is missing"))
        };
        let namespace = claim("namespace", "namespace")?;
        let secret_name = claim("secret.name", "secretName")?;
        let name = claim("service-account.name", "serviceAccountName")?;
        let claimed = claim("service-account.uid", "serviceAccountUID")?;
        let user = User::account(namespace, name);
        if token.claims["sub"].as_str() != Some(&user.name) {
            return Err("sub claim is invalid".to_owned());
        }
        let is_going = |object: &Value| !meta_str(object, "deletionTimestamp").is_empty();
        let secret = World::get(self, "", "Secret", namespace, secret_name)
            .filter(|secret| !is_going(secret))
            .ok_or("Token has been invalidated")?;
        if str_at(&secret, &["data", "token"]) != STANDARD.encode(text) {
            return Err("Token does not match server's copy".to_owned());
        }
        let account = World::get(self, "", "ServiceAccount", namespace, name)
            .ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
        if is_going(&account) {
            return Err(format!("ServiceAccount {namespace}/{name} has been deleted"));
        }
        let uid = meta_str(&account, "uid");
        if uid != claimed {
            return Err(format!("ServiceAccount UID ({uid}) does not match claim ({claimed})"));
        }
        if !str_at(&secret, &["metadata", "labels", INVALID_SINCE]).is_empty() {
            return Err(format!(
                "the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked \
                 invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
                 '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            ));
        }
        let (uid, audiences) = (claimed.to_owned(), token.audiences.clone());
        let used = Used::today(&secret, now);
        Ok(Bearer { user: User { uid, ..user }, audiences, used, lasts: false })
    }
}

/// That a token which lives in a Secret is used today, where the Secret does not say so yet. Whoever looks for tokens that
/// nobody needs any more looks there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    path: String,
    uid: String,
    day: String,
}

impl Used {
    fn today(secret: &Value, now: Timestamp) -> Option<Used> {
        let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
        let (today, tomorrow) = (day(now), day(now + SignedDuration::from_hours(24)));
        let said = str_at(secret, &["metadata", "labels", LAST_USED]);
        // Another server may be a day ahead.
        if said == today || said == tomorrow {
            return None;
        }
        let (namespace, name) = (meta_str(secret, "namespace"), meta_str(secret, "name"));
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        Some(Used { path, uid: meta_str(secret, "uid").to_owned(), day: today })
    }

    /// What writes it down.
    pub(crate) fn request(&self) -> Request {
        let patch = json!({"metadata": {"uid": self.uid, "labels": {LAST_USED: self.day}}});
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/merge-patch+json"));
        headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver"));
        Request {
            method: Method::PATCH,
            uri: self.path.parse().expect("names of objects make a path"),
            headers,
            body: patch.to_string().into(),
            user: Arc::new(User { name: "system:apiserver".into(), ..User::admin() }),
        }
    }
}
