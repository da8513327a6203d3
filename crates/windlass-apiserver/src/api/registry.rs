//! Which resources are served: the built-in ones of the table, and those that definitions add at run time.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::conversion::Known;
use crate::crd;
use crate::kinds::{self, Hooks};
use crate::print::{self, CustomColumn};
use crate::schema::{self, Str, Type, TypeId, Types};
use crate::store::Kind;

/// A resource in one version, with all that the verbs need to know of it.
#[derive(Clone)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The plural name, as in paths.
    pub plural: Str,
    /// The singular name.
    pub singular: Str,
    /// The kind.
    pub kind: Str,
    /// The kind of a list.
    pub list_kind: Str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Short names for kubectl.
    pub short: Vec<Str>,
    /// Categories for kubectl (`all`).
    pub categories: Vec<Str>,
    /// The verbs, in the order of discovery.
    pub verbs: Vec<Str>,
    /// The `storageVersionHash` of discovery.
    pub hash: Str,
    /// The subresources.
    pub subresources: Vec<Subresource>,
    /// The fields by which its objects can be selected.
    pub fields: Vec<Selectable>,
    /// Paths that a writer of each subresource (empty: the main resource) may not set.
    pub reset: BTreeMap<String, Vec<Vec<String>>>,
    /// Where its objects are stored.
    pub storage: Kind,
    /// The `apiVersion` under which its objects are stored.
    pub storage_api_version: String,
    /// PUT to a missing object creates it.
    pub create_on_update: bool,
    /// PUT without a resourceVersion is taken.
    pub unconditional_update: bool,
    /// What happens to dependents when a deletion does not say: `orphan`, `unsupported`, or empty for background.
    pub default_gc: Str,
    /// A deletion answers with the object, not with a `Status`.
    pub returns_deleted: bool,
    /// The `apiVersion`s in which its objects can be read.
    pub versions: Vec<String>,
    /// It is served in another version than the one it is stored in.
    pub converted: bool,
    /// Its objects are also served by another resource, whose selectors may name other fields.
    pub has_views: bool,
    /// Objects that were stored before this revision may not be what the definition says now.
    pub since: u64,
    /// What drives decoding, defaulting and validation.
    pub flavor: Flavor,
}

/// A field by which objects can be selected.
#[derive(Clone)]
pub struct Selectable {
    /// The name in selectors.
    pub label: Str,
    /// Where its value is: the first of these paths that is not empty.
    paths: Vec<Vec<String>>,
    /// Its value where the object has none: by type `""`, `false` or `0`.
    absent: &'static str,
}

impl Selectable {
    /// A field of a custom kind; its path starts with a dot.
    pub fn custom(path: &str) -> Selectable {
        let label = path.trim_start_matches('.').to_owned();
        Selectable { paths: vec![keys(&label)], label: label.into(), absent: "" }
    }

