//! Custom resource definitions: structural schemas, validation, CEL rules, and the life of a definition.
//!
//! ```text
//! CustomResourceDefinition ── default_definition → prepare_* → validate_* → establish   (object, establish)
//!        └─ Definition::compile → Version                                               (props: the schema, read)
//!             custom object ── prune → default → validate                               (prune, defaults, validate)
//!                                            ├─ kube-openapi's checks                    (validate, number, formats)
//!                                            ├─ embedded resources, list sets and maps   (embedded, lists)
//!                                            └─ x-kubernetes-validations                 (cel)
//! ```
//!
//! Reasons and field paths are those of kube-apiserver 1.36, and most messages, too; `tests/data/crd` holds its
//! recorded answers.

mod approval;
mod cel;
mod check_defaults;
mod correlate;
mod defaults;
mod duration;
mod embedded;
mod establish;
mod formats;
mod hint;
mod keywords;
mod lists;
mod number;
mod object;
mod openapi;
mod paths;
mod pattern;
mod props;
mod prune;
mod root;
mod scale;
mod structural;
mod text;
mod types;
mod validate;
mod versions;
mod webhook;

use serde_json::Value;

use self::correlate::Old;
use self::props::Props;
use self::validate::Failure;
use crate::field::{Error, Errors, Path, Reason};
use crate::json::str_at;
use crate::schema;

pub(crate) use self::cel::{
    Answer, Asked, Authorizer, Environment, Evaluator, Expression, Given, NOT_MADE, OutOfBudget, Part,
    Returns, Who, is_keyword,
};
pub use self::establish::{establish, is_condition_true};
pub use self::hint::v1beta1_hint;
pub use self::object::{
    default_definition, prepare_create, prepare_status_update, prepare_update, validate_create,
    validate_status_update, validate_update, warnings,
};
pub use self::root::empty_roots;
pub use self::versions::version_order;

/// A definition, ready to serve its kind.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The API group.
    pub group: String,
    /// The names of the resource.
    pub names: Names,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// All versions, in the order of the definition.
    pub versions: Vec<Version>,
    /// How versions are converted into each other.
    pub conversion: Conversion,
}

/// The names of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// As it stands in URLs.
    pub plural: String,
    /// For the command line.
    pub singular: String,
    /// The kind of an object.
    pub kind: String,
    /// The kind of a list of objects.
    pub list_kind: String,
    /// Abbreviations for the command line.
    pub short_names: Vec<String>,
    /// Groups of resources such as `all`.
    pub categories: Vec<String>,
}

/// How the versions of a kind are converted.
#[derive(Clone, Debug, PartialEq)]
pub enum Conversion {
    /// Only `apiVersion` changes.
    None,
    /// A webhook is asked; the value is `spec.conversion.webhook`.
    Webhook(Value),
}

/// One version of a kind.
#[derive(Clone, Debug)]
pub struct Version {
    /// `v1`
    pub name: String,
    /// Whether it can be read and written.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// For a deprecated version: the warning that clients get.
    pub deprecation: Option<String>,
    /// What `kubectl get` shows besides the name; the age if there is nothing else.
    pub columns: Vec<Column>,
    /// Whether there is a `/status`.
    pub has_status: bool,
    /// Whether there is a `/scale`, and where it looks.
    pub scale: Option<Scale>,
    /// JSON paths of the fields that field selectors know besides name and namespace, such as `.spec.color`.
    pub selectable_fields: Vec<String>,
    /// The types of the kind for server-side apply.
    pub types: schema::Types,
    /// The type of an object in [`Version::types`].
    pub root: schema::TypeId,
    group: String,
    names: Names,
    props: Props,
    rules: Option<cel::Rules>,
    source: Value,
}

/// An entry of `additionalPrinterColumns`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub ty: String,
    /// An OpenAPI format.
    pub format: String,
    /// What the column tells.
    pub description: String,
    /// 0 for the usual view, more for the wide one.
    pub priority: i32,
    /// Where the value is found.
    pub json_path: String,
}

/// Where `/scale` finds its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// `.spec.replicas`
    pub spec_path: String,
    /// `.status.replicas`
    pub status_path: String,
    /// `.status.selector`, if there is one.
    pub selector_path: Option<String>,
}

