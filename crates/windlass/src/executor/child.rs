//! One child: whether it is as planned, and how it gets there.

use k8s_openapi::ByteString;
use serde_json::Value;
use windlass_core::diff::{Difference, differences};
use windlass_core::{Child, Kind, ObjectKey, Origin, owner};

use super::memory::{Fingerprint, Memory};
use super::{Executor, Failure, Parent};
use crate::write::{Error, Mode};

/// What was done about a child.
pub(super) enum Done {
    /// It is as planned.
    Nothing,
    /// It was created, or something of it was changed.
    Written,
    /// It was applied, which changed nothing.
    Unchanged,
    /// The one of that name is going, and has to be gone first.
    Wait {
        /// Whether a watch will tell us of it.
        watched: bool,
    },
}

/// What there is of a child.
pub(super) struct View {
    object: Option<Value>,
    /// The fields that we applied.
    applied: Option<Value>,
    /// Whether it is from the cache.
    pub(super) watched: bool,
}

/// What is to be done about a child.
pub(super) enum Decision {
    Same,
    Create,
    Update { uid: String, found: Vec<Difference>, now: Fingerprint },
    Wait,
}

impl Parent {
    /// A child as it is applied: with its namespace, and with this as its owner.
    pub(super) fn adopt(&self, child: &Child) -> Result<Child, Failure> {
        let mut child = child.clone();
        if child.kind.namespaced && child.key.namespace().is_none() {
            let Some(namespace) = self.key.namespace() else {
                return Err(Failure::NoNamespace { what: name(&child) });
            };
            child.key = ObjectKey::namespaced(namespace, child.key.name());
            child.object["metadata"]["namespace"] = namespace.into();
        }
        if is_secret(&child.kind) {
            encode(&mut child.object);
        }
        if !owner::can_own(&self.key, &child.key) {
            return Ok(child);
        }
        let owners = &mut child.object["metadata"]["ownerReferences"];
        if !owners.is_array() {
            *owners = Value::Array(Vec::new());
        }
        if let Value::Array(owners) = owners
            && !owners.iter().any(|owner| owner["uid"] == self.uid)
        {
            let reference = owner::reference(&self.kind, self.key.name(), &self.uid);
            owners.push(serde_json::to_value(reference).unwrap_or_default());
        }
        Ok(child)
    }

    /// Whether an object is this one's child. Without an owner it is ours if we applied it: so it is where it cannot have
    /// this as its owner, or where somebody took the reference away.
    fn check_ownership(&self, child: &Child, object: &Value, applied: Option<&Value>) -> Result<(), Failure> {
        let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let owner = match owners.find(|owner| owner["controller"] == true) {
            Some(owner) if owner["uid"] == self.uid && owner::can_own(&self.key, &child.key) => return Ok(()),
            Some(owner) => {
                let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
                format!("{} {} with UID {} controls", text("kind"), text("name"), text("uid"))
            }
            None if applied.is_some() => return Ok(()),
            None => "this operator did not make".to_owned(),
        };
        Err(Failure::Foreign { what: name(child), owner })
    }
}

