//! Expressions over a request: what admission policies and the conditions of webhooks are made of.
//!
//! ```text
//! object, oldObject, params ── of types that nobody knows before
//! request, namespaceObject ─── of types of their own
//! variables ────────────────── expressions with names, each evaluated when it is first asked for
//! authorizer ───────────────── who may do what
//! ```

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use cel::IdedExpr;
use serde_json::Value;

use super::authorizer::{Asked, Authorizer, Check, Part, Who};
use super::check::check;
use super::decl::Decl;
use super::eval::{Lazy, Machine, Overloads, Patterns, Scope};
use super::parse::parse;
use super::types::Ty;
use super::value::{Fault, Result as Valued, Val};
use super::{instantiate, made};

/// What an expression has to give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Returns {
    Bool,
    Text,
    TextOrNull,
    /// An object, to be laid over another one.
    Object,
    /// Steps of a JSON patch.
    Patches,
    /// Whatever it likes.
    Anything,
}

impl Returns {
    fn makes_objects(self) -> bool {
        matches!(self, Returns::Object | Returns::Patches)
    }
}

/// An expression, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    source: String,
    expr: IdedExpr,
    overloads: Overloads,
    ty: Ty,
}

/// What expressions may speak of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    has_params: bool,
    /// Names and what they stand for, or why that does not compile; none at all where there is no such thing.
    variables: Option<BTreeMap<String, Result<Expression, String>>>,
}

impl Environment {
    /// An environment with or without `params` and `variables`.
    pub(crate) fn new(has_params: bool, has_variables: bool) -> Environment {
        Environment { has_params, variables: has_variables.then(BTreeMap::new) }
    }

    /// Compiles a variable, and gives it a name for what comes after it.
    pub(crate) fn define(&mut self, name: &str, source: &str) -> Result<(), String> {
        let compiled = self.compile(source, Returns::Anything, true);
        let told = compiled.as_ref().map(|_| ()).map_err(Clone::clone);
        self.variables.get_or_insert_default().insert(name.to_owned(), compiled);
        told
    }

    /// Compiles an expression. The error says what is wrong with it.
    pub(crate) fn compile(
        &self,
        source: &str,
        returns: Returns,
        has_authorizer: bool,
    ) -> Result<Expression, String> {
        let mut declared = vec![
            ("object", Ty::Dyn),
            ("oldObject", Ty::Dyn),
            ("request", Ty::Object(REQUEST.clone())),
            ("namespaceObject", Ty::Object(NAMESPACE.clone())),
        ];
        if self.has_params {
            declared.push(("params", Ty::Dyn));
        }
        if has_authorizer {
            declared.push(("authorizer", Ty::Struct("kubernetes.authorization.Authorizer")));
            declared.push((REQUEST_RESOURCE, Ty::Struct("kubernetes.authorization.ResourceCheck")));
        }
        if let Some(variables) = &self.variables {
            let ty = |compiled: &Result<Expression, String>| {
                compiled.as_ref().map_or(Ty::Dyn, |compiled| plain(&compiled.ty))
            };
            let fields = variables.iter().map(|(name, compiled)| (name.as_str(), ty(compiled)));
            declared.push(("variables", Ty::Object(Decl::declared("kubernetes.variables", fields))));
        }
        let failed = |issues: String| format!("compilation failed: {issues}");
        let parsed = parse(source).map_err(failed)?;
        let checked = check(source, &parsed, &declared, returns.makes_objects()).map_err(failed)?;
        let wanted = match returns {
            Returns::Bool => vec![Ty::Bool],
            Returns::Text => vec![Ty::Text],
            Returns::TextOrNull => vec![Ty::Text, Ty::Null],
            Returns::Object => vec![Ty::Made(made::OBJECT.into())],
            Returns::Patches => vec![Ty::list(Ty::Made(made::PATCH.into()))],
            Returns::Anything => Vec::new(),
        };
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted.same(&checked.ty)) {
            let wanted = match &wanted[..] {
                [only] => only.in_full(),
                several => {
                    let names: Vec<String> = several.iter().map(Ty::in_full).collect();
                    format!("one of [{}]", names.join(" "))
                }
            };
            return Err(format!("must evaluate to {wanted} but got {}", checked.ty.in_full()));
        }
        let overloads = checked.overloads();
        instantiate::check(&parsed.expr, &overloads).map_err(|why| format!("{NOT_MADE}: {why}"))?;
        Ok(Expression { source: source.to_owned(), expr: parsed.expr, overloads, ty: checked.ty })
    }
}