impl Definition {
    /// Reads a definition: a canonical `apiextensions.k8s.io/v1` object that has been validated.
    ///
    /// # Errors
    ///
    /// A rule in CEL that does not compile; validation has refused such a definition before.
    pub fn compile(crd: &Value) -> Result<Definition, Errors> {
        let spec = &crd["spec"];
        let group = str_at(spec, &["group"]).to_owned();
        let names = Names::read(&spec["names"]);
        let versions = spec["versions"].as_array().into_iter().flatten();
        let conversion = match str_at(spec, &["conversion", "strategy"]) {
            "Webhook" => Conversion::Webhook(spec["conversion"]["webhook"].clone()),
            _ => Conversion::None,
        };
        let mut compiled = Vec::new();
        for (i, version) in versions.enumerate() {
            compiled.push(Version::read(version, &group, &names).map_err(|why| {
                let mut errors = Errors::default();
                let list = Path::Root.child("spec").child("versions").to_string();
                let field = format!("{list}[{i}].schema");
                errors.0.push(Error {
                    reason: Reason::Invalid,
                    field,
                    message: format!("Invalid value: {why}"),
                });
                errors
            })?);
        }
        versions::recommend(&mut compiled);
        Ok(Definition {
            versions: compiled,
            namespaced: str_at(spec, &["scope"]) == "Namespaced",
            group,
            names,
            conversion,
        })
    }

    /// The version of this name, if it is served.
    pub fn served(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name && version.served)
    }

    /// The version in which objects are stored.
    pub fn storage(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }
}

impl Names {
    /// Reads `spec.names` or `status.acceptedNames`.
    pub fn read(names: &Value) -> Names {
        let text = |key: &str| str_at(names, &[key]).to_owned();
        let list = |key: &str| {
            let list = names[key].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Names {
            plural: text("plural"),
            singular: text("singular"),
            kind: text("kind"),
            list_kind: text("listKind"),
            short_names: list("shortNames"),
            categories: list("categories"),
        }
    }
}

impl Version {
    fn read(version: &Value, group: &str, names: &Names) -> Result<Version, String> {
        let name = str_at(version, &["name"]).to_owned();
        let source = version["schema"]["openAPIV3Schema"].clone();
        let props = Props::read(&source);
        let (types, root) = types::build(&props, group, &name, &names.kind);
        let scale = &version["subresources"]["scale"];
        let text = |key: &str| str_at(scale, &[key]).to_owned();
        let scale = scale.is_object().then(|| Scale {
            spec_path: text("specReplicasPath"),
            status_path: text("statusReplicasPath"),
            selector_path: Some(text("labelSelectorPath")).filter(|path| !path.is_empty()),
        });
        let warning = || match version["deprecationWarning"].as_str() {
            Some(warning) => warning.to_owned(),
            None => format!("{group}/{name} {} is deprecated", names.kind),
        };
        let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
        let fields = version["selectableFields"].as_array().into_iter().flatten();
        Ok(Version {
            rules: cel::Rules::compile(&props, true)?,
            served: version["served"] == true,
            storage: version["storage"] == true,
            deprecation: (version["deprecated"] == true).then(warning),
            columns: columns.map(Column::read).collect(),
            has_status: version["subresources"]["status"].is_object(),
            scale,
            selectable_fields: fields.map(|field| str_at(field, &["jsonPath"]).to_owned()).collect(),
            types,
            root,
            group: group.to_owned(),
            names: names.clone(),
            props,
            source,
            name,
        })
    }

    /// Drops the fields that the schema does not know and reports their paths, sorted.
    ///
    /// `apiVersion`, `kind` and `metadata` stay, at the root and in embedded resources.
    pub fn prune(&self, object: &mut Value, unknown: &mut Vec<String>) {
        prune::prune(&self.props, object, true, unknown);
    }

    /// Why an object cannot be read at all, if it cannot: its embedded resources have no readable metadata.
    ///
    /// kube-apiserver answers this with `400` before it looks at anything else:
    /// `<Kind> in version "<version>" cannot be handled as a <Kind>: <reason>`.
    pub fn malformed(&self, object: &Value) -> Option<String> {
        embedded::malformed(&self.props, object, &Path::Root)
    }

    /// Drops nulls that their fields may not hold, and fills in defaults. Whether anything was done.
    pub fn default(&self, object: &mut Value) -> bool {
        defaults::apply(&self.props, object)
    }

    /// Fills in defaults. Nulls stay. Whether there was anything to fill in.
    pub fn fill(&self, object: &mut Value) -> bool {
        defaults::fill(&self.props, object)
    }