    /// The text that selectors compare.
    pub fn text(&self, tree: &Value) -> String {
        let found =
            self.paths.iter().filter_map(|path| path.iter().try_fold(tree, |place, key| place.get(key)));
        let mut texts = found.map(|value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        texts.find(|text| !text.is_empty()).unwrap_or_else(|| self.absent.to_owned())
    }
}

fn keys(path: &str) -> Vec<String> {
    path.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

/// Built-in or custom.
#[derive(Clone)]
pub enum Flavor {
    /// A kind of the table.
    Builtin {
        /// The type in [`schema::builtin`].
        id: TypeId,
        /// What the table cannot say.
        hooks: &'static Hooks,
        /// The column definitions of its Table, as the generated table has them: they are long, and most are never
        /// asked for.
        columns: Option<&'static RawValue>,
    },
    /// A kind of a definition.
    Custom {
        /// The definition.
        definition: Arc<crd::Definition>,
        /// The index of the version in the definition.
        version: usize,
        /// How its rows of a Table are printed.
        printer: Vec<CustomColumn>,
        /// What a webhook said of the conversion of its objects, for the request that asked.
        known: Arc<Known>,
    },
}

/// A subresource as discovery shows it.
#[derive(Debug, Clone, Deserialize)]
pub struct Subresource {
    /// `status`, `scale`, …
    pub name: String,
    /// The group of its kind.
    #[serde(default)]
    pub group: String,
    /// The version of its kind.
    #[serde(default)]
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Its verbs.
    pub verbs: Vec<String>,
}

impl Resource {
    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The types that its schema is written in, and the root among them.
    pub fn types(&self) -> (&Types, TypeId) {
        match &self.flavor {
            Flavor::Builtin { id, .. } => (schema::builtin(), *id),
            Flavor::Custom { definition, version, .. } => {
                let version = &definition.versions[*version];
                (&version.types, version.root)
            }
        }
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether the verb is offered on the resource itself.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|have| have == verb)
    }

    /// The column definitions of its Table.
    pub fn columns(&self) -> Vec<Value> {
        match &self.flavor {
            Flavor::Builtin { columns, .. } => columns.map_or_else(Vec::new, |columns| {
                serde_json::from_str(columns.get())
                    .unwrap_or_else(|e| panic!("resources.jsonl: {e}: {columns}"))
            }),
            Flavor::Custom { printer, .. } => {
                let own = printer.iter().map(|column| column.definition.clone());
                std::iter::once(print::name_column()).chain(own).collect()
            }
        }
    }

    /// Paths that a writer of `subresource` may not set.
    pub fn reset_paths(&self, subresource: &str) -> &[Vec<String>] {
        self.reset.get(subresource).map_or(&[], Vec::as_slice)
    }

    /// A resource that is served nowhere, to decode bodies of a type by.
    pub fn of_type(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        type_name: &'static str,
    ) -> Resource {
        let row = Row { group, version, kind, type_name, ..Row::default() };
        row.into_resource()
    }

    /// Whether it is `namespaces`.
    pub fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }

    /// Whether it is `customresourcedefinitions`.
    pub fn is_definitions(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.plural == "customresourcedefinitions"
    }

    /// Whether upstream keeps it in its watch cache: all but events, for which it asks etcd each time. That shows in
    /// limits, tokens, bookmarks, and in how long it waits for a revision.
    pub fn is_cached(&self) -> bool {
        self.is_custom() || &*self.plural != "events"
    }

    /// Whether it is a custom resource.
    pub fn is_custom(&self) -> bool {
        matches!(self.flavor, Flavor::Custom { .. })
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.plural, self.version, self.group)
    }
}

impl Subresource {
    /// Leaves out group and version where they are the resource's own.
    fn relative_to(mut self, own: &str) -> Subresource {
        if api_version(&self.group, &self.version) == own {
            self.group.clear();
            self.version.clear();
        }
        self
    }
}

/// `group/version`, or the version alone in the core group.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Splits an `apiVersion`.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// A group with its versions, most preferred first.
#[derive(Debug, Clone, Deserialize)]
pub struct Group {
    /// The name.
    pub group: String,
    /// The versions in order of preference.
    pub versions: Vec<String>,
}

/// All that is served. A clone shares everything.
#[derive(Clone)]
pub struct Registry {
    builtin: &'static Builtin,
    custom: Arc<BTreeMap<String, Custom>>,
}

struct Builtin {
    groups: Vec<Group>,
    resources: Vec<Arc<Resource>>,
    by_plural: HashMap<String, Vec<usize>>,
    by_kind: HashMap<String, Vec<usize>>,
}

/// A definition that is served, by the name of its CRD.
struct Custom {
    definition: Arc<crd::Definition>,
    resources: Vec<Arc<Resource>>,
}

impl Registry {
    /// The built-in resources alone.
    pub fn new() -> Registry {
        static BUILTIN: OnceLock<Builtin> = OnceLock::new();
        Registry { builtin: BUILTIN.get_or_init(Builtin::load), custom: Arc::default() }
    }