/// Before why no program could be made of an expression that compiles, which kube-apiserver takes for its own fault.
pub(crate) const NOT_MADE: &str = "program instantiation failed";

/// The variable that asks about what the request is about. It is one name, in spite of the dot.
pub(super) const REQUEST_RESOURCE: &str = "authorizer.requestResource";

/// What variables keep of the types of their values.
fn plain(ty: &Ty) -> Ty {
    match ty {
        Ty::Bool
        | Ty::Bytes
        | Ty::Double
        | Ty::Duration
        | Ty::Int
        | Ty::Null
        | Ty::Text
        | Ty::Timestamp
        | Ty::UInt => ty.clone(),
        Ty::List(element) => Ty::list(plain(element)),
        Ty::Map(key, value) => Ty::map(plain(key), plain(value)),
        _ => Ty::Dyn,
    }
}

fn texts() -> Ty {
    Ty::list(Ty::Text)
}

static REQUEST: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let place = |kind: &str, name: &str| {
        let fields = ["group", "version", name].map(|field| (field, Ty::Text));
        Ty::Object(Decl::declared(kind, fields))
    };
    let (kind, resource) =
        (place("kubernetes.GroupVersionKind", "kind"), place("kubernetes.GroupVersionResource", "resource"));
    let user = Decl::declared(
        "kubernetes.UserInfo",
        [
            ("username", Ty::Text),
            ("uid", Ty::Text),
            ("groups", texts()),
            ("extra", Ty::map(Ty::Text, texts())),
        ],
    );
    Decl::declared(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", Ty::Text),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", Ty::Text),
            ("name", Ty::Text),
            ("namespace", Ty::Text),
            ("operation", Ty::Text),
            ("userInfo", Ty::Object(user)),
            ("dryRun", Ty::Bool),
            ("options", Ty::Dyn),
        ],
    )
});

static NAMESPACE: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let pairs = || Ty::map(Ty::Text, Ty::Text);
    let condition = Decl::declared(
        "kubernetes.NamespaceCondition",
        [
            ("status", Ty::Text),
            ("type", Ty::Text),
            ("lastTransitionTime", Ty::Timestamp),
            ("message", Ty::Text),
            ("reason", Ty::Text),
        ],
    );
    let status = Decl::declared(
        "kubernetes.NamespaceStatus",
        [("conditions", Ty::list(Ty::Object(condition))), ("phase", Ty::Text)],
    );
    let metadata = Decl::declared(
        "kubernetes.NamespaceMetadata",
        [
            ("name", Ty::Text),
            ("generateName", Ty::Text),
            ("namespace", Ty::Text),
            ("labels", pairs()),
            ("annotations", pairs()),
            ("UID", Ty::Text),
            ("creationTimestamp", Ty::Timestamp),
            ("deletionGracePeriodSeconds", Ty::Int),
            ("deletionTimestamp", Ty::Timestamp),
            ("generation", Ty::Int),
            ("resourceVersion", Ty::Text),
            ("finalizers", texts()),
        ],
    );
    let spec = Decl::declared("kubernetes.NamespaceSpec", [("finalizers", texts())]);
    Decl::declared(
        "kubernetes.Namespace",
        [("metadata", Ty::Object(metadata)), ("spec", Ty::Object(spec)), ("status", Ty::Object(status))],
    )
});

/// What the names stand for in one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub object: &'a Value,
    pub old: &'a Value,
    pub request: &'a Value,
    pub params: &'a Value,
    pub namespace: &'a Value,
    /// Who decides what may be done, and what the request is about.
    pub authorizer: Option<(&'a dyn Authorizer, &'a Part)>,
}

