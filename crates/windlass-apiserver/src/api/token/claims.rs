//! What a token says.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::api::object::meta_str;

/// Whom a token is for and what it is bound to.
pub(super) struct Claims<'a> {
    pub account: &'a Value,
    /// The pod, secret or node whose end ends the token, as `("pod", …)`.
    pub bound: Vec<(&'static str, Value)>,
    pub audiences: &'a [String],
    pub lifetime: SignedDuration,
    /// After how long the bearer is taken to be late.
    pub warn_after: Option<SignedDuration>,
    pub id: String,
}

impl Claims<'_> {
    /// In the order that Go writes a map: by name.
    pub fn to_value(&self, issuer: &str, now: Timestamp) -> Value {
        let (namespace, name) = (meta_str(self.account, "namespace"), meta_str(self.account, "name"));
        let after = |wait: SignedDuration| (now + wait).as_second();
        let mut own = Map::new();
        own.insert("namespace".into(), namespace.into());
        for (kind, object) in self.bound.iter().filter(|(kind, _)| *kind < "serviceaccount") {
            own.insert((*kind).into(), reference(object));
        }
        own.insert("serviceaccount".into(), reference(self.account));
        if let Some(wait) = self.warn_after {
            own.insert("warnafter".into(), after(wait).into());
        }
        json!({
            "aud": self.audiences,
            "exp": after(self.lifetime),
            "iat": now.as_second(),
            "iss": issuer,
            "jti": self.id,
            "kubernetes.io": own,
            "nbf": now.as_second(),
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
        })
    }
}

/// Name and uid; a node that is not there has no uid.
fn reference(object: &Value) -> Value {
    let mut reference = Map::new();
    for field in ["name", "uid"] {
        let text = meta_str(object, field);
        if !text.is_empty() {
            reference.insert(field.into(), text.into());
        }
    }
    Value::Object(reference)
}