    /// The resource at a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let mut alike = self.builtin.alike(&self.builtin.by_plural, plural);
        if let Some(found) = alike.find(|resource| resource.group == group && resource.version == version) {
            return Some(found.clone());
        }
        let custom = self.custom.get(&format!("{plural}.{group}"))?;
        custom.resources.iter().find(|resource| resource.version == version).cloned()
    }

    /// The groups but the core one, in the order of discovery: built-in, then custom by name.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups = self.builtin.groups.clone();
        let mut custom: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for resource in self.custom.values().flat_map(|custom| &custom.resources) {
            let versions = custom.entry(&resource.group).or_default();
            if !versions.contains(&resource.version.to_string()) {
                versions.push(resource.version.to_string());
            }
        }
        for (group, mut versions) in custom {
            versions.sort_by_key(|version| std::cmp::Reverse(crd::version_order(version)));
            match groups.iter_mut().find(|have| have.group == group) {
                Some(have) => have.versions.extend(versions),
                None => groups.push(Group { group: group.to_owned(), versions }),
            }
        }
        groups
    }

    /// The resources of a group and version, in the order of discovery.
    pub fn resources(&self, group: &str, version: &str) -> Vec<Arc<Resource>> {
        self.all()
            .filter(|resource| resource.group == group && resource.version == version)
            .cloned()
            .collect()
    }

    /// Every resource in every version.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.builtin.resources.iter().chain(self.custom.values().flat_map(|custom| &custom.resources))
    }

    /// Whether a group has a version, or any version if `version` is empty.
    pub fn has_group(&self, group: &str, version: &str) -> bool {
        self.all()
            .any(|resource| resource.group == group && (version.is_empty() || resource.version == version))
    }

    /// Whether a group has a built-in version, or this one if it is not empty.
    pub fn is_builtin(&self, group: &str, version: &str) -> bool {
        let known = |have: &Group| version.is_empty() || have.versions.iter().any(|one| one == version);
        group.is_empty() || self.builtin.groups.iter().any(|have| have.group == group && known(have))
    }

    /// The definitions that are served, by CRD name.
    pub fn definitions(&self) -> impl Iterator<Item = (&str, &Arc<crd::Definition>)> {
        self.custom.iter().map(|(name, custom)| (name.as_str(), &custom.definition))
    }

    /// Whether a webhook converts the objects of any definition.
    pub fn has_conversions(&self) -> bool {
        self.custom.values().any(|custom| custom.definition.conversion != crd::Conversion::None)
    }

    /// The resource of an object's kind and version.
    pub fn by_kind(&self, tree: &Value) -> Option<Arc<Resource>> {
        let (group, version) = split_api_version(tree["apiVersion"].as_str()?);
        let kind = tree["kind"].as_str()?;
        self.all().find(|r| r.group == group && r.version == version && r.kind == kind).cloned()
    }

    /// The first resource of a kind of a group, in whichever version.
    pub fn of_kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        let custom = self.custom.values().flat_map(|custom| &custom.resources);
        let mut alike =
            self.builtin.alike(&self.builtin.by_kind, kind).chain(custom.filter(|known| known.kind == kind));
        alike.find(|resource| resource.group == group)
    }

    /// The resources that show the same stored objects, in all their versions.
    pub fn views(&self, storage: &Kind) -> impl Iterator<Item = &Arc<Resource>> {
        self.all().filter(move |resource| resource.storage == *storage)
    }

    /// `customresourcedefinitions`.
    pub fn definitions_resource(&self) -> Arc<Resource> {
        self.find("apiextensions.k8s.io", "v1", "customresourcedefinitions").expect("in the table")
    }

    /// The resource of a definition in the version that is stored, whether it is served or not.
    pub fn stored(&self, name: &str) -> Option<Arc<Resource>> {
        super::custom::stored(&self.custom.get(name)?.definition)
    }

    /// Serves a definition, in place of its older form, for objects stored since `revision`.
    pub fn serve(&mut self, name: &str, definition: crd::Definition, revision: u64) {
        let definition = Arc::new(definition);
        let resources = super::custom::resources(&definition, revision);
        Arc::make_mut(&mut self.custom).insert(name.to_owned(), Custom { definition, resources });
    }

    /// Serves a definition no longer.
    pub fn withdraw(&mut self, name: &str) {
        Arc::make_mut(&mut self.custom).remove(name);
    }
}

