//! Whose token it is.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Used;
use super::issuer::{Issuer, LEGACY};
use super::request::texts;
use crate::api::object::meta_str;
use crate::api::options::WriteOptions;
use crate::api::response::Response;
use crate::api::server::{Call, Server};
use crate::api::user::User;
use crate::json::str_at;
use crate::kinds::World;
use crate::status::{Result, Status};

/// Whom a token speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer {
    /// The user.
    pub user: User,
    /// For whom the token is, of those that were asked for.
    pub audiences: Vec<String>,
    /// What has to be written down of the use of a token that lives in a Secret.
    pub used: Option<Used>,
    /// Whether it stays so until an object of a kind that the token names changes.
    pub lasts: bool,
}

/// The kinds that a token may name, by their plurals; all are of the core group.
pub const NAMED: [&str; 4] = ["serviceaccounts", "secrets", "pods", "nodes"];

/// How far clocks may be apart.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);

impl Issuer {
    /// What a token of this issuer says, if its signature is right, it is for one of `audiences` (for the API server where
    /// there are none) and this is its time. `Ok(None)` where it is somebody else's.
    ///
    /// # Errors
    /// When it is a token of this issuer and does not count, with the reason.
    pub fn check(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
    ) -> std::result::Result<Option<Checked>, String> {
        let Some(claims) = self.verify(token)? else { return Ok(None) };
        let wanted = if audiences.is_empty() { &self.audiences } else { audiences };
        let is_legacy = claims["iss"].as_str() == Some(LEGACY);
        let given = if is_legacy { self.audiences.clone() } else { texts(&claims["aud"]) };
        let both: Vec<String> = given.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
        if both.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted(&given),
                quoted(wanted)
            ));
        }
        let legacy = is_legacy.then(|| token.to_owned());
        let checked = Checked { claims, audiences: both, legacy };
        checked.is_timely(now)?;
        Ok(Some(checked))
    }
}

/// A token that is right in itself; whether what it names is still there, the server knows.
#[derive(Debug)]
pub struct Checked {
    pub(super) claims: Value,
    pub(super) audiences: Vec<String>,
    /// The token itself, where it is one that lives in a Secret.
    pub(super) legacy: Option<String>,
}

impl Checked {
    /// The kinds of what it names, as places in [`NAMED`].
    pub fn names(&self) -> impl Iterator<Item = usize> {
        let own = &self.claims["kubernetes.io"];
        let words = ["serviceaccount", "secret", "pod", "node"];
        words.into_iter().enumerate().filter(|(_, word)| !own[word].is_null()).map(|(index, _)| index)
    }

    /// Whether this is its time.
    ///
    /// # Errors
    /// It is not, with the reason.
    pub fn is_timely(&self, now: Timestamp) -> std::result::Result<(), String> {
        let time =
            |name: &str| self.claims[name].as_i64().and_then(|second| Timestamp::from_second(second).ok());
        let past = |time: Option<Timestamp>| time.is_some_and(|time| time + LEEWAY < now);
        let future = |time: Option<Timestamp>| time.is_some_and(|time| time - LEEWAY > now);
        match () {
            () if future(time("nbf")) => Err("service account token is not valid yet".to_owned()),
            () if past(time("exp")) => Err("service account token has expired".to_owned()),
            () if future(time("iat")) => Err("service account token is issued in the future".to_owned()),
            () => Ok(()),
        }
    }
}

