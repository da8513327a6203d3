//! Which objects of a collection a request is about.

use windlass_core::select::{FieldSelector, LabelSelector, Labels};

use super::registry::Resource;
use super::server::Call;
use crate::status::{Result, Status};
use crate::store::Object;

/// A namespace, a label selector and a field selector.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// The namespace; `None` for all, and for cluster-scoped resources.
    pub namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    /// Reads the selectors of a list or watch.
    pub fn parse(call: &Call<'_>) -> Result<Filter> {
        let target = call.target;
        let labels = LabelSelector::parse(call.query.text("labelSelector"))?;
        let mut fields = FieldSelector::parse(call.query.text("fieldSelector"))?;
        check_fields(&fields, &target.resource)?;
        // The old `/watch/…/<name>` paths name one object.
        if !target.name.is_empty() {
            fields = FieldSelector::parse(&format!("metadata.name={}", target.name))?;
        }
        let namespace = Some(target.namespace.clone()).filter(|namespace| !namespace.is_empty());
        Ok(Filter { namespace, labels, fields })
    }

    /// Whether a selector narrows the collection.
    pub fn selects(&self) -> bool {
        !self.labels.is_everything() || !self.fields.is_everything()
    }

    /// The key of the one object that can match, if the filter names it.
    pub fn key(&self, resource: &Resource) -> Option<String> {
        let name = self.fields.exact("metadata.name")?;
        match &self.namespace {
            _ if !resource.namespaced => Some(name.to_owned()),
            Some(namespace) => Some(format!("{namespace}/{name}")),
            None => None,
        }
    }

    /// Whether an object is in the namespace and matches both selectors.
    pub fn matches(&self, object: &Object) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| object.namespace() == namespace)
            && (self.labels.is_everything() || self.labels.matches(&ObjectLabels(object)))
            && (self.fields.is_everything() || self.fields.matches(|path| field(object, path)))
    }
}

fn field<'a>(object: &'a Object, path: &str) -> Option<&'a str> {
    match path {
        "metadata.name" => Some(object.name()),
        "metadata.namespace" => Some(object.namespace()),
        _ => object.field(path),
    }
}

struct ObjectLabels<'a>(&'a Object);

impl Labels for ObjectLabels<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        self.0.label(key)
    }
}

/// Each kind knows its own field labels; others are refused.
fn check_fields(fields: &FieldSelector, resource: &Resource) -> Result<()> {
    for requirement in &fields.requirements {
        let name = requirement.field.as_str();
        let meta = name == "metadata.name" || name == "metadata.namespace";
        if meta || resource.fields.iter().any(|field| field.label == name) {
            continue;
        }
        if resource.is_custom() || resource.fields.is_empty() {
            let known =
                resource.fields.iter().map(|field| format!(", {:?}", field.label)).collect::<String>();
            return Err(Status::bad_request(match known.is_empty() {
                true => format!(
                    "{name:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                ),
                false => format!("field label not supported: {name}"),
            }));
        }
        return Err(Status::bad_request(format!("field label not supported: {name}")));
    }
    Ok(())
}