impl Clone for Custom {
    fn clone(&self) -> Custom {
        Custom { definition: self.definition.clone(), resources: self.resources.clone() }
    }
}

impl Default for Registry {
    fn default() -> Registry {
        Registry::new()
    }
}

/// A line of `resources.jsonl`; `tools/table/README.md` describes the keys.
#[derive(Deserialize, Default)]
struct Row<'a> {
    #[serde(default)]
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    kind: &'a str,
    #[serde(default)]
    singular: &'a str,
    #[serde(default)]
    namespaced: bool,
    #[serde(default, borrow)]
    short: Vec<&'a str>,
    #[serde(default, borrow)]
    categories: Vec<&'a str>,
    #[serde(borrow)]
    verbs: Vec<&'a str>,
    #[serde(default)]
    hash: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    #[serde(default)]
    list: &'a str,
    #[serde(default)]
    subresources: Vec<Subresource>,
    #[serde(default, rename = "createOnUpdate")]
    create_on_update: bool,
    #[serde(default, rename = "unconditionalUpdate")]
    unconditional_update: bool,
    #[serde(default)]
    reset: BTreeMap<String, Vec<Vec<String>>>,
    #[serde(default)]
    storage: &'a str,
    #[serde(default, rename = "defaultGC")]
    default_gc: &'a str,
    #[serde(default, borrow)]
    columns: Option<&'a RawValue>,
    #[serde(default)]
    fields: Value,
}

impl Builtin {
    fn load() -> Builtin {
        let resources: Vec<Arc<Resource>> = include_str!("../../table/resources.jsonl")
            .lines()
            .map(|line| {
                let row: Row<'static> =
                    serde_json::from_str(line).unwrap_or_else(|e| panic!("resources.jsonl: {e}: {line}"));
                Arc::new(row.into_resource())
            })
            .collect();
        let groups = include_str!("../../table/groups.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("groups.jsonl: {e}: {line}")))
            .filter(|group: &Group| !group.group.is_empty())
            .collect();
        let mut built = Builtin { groups, resources, by_plural: HashMap::new(), by_kind: HashMap::new() };
        for (index, resource) in built.resources.iter().enumerate() {
            built.by_plural.entry(resource.plural.to_string()).or_default().push(index);
            built.by_kind.entry(resource.kind.to_string()).or_default().push(index);
        }
        built
    }

    /// The resources that an index has under a word.
    fn alike<'a>(
        &'a self,
        index: &'a HashMap<String, Vec<usize>>,
        word: &str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        index.get(word).into_iter().flatten().map(|&at| &self.resources[at])
    }
}