impl Server {
    /// Whom a token speaks for.
    ///
    /// # Errors
    /// When its account is gone, or what it is bound to.
    pub fn bearer(&self, token: &Checked, now: Timestamp) -> std::result::Result<Bearer, String> {
        if let Some(text) = &token.legacy {
            return self.legacy_bearer(token, text, now);
        }
        let own = &token.claims["kubernetes.io"];
        let namespace = own["namespace"].as_str().unwrap_or_default();
        let named = |kind: &str, field: &str| str_at(own, &[kind, field]).to_owned();
        let name = named("serviceaccount", "name");
        let mut lasts = true;
        let mut deleted = |object: &Value| {
            let since = meta_str(object, "deletionTimestamp").parse::<Timestamp>();
            lasts &= since.is_err();
            since.is_ok_and(|since| since < now - LEEWAY)
        };
        let account = World::get(self, "", "ServiceAccount", namespace, &name)
            .ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
        let (uid, claimed) = (meta_str(&account, "uid"), named("serviceaccount", "uid"));
        if uid != claimed {
            return Err(format!("service account UID ({uid}) does not match claim ({claimed})"));
        }
        if deleted(&account) {
            return Err(format!("service account {namespace}/{name} has been deleted"));
        }
        let pod_bound = !own["pod"].is_null();
        for (kind, word, shown) in
            [("secret", "Secret", "secret"), ("pod", "Pod", "pod"), ("node", "Node", "node")]
        {
            // The node of a pod is only told.
            if own[kind].is_null() || (kind == "node" && pod_bound) {
                continue;
            }
            let place = if kind == "node" { "" } else { namespace };
            let invalidated = || "service account token has been invalidated".to_owned();
            let object = World::get(self, "", word, place, &named(kind, "name")).ok_or_else(invalidated)?;
            let (uid, claimed) = (meta_str(&object, "uid"), named(kind, "uid"));
            if uid != claimed {
                return Err(format!(
                    "{shown} UID ({uid}) does not match service account {shown} ref claim ({claimed})"
                ));
            }
            if deleted(&object) {
                return Err(invalidated());
            }
        }
        let id = token.claims["jti"].as_str().unwrap_or_default();
        let extra = [
            ("authentication.kubernetes.io/credential-id", format!("JTI={id}")),
            ("authentication.kubernetes.io/node-name", named("node", "name")),
            ("authentication.kubernetes.io/node-uid", named("node", "uid")),
            ("authentication.kubernetes.io/pod-name", named("pod", "name")),
            ("authentication.kubernetes.io/pod-uid", named("pod", "uid")),
        ];
        let known = |(_, value): &(&str, String)| !value.is_empty() && value != "JTI=";
        let extra = extra.into_iter().filter(known).map(|(key, value)| (key.to_owned(), vec![value]));
        let user = User { uid: claimed, extra: extra.collect(), ..User::account(namespace, &name) };
        Ok(Bearer { user, audiences: token.audiences.clone(), used: None, lasts })
    }

    /// A TokenReview: it is answered, and not kept.
    pub(in crate::api) fn review_token(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let resource = call.target.resource.clone();
        let config = self.config.clone();
        let Some(issuer) = &config.tokens else {
            return Err(Status::method_not_supported(&resource.group, &resource.plural, "create"));
        };
        let options = WriteOptions::parse(call.query, &call.user_agent(), "CreateOptions")?;
        let mut review = crate::api::decode::body(call, &resource, options.validation)?;
        self.own(call, &resource, &options, None, &mut review);
        let token = str_at(&review, &["spec", "token"]);
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let checked = issuer.check(token, &texts(&review["spec"]["audiences"]), call.now);
        let bearer = match checked {
            Ok(Some(checked)) => self.bearer(&checked, call.now),
            Ok(None) => Err(String::new()),
            Err(error) => Err(error),
        };
        if let Ok(Bearer { used: Some(used), .. }) = &bearer {
            // The answer is the same where it cannot be written down.
            drop(self.step(used.request(), call.now, call.ids));
        }
        review["status"] = match bearer {
            Ok(bearer) => told(&bearer),
            Err(why) if why.is_empty() => json!({"user": {}, "error": "invalid bearer token"}),
            Err(why) => json!({"user": {}, "error": format!("[invalid bearer token, {why}]")}),
        };
        Ok(Response::tree(201, &call.output, &review))
    }
}

fn told(bearer: &Bearer) -> Value {
    json!({"authenticated": true, "user": bearer.user.told(), "audiences": bearer.audiences})
}

/// A list of texts as Go prints it with `%q`.
fn quoted(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", all.join(" "))
}