/// What came of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Bool(bool),
    Text(String),
    Null,
    /// An object, or what is wrong with it.
    Object(Result<Value, String>),
    /// The steps of a JSON patch, or what is wrong with them.
    Patches(Result<Vec<Value>, String>),
    /// Anything else, by its type.
    Other(&'static str),
}

/// The budget is used up: nothing more is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

/// Evaluates expressions of one environment over one request. What a variable gave is kept.
pub(crate) struct Evaluator<'a> {
    environment: &'a Environment,
    given: Given<'a>,
    patterns: Patterns,
    known: RefCell<HashMap<&'a str, Valued<Val<'a>>>>,
    /// What variables have cost since it was last asked.
    spent: Cell<u64>,
    /// How much all of it may still cost.
    left: Cell<u64>,
}

impl<'a> Evaluator<'a> {
    /// Begins anew, with a budget.
    pub(crate) fn new(environment: &'a Environment, given: Given<'a>, budget: u64) -> Evaluator<'a> {
        Evaluator {
            environment,
            given,
            patterns: Patterns::default(),
            known: RefCell::default(),
            spent: Cell::new(0),
            left: Cell::new(budget),
        }
    }

    /// How much of the budget is left.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    /// What an expression gives, or why it gives nothing.
    pub(crate) fn run(&self, expression: &'a Expression) -> Result<Result<Answer, String>, OutOfBudget> {
        let (value, cost) = self.evaluate(expression);
        for cost in [self.spent.replace(0), cost] {
            self.left.set(self.left.get().checked_sub(cost).ok_or(OutOfBudget)?);
        }
        let failed = |fault: Fault| {
            format!("expression '{}' resulted in error: {}", expression.source, fault.in_words())
        };
        Ok(value.map_err(failed).map(|value| match value {
            Val::Bool(value) => Answer::Bool(value),
            Val::Text(text) => Answer::Text(text.to_string()),
            Val::Null => Answer::Null,
            Val::Made(made) => Answer::Object(made.to_json()),
            Val::List(list) if returns_patches(expression) => {
                let step = |value: &Val<'_>| match value {
                    Val::Made(made) => made.to_step(),
                    other => Err(format!("{} is no step of a patch", other.type_name())),
                };
                Answer::Patches(list.iter().map(step).collect())
            }
            other => Answer::Other(other.type_name()),
        }))
    }

    fn evaluate(&self, expression: &'a Expression) -> (Valued<Val<'a>>, u64) {
        let Given { object, old, request, params, namespace, authorizer } = self.given;
        let mut values = Vec::new();
        let json = [
            ("object", object),
            ("oldObject", old),
            ("request", request),
            ("params", params),
            ("namespaceObject", namespace),
        ];
        for (name, value) in json {
            match Val::read(value, None, false) {
                Ok(value) => values.push((name, value)),
                Err(fault) => return (Err(fault), 0),
            }
        }
        if let Some((_, about)) = authorizer {
            let part = Asked::Resource(about.clone().into());
            values.push(("authorizer", Check::Authorizer(Who::Requester).into()));
            values.push((REQUEST_RESOURCE, Check::Asked(Who::Requester, part).into()));
        }
        if self.environment.variables.is_some() {
            values.push(("variables", Val::Composed));
        }
        let machine = Machine::new(&self.patterns, Some(&expression.overloads))
            .with_authorizer(authorizer.map(|(authorizer, _)| authorizer));
        let root = Scope::lazy(self);
        within(&machine, &expression.expr, &values, &root)
    }
}

fn returns_patches(expression: &Expression) -> bool {
    matches!(&expression.ty, Ty::List(element) if matches!(&**element, Ty::Made(name) if &**name == made::PATCH))
}

