//! An informer whose type is not known.

use std::any::{Any, TypeId};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;
use tokio::sync::Notify;
use windlass_core::{Kind, ObjectKey, Origin, owner};

use super::declare::{Filter, Namespaces, Scope};
use super::decode::Cached;
use super::feed::{Feed, Wiring};
use super::health::{InformerHealth, State, Synced};
use super::informer::Inner;
use super::store::Span;
use crate::source::Sink;

/// What is known of an object without its type.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectMetadata {
    /// Where it is.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// Its resourceVersion.
    pub version: u64,
    /// Since when it is being deleted.
    pub deletion: Option<Timestamp>,
    /// The controller that owns it.
    pub controller: Option<OwnerReference>,
}

/// An informer whose type is not known: what the registry holds.
pub(super) trait AnyInformer: Any + Send + Sync {
    fn kind(&self) -> &Kind;
    fn filter(&self) -> &Filter;
    /// The type of its objects.
    fn holds(&self) -> TypeId;
    fn is_metadata_only(&self) -> bool;
    fn is_owned(&self) -> bool;
    fn is_optional(&self) -> bool;
    fn has_index(&self, name: &str) -> bool;
    /// Where it looks, while the operator works in these namespaces.
    fn spans(&self, namespaces: &Namespaces) -> Vec<Span>;
    /// Whether it has been told where to look.
    fn is_placed(&self) -> bool;
    fn set_spans(&self, spans: &[Span]);
    fn sink(self: Arc<Self>, wiring: Wiring) -> Arc<dyn Sink>;
    fn absorb(&self, object: &Value, origin: Option<&Origin>);
    fn removed(&self, key: &ObjectKey, uid: &str, origin: Option<&Origin>);
    fn children_of(&self, owner_uid: &str) -> Option<Vec<ObjectMetadata>>;
    fn metadata(&self, key: &ObjectKey) -> Option<ObjectMetadata>;
    /// An object, and the set of fields that we applied to it.
    fn value(&self, key: &ObjectKey) -> Option<(Value, Option<Value>)>;
    fn managed(&self, key: &ObjectKey) -> Option<Value>;
    /// Whether everything that a span covers can be read.
    fn is_synced(&self, span: &Span) -> bool;
    /// Whether objects of a span would be here.
    fn covers(&self, span: &Span) -> bool;
    fn synced_now(&self) -> Option<Synced>;
    fn progress(&self) -> &Notify;
    fn health(&self) -> Vec<InformerHealth>;
}

impl<K: Cached> AnyInformer for Inner<K> {
    fn kind(&self) -> &Kind {
        &self.decoder.kind
    }

    fn filter(&self) -> &Filter {
        &self.filter
    }

    fn holds(&self) -> TypeId {
        TypeId::of::<K>()
    }

    fn is_metadata_only(&self) -> bool {
        K::metadata_api()
    }

    fn is_owned(&self) -> bool {
        self.owned.load(Ordering::Relaxed)
    }

    fn has_index(&self, name: &str) -> bool {
        self.read().indexes().has(name)
    }

    fn is_optional(&self) -> bool {
        self.optional.load(Ordering::Relaxed)
    }

    fn spans(&self, namespaces: &Namespaces) -> Vec<Span> {
        let namespaces = match &self.scope {
            Scope::Watched => namespaces,
            Scope::Fixed(fixed) => fixed,
        };
        match namespaces {
            Namespaces::Only(names) if self.decoder.kind.namespaced => {
                names.iter().map(|name| Span::of(Some(name))).collect()
            }
            _ => vec![Span::ALL],
        }
    }

    fn is_placed(&self) -> bool {
        self.read().streams().is_some()
    }

    fn set_spans(&self, spans: &[Span]) {
        self.change(|store| ((), store.set_spans(spans.iter().cloned())));
        self.progress.notify_waiters();
    }

    fn sink(self: Arc<Self>, wiring: Wiring) -> Arc<dyn Sink> {
        Arc::new(Feed::new(self, wiring))
    }

