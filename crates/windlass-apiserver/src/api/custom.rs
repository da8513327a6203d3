//! The resources that a custom resource definition adds.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::registry::{Flavor, Resource, Selectable, Subresource, api_version};
use crate::crd::{self, Definition};
use crate::print;
use crate::schema::Str;
use crate::store::Kind;

/// The order in which kube-apiserver lists the verbs of custom resources.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// One resource for each version that is served.
pub(super) fn resources(definition: &Arc<Definition>, since: u64) -> Vec<Arc<Resource>> {
    let served = definition.versions.iter().enumerate().filter(|(_, version)| version.served);
    served.map(|(index, _)| Arc::new(resource(definition, index, since))).collect()
}

/// The resource in the version that is stored.
pub(super) fn stored(definition: &Arc<Definition>) -> Option<Arc<Resource>> {
    let index = definition.versions.iter().position(|version| version.storage)?;
    Some(Arc::new(resource(definition, index, u64::MAX)))
}

fn resource(definition: &Arc<Definition>, index: usize, since: u64) -> Resource {
    let version = &definition.versions[index];
    let names = &definition.names;
    let storage = definition.storage().map_or(version.name.as_str(), |version| version.name.as_str());
    let printer = print::custom_columns(&declared(version));
    let own = |text: &str| Str::Owned(text.to_owned());
    Resource {
        group: own(&definition.group),
        version: own(&version.name),
        plural: own(&names.plural),
        singular: own(&names.singular),
        kind: own(&names.kind),
        list_kind: own(&names.list_kind),
        namespaced: definition.namespaced,
        short: names.short_names.iter().map(|name| own(name)).collect(),
        categories: names.categories.iter().map(|name| own(name)).collect(),
        verbs: VERBS.iter().map(|verb| Str::Borrowed(verb)).collect(),
        hash: storage_hash(&definition.group, storage, &names.kind).into(),
        subresources: subresources(version, &names.kind),
        fields: version.selectable_fields.iter().map(|path| Selectable::custom(path)).collect(),
        reset: reset(version),
        storage: Kind::new(&definition.group, &names.plural),
        storage_api_version: api_version(&definition.group, storage),
        create_on_update: false,
        unconditional_update: false,
        default_gc: "".into(),
        returns_deleted: false,
        versions: definition
            .versions
            .iter()
            .map(|version| api_version(&definition.group, &version.name))
            .collect(),
        converted: !version.storage,
        has_views: definition.versions.iter().filter(|version| version.served).count() > 1,
        since,
        flavor: Flavor::Custom {
            definition: definition.clone(),
            version: index,
            printer,
            known: Arc::default(),
        },
    }
}

/// As kube-apiserver derives it, so that clients that compare the two see the same.
fn storage_hash(group: &str, version: &str, kind: &str) -> String {
    STANDARD.encode(&Sha256::digest(format!("{group}/{version}/{kind}"))[..8])
}

fn subresources(version: &crd::Version, kind: &str) -> Vec<Subresource> {
    let verbs = || ["get", "patch", "update"].map(str::to_owned).to_vec();
    let mut out = Vec::new();
    if version.has_status {
        out.push(Subresource {
            name: "status".into(),
            group: String::new(),
            version: String::new(),
            kind: kind.into(),
            verbs: verbs(),
        });
    }
    if version.scale.is_some() {
        let (group, version) = ("autoscaling".to_owned(), "v1".to_owned());
        out.push(Subresource { name: "scale".into(), group, version, kind: "Scale".into(), verbs: verbs() });
    }
    out
}

/// The columns as the definition declares them.
fn declared(version: &crd::Version) -> Vec<Value> {
    let column = |column: &crd::Column| {
        json!({
            "name": column.name, "type": column.ty, "format": column.format, "description": column.description,
            "priority": column.priority, "jsonPath": column.json_path,
        })
    };
    version.columns.iter().map(column).collect()
}

/// With a status subresource the object's writers do not touch the status, and the status' writers nothing else.
fn reset(version: &crd::Version) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut out = BTreeMap::new();
    if version.has_status {
        out.insert(String::new(), vec![vec!["status".to_owned()]]);
    }
    out
}