impl Executor {
    /// Makes a child what it should be.
    pub(super) async fn apply_child(
        &self,
        parent: &Parent,
        child: &Child,
        origin: &Origin,
    ) -> Result<Done, Failure> {
        let mut view = self.view(child).await?;
        let mut decision = self.decide(parent, child, &view)?;
        if let Decision::Create = decision {
            match self.writer.apply(child, Mode::Create, origin).await {
                Ok(_) => {
                    tracing::info!(kind = %child.kind, object = %child.key, "created");
                    return Ok(Done::Written);
                }
                // The cache is behind: we may have made it before a restart, or somebody else did.
                Err(Error::Exists { what, source }) => {
                    let Some(live) = self.writer.read(&child.kind, &child.key).await? else {
                        return Err(Error::Conflict { what, source }.into());
                    };
                    self.cache.absorb(&child.kind, &live, None);
                    view = self.view_of(Some(live));
                    decision = self.decide(parent, child, &view)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        match decision {
            Decision::Same => Ok(Done::Nothing),
            Decision::Wait => Ok(Done::Wait { watched: view.watched }),
            Decision::Create => Ok(Done::Nothing),
            Decision::Update { uid, found, now } => {
                let answer = self.writer.apply(child, Mode::Update { uid: &uid }, origin).await?;
                let told = tell(&child.kind, found);
                if answer["metadata"]["resourceVersion"] == view.version() {
                    tracing::debug!(kind = %child.kind, object = %child.key, differences = told, "applied without effect");
                    self.memory.settle(&parent.uid, Memory::slot(&child.kind, &child.key), now);
                    return Ok(Done::Unchanged);
                }
                tracing::info!(kind = %child.kind, object = %child.key, differences = told, "updated");
                Ok(Done::Written)
            }
        }
    }

    /// What there is of a child: in the cache if it can tell, on the server otherwise.
    pub(super) async fn view(&self, child: &Child) -> Result<View, Error> {
        match self.cached(&child.kind, &child.key) {
            Some(view) => Ok(view),
            None => Ok(self.view_of(self.writer.read(&child.kind, &child.key).await?)),
        }
    }

    /// What the cache has of a child; `None` if it cannot tell.
    fn cached(&self, kind: &Kind, key: &ObjectKey) -> Option<View> {
        let (object, applied) = self.cache.value(kind, key).ok()?.unzip();
        Some(View { object, applied: applied.flatten(), watched: true })
    }

    fn view_of(&self, object: Option<Value>) -> View {
        let entries = object.as_ref().and_then(|object| object["metadata"]["managedFields"].as_array());
        let is_ours = |entry: &&Value| {
            entry["manager"] == self.writer.field_manager()
                && entry["operation"] == "Apply"
                && entry["subresource"].as_str().unwrap_or_default().is_empty()
        };
        let ours = entries.into_iter().flatten().find(is_ours);
        let applied = ours.map(|entry| entry["fieldsV1"].clone());
        View { object, applied, watched: false }
    }

    /// What is to be done about a child, by what there is.
    pub(super) fn decide(&self, parent: &Parent, child: &Child, view: &View) -> Result<Decision, Failure> {
        let Some(object) = &view.object else { return Ok(Decision::Create) };
        parent.check_ownership(child, object, view.applied.as_ref())?;
        if !object["metadata"]["deletionTimestamp"].is_null() {
            return Ok(Decision::Wait);
        }
        let found = differences(&child.object, object, view.applied.as_ref());
        if found.is_empty() {
            return Ok(Decision::Same);
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let now = Fingerprint::of(&uid, &child.object, &found, view.applied.as_ref());
        if self.memory.is_settled(&parent.uid, &Memory::slot(&child.kind, &child.key), now) {
            return Ok(Decision::Same);
        }
        Ok(Decision::Update { uid, found, now })
    }
}

impl View {
    fn version(&self) -> Value {
        self.object.as_ref().map(|object| object["metadata"]["resourceVersion"].clone()).unwrap_or_default()
    }
}

/// An action by its name.
pub(super) fn name(child: &Child) -> String {
    format!("apply {} {}", child.kind, child.key)
}

fn is_secret(kind: &Kind) -> bool {
    kind.resource.group.is_empty() && kind.resource.kind == "Secret"
}

/// Puts the texts of a Secret among its data. The server does the same and then forgets the texts, so that nobody owns
/// what it has made of them, and what others change there would not be seen.
fn encode(secret: &mut Value) {
    let Some(Value::Object(texts)) = secret.as_object_mut().and_then(|secret| secret.remove("stringData"))
    else {
        return;
    };
    for (name, text) in texts {
        if let Value::String(text) = text {
            let data = ByteString(text.into_bytes());
            secret["data"][name] = serde_json::to_value(data).unwrap_or_default();
        }
    }
}

/// Differences as they may be shown.
pub(super) fn shown(kind: &Kind, found: Vec<Difference>) -> Vec<Difference> {
    match is_secret(kind) {
        true => found.into_iter().map(Difference::redacted).collect(),
        false => found,
    }
}

fn tell(kind: &Kind, found: Vec<Difference>) -> String {
    let lines: Vec<_> = shown(kind, found).iter().map(ToString::to_string).collect();
    lines.join("; ")
}