    fn absorb(&self, object: &Value, origin: Option<&Origin>) {
        if !self.filter.matches(object) {
            return;
        }
        match self.decoder.value(object) {
            Ok(decoded) => {
                let new = self.incoming(decoded);
                self.change(|store| ((), store.absorbed(new, origin)));
            }
            // Its event will not decode either, and is reported there.
            Err(error) => {
                tracing::debug!(kind = %self.decoder.kind, %error, "answer to a write does not decode")
            }
        }
    }

    fn removed(&self, key: &ObjectKey, uid: &str, origin: Option<&Origin>) {
        self.change(|store| ((), store.removed(key, uid, origin)));
    }

    fn children_of(&self, owner_uid: &str) -> Option<Vec<ObjectMetadata>> {
        let store = self.read();
        let keys = store.indexes().children(owner_uid)?;
        Some(keys.filter_map(|key| metadata(key, &**store.get(key)?, store.version(key)?)).collect())
    }

    fn metadata(&self, key: &ObjectKey) -> Option<ObjectMetadata> {
        let store = self.read();
        metadata(key, &**store.get(key)?, store.version(key)?)
    }

    fn value(&self, key: &ObjectKey) -> Option<(Value, Option<Value>)> {
        let (object, set) = {
            let store = self.read();
            (store.get(key)?.clone(), store.managed(key).cloned())
        };
        let set = set.and_then(|set| serde_json::from_str(&set).ok());
        Some((serde_json::to_value(&*object).ok()?, set))
    }

    fn managed(&self, key: &ObjectKey) -> Option<Value> {
        let set = self.read().managed(key).cloned()?;
        serde_json::from_str(&set).ok()
    }

    fn is_synced(&self, span: &Span) -> bool {
        let store = self.read();
        let Some(streams) = store.streams() else { return false };
        let mut streams = streams.iter().filter(|(of, _)| of.meets(span));
        streams.all(|(_, stream)| stream.was_listed() || *stream.state() == State::Absent)
    }

    fn covers(&self, span: &Span) -> bool {
        let store = self.read();
        store.streams().is_none_or(|streams| streams.contains_key(&Span::ALL) || streams.contains_key(span))
    }

    fn synced_now(&self) -> Option<Synced> {
        let store = self.read();
        let mut synced = Synced::Listed;
        for stream in store.streams()?.values() {
            match stream.state() {
                State::Absent => synced = Synced::Absent,
                _ if stream.was_listed() => {}
                State::Failing { error, .. } => return Some(Synced::Failing(error.clone())),
                State::Syncing | State::Live => return None,
            }
        }
        Some(synced)
    }

    fn progress(&self) -> &Notify {
        &self.progress
    }

    fn health(&self) -> Vec<InformerHealth> {
        let store = self.read();
        let health = store.streams().into_iter().flatten().map(|(span, stream)| InformerHealth {
            target: self.target(span),
            optional: self.is_optional(),
            state: stream.state().clone(),
            listed: stream.was_listed(),
            heard: stream.heard(),
            objects: store.len(span),
            undecodable: store.undecodable(span),
        });
        health.collect()
    }
}

impl dyn AnyInformer {
    /// Waits until the first list is complete everywhere, or has failed somewhere.
    pub(super) async fn synced(&self) -> Synced {
        loop {
            let mut progress = pin!(self.progress().notified());
            // What happens from here on is noticed, also between the look and the wait.
            progress.as_mut().enable();
            if let Some(synced) = self.synced_now() {
                return synced;
            }
            progress.await;
        }
    }
}

fn metadata<K: Cached>(key: &ObjectKey, object: &K, version: u64) -> Option<ObjectMetadata> {
    let meta = object.meta();
    Some(ObjectMetadata {
        key: key.clone(),
        uid: meta.uid.clone()?,
        version,
        deletion: meta.deletion_timestamp.as_ref().map(|time| time.0),
        controller: owner::controller_of(meta).cloned(),
    })
}
