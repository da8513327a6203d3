//! A policy, compiled, and its bindings.

use serde_json::Value;

use crate::api::conditions::Compiled;
use crate::api::matching::list;
use crate::crd::{Environment, Returns};
use crate::json::str_at;
use crate::store::Object;

/// A policy with its bindings.
#[derive(Clone)]
pub(super) struct Policy {
    pub name: String,
    revision: u64,
    pub spec: Value,
    pub bindings: Vec<Value>,
    pub environment: Environment,
    /// For conditions there are no variables.
    pub plain: Environment,
    pub conditions: Vec<Compiled>,
    pub validations: Vec<Validation>,
    pub annotations: Vec<Annotation>,
    pub mutations: Vec<Mutation>,
}

/// A mutation of a policy.
#[derive(Clone)]
pub(super) struct Mutation {
    pub expression: Compiled,
}

/// A validation of a policy.
#[derive(Clone)]
pub(super) struct Validation {
    pub source: String,
    pub expression: Compiled,
    pub message: String,
    pub message_expression: Option<Compiled>,
    pub reason: String,
}

/// An annotation for the audit. Its value goes nowhere; that there is none is a fault.
#[derive(Clone)]
pub(super) struct Annotation {
    pub source: String,
    pub expression: Compiled,
}

impl Policy {
    /// Whether it was made of this object.
    pub fn is(&self, object: &Object) -> bool {
        self.name == object.name() && self.revision == object.revision()
    }

    /// A policy with its bindings; `known` is the same policy with other ones.
    pub fn of(object: &Object, bindings: Vec<Value>, known: Option<&Policy>) -> Policy {
        if let Some(known) = known {
            return Policy { bindings, ..known.clone() };
        }
        let stored: Value = serde_json::from_slice(object.body()).unwrap_or_default();
        let spec = stored.get("spec").cloned().unwrap_or_default();
        let has_params = spec.get("paramKind").is_some_and(Value::is_object);
        let plain = Environment::new(has_params, false);
        let mut environment = Environment::new(has_params, true);
        for variable in list(&spec, "variables") {
            // What does not compile is told to whoever asks for it.
            let _told = environment.define(str_at(variable, &["name"]), str_at(variable, &["expression"]));
        }
        let text = |value: &Value, key: &str| str_at(value, &[key]).to_owned();
        let conditions = list(&spec, "matchConditions").iter();
        let conditions = conditions.map(|one| plain.compile(&text(one, "expression"), Returns::Bool, true));
        let validations = list(&spec, "validations").iter().map(|one| {
            let (source, message) = (text(one, "expression"), text(one, "messageExpression"));
            Validation {
                expression: environment.compile(&source, Returns::Bool, true),
                source,
                message: text(one, "message"),
                message_expression: (!message.is_empty())
                    .then(|| environment.compile(&message, Returns::Text, false)),
                reason: text(one, "reason"),
            }
        });
        let annotations = list(&spec, "auditAnnotations").iter().map(|one| {
            let source = text(one, "valueExpression");
            let expression = environment.compile(&source, Returns::TextOrNull, true);
            Annotation { source, expression }
        });
        let mutations = list(&spec, "mutations").iter().map(|one| {
            let (place, returns) = match str_at(one, &["patchType"]) {
                "JSONPatch" => ("jsonPatch", Returns::Patches),
                _ => ("applyConfiguration", Returns::Object),
            };
            Mutation { expression: environment.compile(&text(&one[place], "expression"), returns, true) }
        });
        Policy {
            mutations: mutations.collect(),
            name: object.name().to_owned(),
            revision: object.revision(),
            conditions: conditions.collect(),
            validations: validations.collect(),
            annotations: annotations.collect(),
            spec,
            bindings,
            environment,
            plain,
        }
    }

    /// Whether it matters that it could not be told what it says.
    pub fn fails(&self) -> bool {
        str_at(&self.spec, &["failurePolicy"]) != "Ignore"
    }
}
