//! Which objects an operator wants to have at hand.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kube::Resource;
use kube::core::{Selector, SelectorExt as _};
use serde_json::Value;
use windlass_core::Kind;

use super::decode::Transform;
use super::index::Index;

/// The namespaces that an operator works in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// All of them.
    #[default]
    All,
    /// These.
    Only(BTreeSet<String>),
}

impl Namespaces {
    /// These namespaces.
    pub fn only<I>(names: I) -> Namespaces
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Namespaces::Only(names.into_iter().map(Into::into).collect())
    }
}

/// Where an informer looks. Objects that live in no namespace are looked for everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Where the operator works ([`Cache::set_namespaces`](super::Cache::set_namespaces)), also when that changes.
    #[default]
    Watched,
    /// In these namespaces, wherever the operator works.
    Fixed(Namespaces),
}

/// What is wanted of one kind. Typed, metadata-only or dynamic is said by `K`: `ConfigMap`,
/// `PartialObjectMeta<ConfigMap>`, `DynamicObject`.
pub struct Declared<K> {
    /// The kind.
    pub kind: Kind,
    /// Where its objects are looked for.
    pub scope: Scope,
    /// Only objects with these labels.
    pub labels: Option<Selector>,
    /// Only objects with these fields, as the server understands it: `spec.nodeName=one`.
    pub fields: Option<String>,
    /// Changes every object before it is kept.
    pub transform: Option<Transform<K>>,
    /// Whether we make such objects: the set of fields that we applied is kept with each, and they are found by the
    /// controller that owns them.
    pub owned: bool,
    /// Whether the kind may be missing: its CRD may come and go.
    pub optional: bool,
    /// What else its objects are found by.
    pub indexes: Vec<Index<K>>,
}

impl<K: Resource> Declared<K> {
    /// All objects of the kind of a Rust type.
    pub fn typed() -> Declared<K>
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        Declared::of(Kind::of::<K>())
    }

    /// All objects of a kind.
    pub fn of(kind: Kind) -> Declared<K> {
        Declared {
            kind,
            scope: Scope::Watched,
            labels: None,
            fields: None,
            transform: None,
            owned: false,
            optional: false,
            indexes: Vec::new(),
        }
    }

    /// Only those in some namespaces.
    #[must_use]
    pub fn scope(self, scope: Scope) -> Declared<K> {
        Declared { scope, ..self }
    }

    /// Only those with these labels.
    #[must_use]
    pub fn labels(self, labels: Selector) -> Declared<K> {
        Declared { labels: Some(labels), ..self }
    }

    /// Only those with these fields.
    #[must_use]
    pub fn fields(self, fields: &str) -> Declared<K> {
        Declared { fields: Some(fields.to_owned()), ..self }
    }

    /// Changed before they are kept.
    #[must_use]
    pub fn transform(self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Declared<K> {
        Declared { transform: Some(Arc::new(transform)), ..self }
    }

    /// We make such objects.
    #[must_use]
    pub fn owned(self) -> Declared<K> {
        Declared { owned: true, ..self }
    }

    /// The kind may be missing.
    #[must_use]
    pub fn optional(self) -> Declared<K> {
        Declared { optional: true, ..self }
    }

    /// Found by an index.
    #[must_use]
    pub fn index(mut self, index: Index<K>) -> Declared<K> {
        self.indexes.push(index);
        self
    }
}

impl<K> fmt::Debug for Declared<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared")
            .field("kind", &self.kind)
            .field("scope", &self.scope)
            .field("labels", &self.labels)
            .field("fields", &self.fields)
            .field("owned", &self.owned)
            .field("optional", &self.optional)
            .field("indexes", &self.indexes)
            .finish_non_exhaustive()
    }
}

/// Which objects are selected, for the server and for ourselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    labels: Option<Selector>,
    fields: Option<String>,
}

impl Filter {
    pub(super) fn of<K>(declared: &Declared<K>) -> Filter {
        let labels = declared.labels.clone().filter(|labels| !labels.selects_all());
        Filter { labels, fields: declared.fields.clone().filter(|fields| !fields.is_empty()) }
    }

    pub(crate) fn is_all(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }

    pub(crate) fn labels(&self) -> Option<String> {
        self.labels.as_ref().map(ToString::to_string)
    }

    pub(crate) fn fields(&self) -> Option<&str> {
        self.fields.as_deref()
    }

    /// Whether the server would select this object.
    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = self.labels.as_ref().is_none_or(|selector| {
            let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            selector.matches(&labels.map(|(key, value)| (key.clone(), text(value))).collect())
        });
        labels && self.fields.as_deref().is_none_or(|fields| fields.split(',').all(|one| field(one, object)))
    }
}

/// For people.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let divider = if self.labels.is_some() && self.fields.is_some() { "," } else { "" };
        let labels = self.labels().unwrap_or_default();
        write!(f, "{labels}{divider}{}", self.fields().unwrap_or_default())
    }
}

/// Whether an object has a field as a requirement (`path=value`, `path==value`, `path!=value`) says. A field that is not
/// there is empty.
fn field(requirement: &str, object: &Value) -> bool {
    let (path, equal, wanted) = if let Some((path, value)) = requirement.split_once("!=") {
        (path, false, value)
    } else {
        let (path, value) = requirement.split_once('=').unwrap_or((requirement, ""));
        (path, true, value.strip_prefix('=').unwrap_or(value))
    };
    let value = path.split('.').fold(object, |value, part| &value[part]);
    let text: Cow<'_, str> = match value {
        Value::Null => "".into(),
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    };
    (text == wanted) == equal
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    #[test]
    fn a_filter_selects_what_the_server_selects() {
        let pod = json!({
            "metadata": {"name": "one", "labels": {"app": "web"}},
            "spec": {"nodeName": "a", "hostNetwork": true},
        });
        let check = |labels: &[(&'static str, &'static str)], fields: &str| {
            let declared = Declared::<Pod>::typed().labels(labels.iter().copied().collect()).fields(fields);
            Filter::of(&declared).matches(&pod)
        };
        assert!(check(&[], ""));
        assert!(check(&[("app", "web")], "spec.nodeName=a,metadata.name==one"));
        assert!(!check(&[("app", "db")], ""));
        assert!(!check(&[("app", "web")], "spec.nodeName!=a"));
        assert!(check(&[], "spec.hostNetwork=true,status.phase=,status.phase!=Running"));
    }
}
