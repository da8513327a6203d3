//! Tokens that live in Secrets: a Secret of the type `kubernetes.io/service-account-token` gets the token of the account
//! that it names, and goes with it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ObjectReference, Secret, ServiceAccount};
use serde_json::{Value, json};
use windlass::Object;
use windlass::cache::Index;
use windlass_core::{Kind, ObjectKey};

use super::authority::Authority;
use crate::engine::{Controller, LookUp, Looked, Turn, View, Wiring};

/// Fills the Secrets that hold tokens of service accounts. Without a key it does nothing, as kube-controller-manager without
/// `--service-account-private-key-file`.
#[derive(Clone, Default)]
pub struct Tokens {
    signer: Option<Arc<Sign>>,
    authority: Authority,
}

/// Who makes a signed token of what one says.
type Sign = dyn Fn(&Value) -> String + Send + Sync;

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// The index of token Secrets by the account that they name, as text.
const BY_ACCOUNT: &str = "token of";

impl Tokens {
    /// Tokens are signed so: by the key that the API server knows them by. Beside them is the authority that the API server
    /// publishes.
    pub fn new(sign: impl Fn(&Value) -> String + Send + Sync + 'static) -> Tokens {
        Tokens { signer: Some(Arc::new(sign)), authority: Authority::default() }
    }

    /// Beside the tokens are these certificates, in PEM.
    #[must_use]
    pub fn authority(self, authority: impl Into<String>) -> Tokens {
        Tokens { authority: Authority::given(authority), ..self }
    }
}

impl Controller for Tokens {
    fn name(&self) -> &'static str {
        "serviceaccount-token-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        if self.signer.is_none() {
            return;
        }
        wiring.index::<Secret>(Index::new(BY_ACCOUNT, |secret: &Secret| {
            account_of(secret).map(|account| account.to_string()).into_iter().collect()
        }));
        wiring.maps::<Secret>(|secret, _| account_of(secret).map(|_| key_of(secret)).into_iter().collect());
        wiring.maps::<ServiceAccount>(|account, view| {
            let tokens = view.by_index::<Secret>(BY_ACCOUNT, &key_of(account).to_string());
            tokens.iter().map(|secret| key_of(&**secret)).collect()
        });
        self.authority.leads_to(wiring, |view| {
            let all = view.list::<Secret>(None);
            all.iter().filter(|secret| account_of(secret).is_some()).map(|secret| key_of(&**secret)).collect()
        });
    }

    fn sign(&self, claims: &Value) -> Option<String> {
        self.signer.as_ref().map(|sign| sign(claims))
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, _: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let found = view.get::<Secret>(key).and_then(|secret| Some((account_of(&secret)?, secret)));
        match found {
            None => forget(key, view, &mut turn),
            Some((account, secret)) => match is_there(&account, &secret, view, &mut turn) {
                // Nothing is done before the server has said it.
                None => {}
                Some(None) => turn.delete(&*secret),
                Some(Some(uid)) => self.fill(&secret, &account, &uid, view, &mut turn),
            },
        }
        turn
    }
}

impl Tokens {
    /// What a Secret lacks is added; what it has is left, but for the certificates.
    fn fill(&self, secret: &Secret, account: &ObjectKey, uid: &str, view: &View<'_>, turn: &mut Turn) {
        let has = |field: &str| {
            let data = secret.data.as_ref().and_then(|data| data.get(field));
            data.map(|bytes| bytes.0.as_slice()).filter(|bytes| !bytes.is_empty())
        };
        let mut new = Vec::new();
        if let Some(authority) = self.authority.get(view)
            && has("ca.crt") != Some(authority.as_bytes())
        {
            new.push(("ca.crt", authority));
        }
        if has("namespace").is_none() {
            new.push(("namespace", account.namespace().unwrap_or_default().to_owned()));
        }
        if has("token").is_none() {
            let claims = claims(account, uid, key_of(secret).name());
            let Some(token) = view.token(&claims) else {
                turn.look_up(LookUp::Token(claims));
                return;
            };
            new.push(("token", token.to_owned()));
        }
        if new.is_empty() {
            return;
        }
        let mut secret = secret.clone();
        let annotations = secret.metadata.annotations.get_or_insert_default();
        annotations.insert(ACCOUNT_NAME.into(), account.name().into());
        annotations.insert(ACCOUNT_UID.into(), uid.into());
        let data = secret.data.get_or_insert_default();
        data.extend(new.into_iter().map(|(field, text)| (field.to_owned(), ByteString(text.into_bytes()))));
        turn.replace(&secret);
    }
}

/// The uid of the account that a Secret is for, `Some(None)` where there is none of that name and uid. What is not seen yet,
/// the server is asked for: a Secret is not to go because the watch of accounts is late.
fn is_there(
    account: &ObjectKey,
    secret: &Secret,
    view: &View<'_>,
    turn: &mut Turn,
) -> Option<Option<String>> {
    let wanted = annotation(secret, ACCOUNT_UID);
    let fits = |uid: &Option<String>| wanted.is_none() || uid.as_deref() == wanted;
    if let Some(uid) =
        view.get::<ServiceAccount>(account).map(|found| found.metadata.uid.clone()).filter(fits)
    {
        return Some(uid);
    }
    let kind = Kind::of::<ServiceAccount>();
    match view.looked(&kind, account) {
        Looked::NotYet => {
            turn.look_up(LookUp::Object { kind, key: account.clone() });
            None
        }
        Looked::Missing => Some(None),
        Looked::There(meta) => Some(meta.uid.clone().filter(|uid| fits(&Some(uid.clone())))),
    }
}

/// A token Secret that is gone is no longer among those of an account.
fn forget(key: &ObjectKey, view: &View<'_>, turn: &mut Turn) {
    for account in view.list::<ServiceAccount>(key.namespace()) {
        let is_it = |secret: &ObjectReference| secret.name.as_deref() == Some(key.name());
        if !account.secrets.iter().flatten().any(is_it) {
            continue;
        }
        let mut account = ServiceAccount::clone(&account);
        account.secrets.get_or_insert_default().retain(|secret| !is_it(secret));
        turn.replace(&account);
    }
}

/// What such a token says, in the order of the alphabet, as Go writes it. It says nothing of time: it counts as long as its
/// Secret is there.
fn claims(account: &ObjectKey, uid: &str, secret: &str) -> Value {
    let (namespace, name) = (account.namespace().unwrap_or_default(), account.name());
    json!({
        "iss": "kubernetes/serviceaccount",
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": secret,
        "kubernetes.io/serviceaccount/service-account.name": name,
        "kubernetes.io/serviceaccount/service-account.uid": uid,
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
    })
}

/// The account that a Secret is for, if it is one for a token.
fn account_of(secret: &Secret) -> Option<ObjectKey> {
    let name = annotation(secret, ACCOUNT_NAME).filter(|_| secret.type_.as_deref() == Some(TYPE))?;
    Some(ObjectKey::new(secret.metadata.namespace.as_deref(), name))
}

fn annotation<'a>(secret: &'a Secret, name: &str) -> Option<&'a str> {
    let value = secret.metadata.annotations.as_ref()?.get(name)?;
    Some(value.as_str()).filter(|value| !value.is_empty())
}

fn key_of<K: Object>(object: &K) -> ObjectKey {
    ObjectKey::of(object.meta())
}