/// Evaluates with some variables more.
fn within<'a>(
    machine: &Machine<'_>,
    expr: &'a IdedExpr,
    values: &[(&'static str, Val<'a>)],
    scope: &Scope<'_, 'a>,
) -> (Valued<Val<'a>>, u64) {
    match values.split_first() {
        None => machine.run(expr, scope),
        Some(((name, value), rest)) => within(machine, expr, rest, &Scope::with(scope, name, value.clone())),
    }
}

impl<'a> Lazy<'a> for Evaluator<'a> {
    fn field(&self, name: &str) -> Option<Valued<Val<'a>>> {
        let (name, compiled) = self.environment.variables.as_ref()?.get_key_value(name)?;
        if let Some(known) = self.known.borrow().get(name.as_str()) {
            return Some(known.clone());
        }
        let value = match compiled {
            Err(why) => Err(Fault::other(format!("composited variable {name:?} fails to compile: {why}"))),
            Ok(expression) => {
                let (value, cost) = self.evaluate(expression);
                self.spent.set(self.spent.get().saturating_add(cost));
                value.map_err(|fault| {
                    let why = fault.in_words();
                    Fault::other(format!("composited variable {name:?} fails to evaluate: {why}"))
                })
            }
        };
        self.known.borrow_mut().insert(name, value.clone());
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(source: &str, variables: &[(&str, &str)]) -> Result<Answer, String> {
        let mut environment = Environment::new(true, !variables.is_empty());
        for (name, source) in variables {
            environment.define(name, source)?;
        }
        let compiled = environment.compile(source, Returns::Anything, true)?;
        let (object, null) = (json!({"data": {"a": "b"}}), Value::Null);
        let (request, namespace) = (json!({"name": "x", "dryRun": false}), json!({"metadata": {}}));
        let given = Given {
            object: &object,
            old: &null,
            request: &request,
            params: &null,
            namespace: &namespace,
            authorizer: None,
        };
        let evaluator = Evaluator::new(&environment, given, 1_000_000);
        evaluator.run(&compiled).map_err(|_| "out of budget".to_owned())?
    }

    #[test]
    fn names_stand_for_the_request_and_its_object() {
        assert_eq!(answer("object.data.a == 'b' && request.name == 'x'", &[]), Ok(Answer::Bool(true)));
        assert_eq!(answer("params == null && oldObject == null", &[]), Ok(Answer::Bool(true)));
        let refused = answer("request.nothing == 'x'", &[]).unwrap_err();
        assert!(refused.contains("undefined field 'nothing'"), "{refused}");
        assert!(answer("variables.a == 1", &[]).unwrap_err().contains("undeclared reference to 'variables'"));
    }

    #[test]
    fn what_cannot_be_looked_into_has_no_such_key() {
        let missing = "expression 'oldObject.x.y == 1' resulted in error: no such key: x";
        assert_eq!(answer("oldObject.x.y == 1", &[]), Err(missing.to_owned()));
        assert_eq!(answer("has(object.data.a.b)", &[]), Ok(Answer::Bool(false)));
        let missing = "expression 'object.data.a[0] == 1' resulted in error: no such key: 0";
        assert_eq!(answer("object.data.a[0] == 1", &[]), Err(missing.to_owned()));
    }

    #[test]
    fn variables_know_those_before_them_and_are_evaluated_when_asked_for() {
        let variables =
            [("one", "object.data.size()"), ("bad", "object.nothing"), ("two", "variables.one + 1")];
        assert_eq!(answer("variables.two == 2", &variables), Ok(Answer::Bool(true)));
        let refused = answer("variables.bad == 1", &variables).unwrap_err();
        let why = "composited variable \"bad\" fails to evaluate: no such key: nothing";
        assert_eq!(refused, format!("expression 'variables.bad == 1' resulted in error: {why}"));
    }

    #[test]
    fn what_is_given_has_to_be_of_the_right_type() {
        let environment = Environment::new(false, false);
        let refused = |source, returns| environment.compile(source, returns, false).unwrap_err();
        assert_eq!(refused("object.a", Returns::Bool), "must evaluate to bool but got dyn");
        assert_eq!(
            refused("1", Returns::TextOrNull),
            "must evaluate to one of [string null_type] but got int"
        );
    }
}