impl Row<'static> {
    fn into_resource(self) -> Resource {
        let id = schema::builtin().id(self.type_name).unwrap_or_else(|| panic!("no type {}", self.type_name));
        let own = api_version(self.group, self.version);
        // kube-apiserver stores some kinds in versions that it does not serve; only two kinds are served in more than one.
        let served_twice = matches!(self.resource, "events" | "horizontalpodautoscalers");
        let stored_elsewhere = served_twice && !self.storage.is_empty();
        let storage_api_version = if stored_elsewhere { self.storage.to_owned() } else { own.clone() };
        let (storage_group, _) = split_api_version(&storage_api_version);
        let storage = Kind::new(storage_group, self.resource);
        Resource {
            group: self.group.into(),
            version: self.version.into(),
            plural: self.resource.into(),
            singular: self.singular.into(),
            kind: self.kind.into(),
            list_kind: if self.list.is_empty() {
                format!("{}List", self.kind).into()
            } else {
                self.list.into()
            },
            namespaced: self.namespaced,
            short: self.short.into_iter().map(Str::Borrowed).collect(),
            categories: self.categories.into_iter().map(Str::Borrowed).collect(),
            verbs: self.verbs.into_iter().map(Str::Borrowed).collect(),
            hash: self.hash.into(),
            subresources: self.subresources.into_iter().map(|sub| sub.relative_to(&own)).collect(),
            fields: selectable(&self.fields, id),
            reset: self.reset,
            storage,
            versions: match self.resource {
                // What was owned in the other view of events is forgotten: it is of another group.
                "horizontalpodautoscalers" => vec!["autoscaling/v2".to_owned(), "autoscaling/v1".to_owned()],
                _ => vec![own.clone()],
            },
            converted: storage_api_version != own,
            storage_api_version,
            create_on_update: self.create_on_update,
            unconditional_update: self.unconditional_update,
            default_gc: match self.resource {
                // Their strategies decide by the version of the request, so the table cannot say it.
                "jobs" | "replicationcontrollers" => "orphan".into(),
                _ => self.default_gc.into(),
            },
            returns_deleted: RETURNS_DELETED.contains(&self.resource),
            has_views: self.resource == "events",
            since: 0,
            flavor: Flavor::Builtin { id, hooks: kinds::hooks(self.group, self.kind), columns: self.columns },
        }
    }
}

/// Resources whose deletion answers with the object. It is not in the generated table: upstream keeps it private.
const RETURNS_DELETED: [&str; 20] = [
    "pods",
    "services",
    "podtemplates",
    "namespaces",
    "serviceaccounts",
    "persistentvolumes",
    "persistentvolumeclaims",
    "resourcequotas",
    "storageclasses",
    "volumeattachments",
    "volumeattributesclasses",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourceslices",
    "deviceclasses",
    "devicetaintrules",
    "resourcepoolstatusrequests",
];

/// `{"spec.nodeName": "spec.nodeName", "source": "source.component|reportingComponent", …}`: label to paths.
fn selectable(fields: &Value, id: TypeId) -> Vec<Selectable> {
    let fields = fields.as_object().into_iter().flatten();
    let own = fields.filter(|(label, _)| !matches!(label.as_str(), "metadata.name" | "metadata.namespace"));
    own.map(|(label, path)| {
        let paths: Vec<Vec<String>> =
            path.as_str().unwrap_or(label).split('|').map(keys).filter(|path| !path.is_empty()).collect();
        let absent = paths.first().map_or("", |path| zero_text(id, path));
        Selectable { label: Str::Owned(label.clone()), paths, absent }
    })
    .collect()
}

/// What Go prints for the zero value of the field at a path.
fn zero_text(id: TypeId, path: &[String]) -> &'static str {
    let types = schema::builtin();
    let mut ty = Type::Struct(id);
    for key in path {
        let Type::Struct(id) = ty else { return "" };
        match types.get(id).field(key) {
            Some(field) => ty = field.ty.clone(),
            None => return "",
        }
    }
    match ty {
        Type::Bool => "false",
        Type::Int32 | Type::Int64 => "0",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_loads() {
        let registry = Registry::new();
        let pods = registry.find("", "v1", "pods").unwrap();
        assert!(pods.namespaced && pods.subresource("status").is_some());
        assert!(registry.find("apps", "v1", "deployments").unwrap().has_verb("patch"));
        assert!(registry.groups().iter().any(|group| group.group == "apps"));
        // Columns are read when they are asked for.
        assert_eq!(pods.columns()[1]["name"], "Ready");
        assert!(
            registry.builtin.resources.iter().all(|one| !one.has_verb("list") || !one.columns().is_empty())
        );
    }
}
