//! The one place that writes to the API server.
//!
//! ```text
//! executor ─► Writer ─► API server
//!               │  ▲ answer
//!               │  └─► Cache::absorb / removed: the next read has it, and its event wakes nobody
//!               └────► Env::crash_point: where a crash is of interest
//! ```
//!
//! # Guarantees
//! - An object that exists is never taken over by a create, and an update, a delete or a status never hits the successor
//!   of the object that was looked at.
//! - Nothing is repeated here. Whoever planned a write looks again and plans again.
//! - A write that was answered is in the cache before anybody plans again.

mod call;
mod error;

pub use error::{Error, Refusal};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use windlass_core::{Child, Kind, ObjectKey, Origin};

use crate::cache::Cache;
use crate::env::Env;
use call::Call;

/// Writes objects, as one field manager. Clones are the same writer.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    cache: Cache,
    env: Env,
    manager: Arc<str>,
    timeout: Duration,
}

/// What is known of an object that is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode<'a> {
    /// There is none: it is created, and one that has appeared since stays as it is.
    Create,
    /// There is one with this UID: it is updated, also where others own what we apply, and another one stays as it is.
    Update {
        /// Which one.
        uid: &'a str,
    },
}

/// An object of which a version was looked at. Another version, and another object of that name, is not written.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Its kind.
    pub kind: &'a Kind,
    /// Where it is.
    pub key: &'a ObjectKey,
    /// Which one of that name.
    pub uid: &'a str,
    /// Which version of it.
    pub resource_version: &'a str,
}

/// What happens to the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They are collected afterwards.
    #[default]
    Background,
    /// They are collected first, and until then the object stays.
    Foreground,
    /// They stay.
    Orphan,
}

/// How far a delete has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone.
    Gone,
    /// It will go when its finalizers or its grace period allow it.
    Going,
    /// It was gone before.
    Absent,
}

impl Writer {
    /// A writer that tells a cache of its writes, and gives up on each after half a minute.
    pub fn new(client: Client, cache: Cache, env: Env, field_manager: &str) -> Writer {
        Writer { client, cache, env, manager: field_manager.into(), timeout: Duration::from_secs(30) }
    }