    /// Checks whether an object is as the schema says; `old` is what it was before, on update. Metadata at the root is checked
    /// elsewhere.
    pub fn validate_form(&self, object: &Value, old: Option<&Value>, errors: &mut Errors) {
        let before = old.map(|old| Old::new(old, &self.props));
        add_failures(validate::validate(&self.props, object, before), None, errors);
        scale::check(self.scale.as_ref(), object, true, errors);
        embedded::check(&self.props, object, false, &Path::Root, errors);
    }

    /// The same for an update of `/status`: only the status must pass its schema.
    pub fn validate_status_form(&self, object: &Value, old: &Value, errors: &mut Errors) {
        if let (Some(status), Some(props)) = (object.get("status"), self.props.properties.get("status")) {
            // Where there was none, a null changes nothing.
            let before = Old::new(old.get("status").unwrap_or(&Value::Null), props);
            let path = Path::Root.child("status");
            add_failures(validate::validate(props, status, Some(before)), Some(&path), errors);
        }
        scale::check(self.scale.as_ref(), object, false, errors);
    }

    /// Checks what lists may hold twice, and the rules. What rules find of parts that an update leaves as they were is given
    /// back instead: kube-apiserver warns of it.
    pub fn validate_rules(&self, object: &Value, old: Option<&Value>, errors: &mut Errors) -> Vec<String> {
        self.check_lists(object, old, errors);
        self.check_rules(object, old, errors)
    }

    /// Rules are run once the object is of the shape that they rely on.
    fn check_rules(&self, object: &Value, old: Option<&Value>, errors: &mut Errors) -> Vec<String> {
        let Some(rules) = &self.rules else { return Vec::new() };
        if errors.0.iter().any(blocks_rules) {
            let message = "Invalid value: null: some validation rules were not checked because the object was \
                           invalid; correct the existing errors to complete validation";
            let field = "<nil>".to_owned();
            errors.0.push(Error { reason: Reason::Invalid, field, message: message.to_owned() });
            return Vec::new();
        }
        let forgiven = rules.run(&self.props, object, old, &Path::Root, true, errors);
        forgiven.iter().map(ToString::to_string).collect()
    }

    /// Lists that held something twice before may go on doing so.
    fn check_lists(&self, object: &Value, old: Option<&Value>, errors: &mut Errors) {
        let mut found = Errors::default();
        lists::check(&self.props, object, &Path::Root, &mut found);
        if found.is_empty() {
            return;
        }
        let mut before = Errors::default();
        if let Some(old) = old {
            lists::check(&self.props, old, &Path::Root, &mut before);
        }
        if before.is_empty() {
            errors.0.append(&mut found.0);
        }
    }

    /// The schema of an object as OpenAPI v3 publishes it.
    pub fn open_api(&self) -> Value {
        openapi::object(self)
    }

    /// The schema of a list of objects as OpenAPI v3 publishes it.
    pub fn open_api_list(&self) -> Value {
        openapi::list(self)
    }

    /// The name of the object's schema in OpenAPI documents: `com.example.stable.v1.CronTab`.
    pub fn open_api_name(&self) -> String {
        openapi::name(&self.group, &self.name, &self.names.kind)
    }
}

impl Column {
    fn read(column: &Value) -> Column {
        let text = |key: &str| str_at(column, &[key]).to_owned();
        Column {
            name: text("name"),
            ty: text("type"),
            format: text("format"),
            description: text("description"),
            priority: column["priority"].as_i64().and_then(|p| i32::try_from(p).ok()).unwrap_or_default(),
            json_path: text("jsonPath"),
        }
    }
}

/// Field errors from failed checks; `base` is where the checked value stands, if it is not the root.
fn add_failures(failures: Vec<Failure>, base: Option<&Path<'_>>, errors: &mut Errors) {
    for Failure { reason, at, message, .. } in failures {
        let at = at.filter(|at| !at.is_empty());
        let field = match (base, at) {
            (None, None) => "<nil>".to_owned(),
            (None, Some(at)) => at,
            (Some(base), None) => base.to_string(),
            (Some(base), Some(at)) => format!("{base}.{at}"),
        };
        errors.0.push(Error { reason, field, message });
    }
}

/// Whether a fault is of a kind that makes it pointless to run rules.
fn blocks_rules(error: &Error) -> bool {
    matches!(
        error.reason,
        Reason::NotSupported | Reason::Required | Reason::TooLong | Reason::TooMany | Reason::TypeInvalid
    )
}