    /// The same with another limit of time.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Writer {
        Writer { timeout, ..self }
    }

    /// Who we are to the server: the owner of the fields that we apply.
    pub fn field_manager(&self) -> &str {
        &self.manager
    }

    /// An object as the server has it now, or `None` if it has none.
    ///
    /// # Errors
    /// When the server does not say.
    pub async fn read(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Value>, Error> {
        let call = Call::new("read", Method::GET, kind, key);
        match self.send(call).await {
            Err(Error::NotFound { .. }) => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Makes an object what it should be, by server-side apply, and gives it as it then is.
    ///
    /// # Errors
    /// [`Error::Exists`] where one was to be created and there is one; [`Error::Conflict`] where one was to be updated
    /// and there is another or none.
    pub async fn apply(&self, child: &Child, mode: Mode<'_>, origin: &Origin) -> Result<Value, Error> {
        let mut object = child.object.clone();
        windlass_core::diff::without_nulls(&mut object);
        let metadata = &mut object["metadata"];
        match mode {
            // No object has this version. So the server refuses the apply where there is an object, and ignores it
            // where there is none, which it then creates: the one way to apply without a chance to take over.
            Mode::Create => metadata["resourceVersion"] = i64::MAX.to_string().into(),
            Mode::Update { uid } => metadata["uid"] = uid.into(),
        }
        let call = Call::new("apply", Method::PATCH, &child.kind, &child.key);
        let answer =
            self.send(call.query("fieldManager", &self.manager).query("force", "true").apply(&object)).await;
        let answer = answer.map_err(|error| match mode {
            Mode::Create => error.conflict_is_existence(),
            Mode::Update { .. } => error.other_uid_is_conflict(),
        })?;
        self.absorb("apply", &child.kind, &answer, origin);
        Ok(answer)
    }

    /// Gives an object a status, by server-side apply to the subresource, and gives the object as it then is.
    ///
    /// The version is the only way to say which object is meant: of an apply to a status, the server ignores the UID.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the object is not the one that was looked at; [`Error::NotFound`] where its kind has no
    /// status.
    pub async fn apply_status(
        &self,
        target: Target<'_>,
        status: &Value,
        origin: &Origin,
    ) -> Result<Value, Error> {
        let Target { kind, key, .. } = target;
        let mut object = json!({
            "apiVersion": kind.resource.api_version,
            "kind": kind.resource.kind,
            "metadata": {"name": key.name(), "resourceVersion": target.resource_version},
            "status": status,
        });
        windlass_core::diff::without_nulls(&mut object);
        let call = Call::new("apply status of", Method::PATCH, kind, key).subresource("status");
        let call = call.query("fieldManager", &self.manager).query("force", "true").apply(&object);
        let answer = match self.send(call).await {
            // To a custom resource without a status, the server says the same as to one that is gone.
            Err(error @ Error::NotFound { .. }) => {
                let live = self.read(kind, key).await?;
                let is_there = live.is_some_and(|live| live["metadata"]["uid"] == target.uid);
                return Err(if is_there { error } else { error.absence_is_conflict() });
            }
            answer => answer?,
        };
        self.absorb("apply status", kind, &answer, origin);
        Ok(answer)
    }

    /// Gives an object these finalizers in place of those it has, and gives it as it then is; `None` if it went away with
    /// its last one.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the object is not the one that was looked at.
    pub async fn set_finalizers(
        &self,
        target: Target<'_>,
        finalizers: &[String],
        origin: &Origin,
    ) -> Result<Option<Value>, Error> {
        let Target { kind, key, uid, resource_version } = target;
        let patch = json!({
            "metadata": {"uid": uid, "resourceVersion": resource_version, "finalizers": finalizers}
        });
        let call = Call::new("set finalizers of", Method::PATCH, kind, key);
        let call = call.query("fieldManager", &self.manager).merge(&patch);
        let answer = self.send(call).await;
        let answer = answer.map_err(|error| error.other_uid_is_conflict().absence_is_conflict())?;
        let deleting = !answer["metadata"]["deletionTimestamp"].is_null();
        let is_gone = deleting && answer["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if is_gone {
            self.cache.removed(kind, key, uid, Some(origin));
            self.env.crash_point(&format!("set finalizers {}", kind.resource.kind));
            return Ok(None);
        }
        self.absorb("set finalizers", kind, &answer, origin);
        Ok(Some(answer))
    }

    /// Gives an object these labels beside those it has, and gives it as it then is. For an object whose other fields are
    /// fixed once it is made, such as a pod: to apply it again with another label would be to apply all of it again.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the object is not the one that was looked at.
    pub async fn set_labels(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        uid: &str,
        labels: &[(&str, &str)],
        origin: &Origin,
    ) -> Result<Value, Error> {
        let labels: serde_json::Map<String, Value> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
        let patch = json!({"metadata": {"uid": uid, "labels": labels}});
        let call = Call::new("set labels of", Method::PATCH, kind, key);
        let answer = self.send(call.query("fieldManager", &self.manager).merge(&patch)).await;
        let answer = answer.map_err(|error| error.other_uid_is_conflict().absence_is_conflict())?;
        self.absorb("set labels", kind, &answer, origin);
        Ok(answer)
    }

    /// Deletes an object: this one, and where a version is given, only that version. One that is gone already is deleted.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the object is not the one that was looked at.
    pub async fn delete(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        uid: &str,
        resource_version: Option<&str>,
        propagation: Propagation,
        origin: &Origin,
    ) -> Result<Deleted, Error> {
        let mut options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": match propagation {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
                Propagation::Orphan => "Orphan",
            },
        });
        if let Some(version) = resource_version {
            options["preconditions"]["resourceVersion"] = version.into();
        }
        let answer = match self.send(Call::new("delete", Method::DELETE, kind, key).json(&options)).await {
            Ok(answer) => answer,
            Err(Error::NotFound { .. }) => {
                self.cache.removed(kind, key, uid, Some(origin));
                return Ok(Deleted::Absent);
            }
            Err(error) => return Err(error),
        };
        // The server answers with the object while it has to stay for a while, and with a Status when it is gone.
        if answer["metadata"]["uid"] == uid {
            self.absorb("delete", kind, &answer, origin);
            return Ok(Deleted::Going);
        }
        self.cache.removed(kind, key, uid, Some(origin));
        self.env.crash_point(&format!("delete {}", kind.resource.kind));
        Ok(Deleted::Gone)
    }

    fn absorb(&self, verb: &str, kind: &Kind, object: &Value, origin: &Origin) {
        self.cache.absorb(kind, object, Some(origin));
        self.env.crash_point(&format!("{verb} {}", kind.resource.kind));
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("manager", &self.manager).finish_non_exhaustive()
    }
}
