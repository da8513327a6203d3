//! Rules in CEL (`x-kubernetes-validations`).
//!
//! ```text
//! rule text ── cel's parser → check (names, fields, operators against the schema) → Compiled
//! object ── walk along the schema → eval, with `self` and `oldSelf` → field errors
//! ```
//!
//! A rule that looks at `oldSelf` runs only on update, and only where the older value can be found: through objects
//! and maps, and through lists that are maps. Work is bounded: a rule may cost [`eval::CALL_COST_MAX`], all rules of
//! an object together [`OBJECT_COST_MAX`].
//!
//! Not here: the estimate of costs when a definition is created, and overloads of library functions beyond their
//! names and numbers of arguments.

mod check;
mod depth;
mod escape;
mod eval;
mod functions;
mod library;
mod signatures;
mod types;
mod value;

use std::collections::BTreeMap;

use cel::IdedExpr;
use cel::parser::Parser;
use serde_json::{Value, json};

use self::check::check;
use self::eval::{Machine, Scope};
use self::types::Ty;
use self::value::{Fault, Val};
use super::correlate::{self, Old};
use super::props::{Props, Rule};
use super::{paths, text};
use crate::field::{Error, Errors, Path, Reason};

/// How much all rules may cost for one object, as in kube-apiserver.
const OBJECT_COST_MAX: u64 = 10_000_000;

/// How long an expression may be, in bytes.
const SOURCE_MAX: usize = 64 << 10;

/// How long a message may be that an expression gives, in bytes.
const MESSAGE_MAX: usize = 5 << 10;

/// The rules of a schema and of all below it.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    own: Vec<Compiled>,
    is_resource: bool,
    items: Option<Box<Rules>>,
    additional: Option<Box<Rules>>,
    properties: BTreeMap<String, Rules>,
}

/// A rule, ready to run.
#[derive(Clone, Debug)]
struct Compiled {
    rule: Rule,
    expr: IdedExpr,
    message: Option<IdedExpr>,
    uses_old_self: bool,
    /// Where to report, below the value that is checked; empty for the value itself.
    at: String,
}

/// Why a rule does not compile.
#[derive(Debug)]
enum CompileError {
    Rule(String),
    Message(String),
}

/// Compiles the rules of one node and reports what is wrong with them.
pub(super) fn check_rules(
    props: &Props,
    is_resource: bool,
    path: &Path<'_>,
    uncorrelatable: Option<&str>,
    errors: &mut Errors,
) {
    let Some(own) = Ty::of(props, is_resource) else {
        let message = "Internal error: internal error: failed to construct type information for \
                       x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
        errors.push(Reason::Internal, path, message);
        return;
    };
    for (i, rule) in props.rules.iter().enumerate().filter(|(_, rule)| !rule.rule.trim().is_empty()) {
        let at = path.index(i);
        let shown = text::json(&go_rule(rule));
        match compile(props, rule, &own) {
            Err(CompileError::Rule(detail)) => {
                errors.push(Reason::Invalid, &at.child("rule"), format!("Invalid value: {shown}: {detail}"));
            }
            Err(CompileError::Message(detail)) => {
                let message = format!("Invalid value: {shown}: {detail}");
                errors.push(Reason::Invalid, &at.child("messageExpression"), message);
                continue;
            }
            Ok(compiled) if compiled.uses_old_self => {
                if let Some(within) = uncorrelatable {
                    let detail = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                    );
                    errors.invalid(&at.child("rule"), &rule.rule.as_str().into(), &detail);
                }
                continue;
            }
            Ok(_) => {}
        }
        if let Some(optional) = rule.optional_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            errors.invalid(&at.child("optionalOldSelf"), &optional.into(), detail);
        }
    }
}

/// A rule as messages of kube-apiserver show it: the fields of a Go structure.
fn go_rule(rule: &Rule) -> Value {
    json!({
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": rule.reason,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": rule.optional_old_self,
    })
}

fn compile(props: &Props, rule: &Rule, own: &Ty<'_>) -> Result<Compiled, CompileError> {
    let old = match rule.optional_old_self {
        Some(true) => Ty::Optional(Box::new(own.clone())),
        _ => own.clone(),
    };
    let parse_and_check = |source: &str| {
        let expr = parse(source)?;
        let checked = check(source, &expr, own, &old)?;
        Ok((expr, checked))
    };
    let (expr, checked) = parse_and_check(&rule.rule)
        .map_err(|issues: String| CompileError::Rule(format!("compilation failed: {issues}")))?;
    if !checked.ty.is(&Ty::Bool) {
        return Err(CompileError::Rule("cel expression must evaluate to a bool".into()));
    }
    let message = match rule.message_expression.as_str() {
        "" => None,
        source => {
            let (expr, checked) = parse_and_check(source).map_err(|issues| {
                CompileError::Message(format!("messageExpression compilation failed: {issues}"))
            })?;
            if !checked.ty.is(&Ty::Text) {
                return Err(CompileError::Message("messageExpression must evaluate to a string".into()));
            }
            Some(expr)
        }
    };
    let at = match rule.field_path.as_str() {
        "" => String::new(),
        path => paths::resolve(props, path, true).map(|found| found.path).unwrap_or_default(),
    };
    Ok(Compiled { rule: rule.clone(), expr, message, uses_old_self: checked.uses_old_self, at })
}

fn parse(source: &str) -> Result<IdedExpr, String> {
    if source.len() > SOURCE_MAX {
        return Err(format!("ERROR: <input>:1:1: expression is longer than {SOURCE_MAX} bytes"));
    }
    if depth::bound(source) > depth::DEPTH_MAX {
        return Err(format!("ERROR: <input>:1:1: expression recursion limit exceeded: {}", depth::DEPTH_MAX));
    }
    Parser::new().enable_optional_syntax(true).parse(source).map_err(|errors| errors.to_string())
}

/// Whether an expression over some variables holds. The error says why nobody can tell.
pub(crate) fn condition(source: &str, variables: &[(&str, &Value)]) -> Result<bool, String> {
    let expr = parse(source)?;
    let machine = Machine::new();
    nested(&machine, &expr, variables, &Scope::root(Val::Null))
}

fn nested<'a>(
    machine: &Machine,
    expr: &'a IdedExpr,
    variables: &[(&str, &'a Value)],
    scope: &Scope<'_, 'a>,
) -> Result<bool, String> {
    let words = |fault: Fault| match fault {
        Fault::NoOverload => "no such overload".to_owned(),
        Fault::Cost => "it costs too much".to_owned(),
        Fault::Other(why) => why,
    };
    let Some(((name, value), rest)) = variables.split_first() else {
        return match machine.run(expr, scope).0.map_err(words)? {
            Val::Bool(holds) => Ok(holds),
            _ => Err("it is neither true nor false".to_owned()),
        };
    };
    let value = Val::read(value, None, false).map_err(words)?;
    nested(machine, expr, rest, &Scope::with(scope, name, value))
}

impl Rules {
    /// Compiles the rules of a schema; `None` if it has none. The error names a rule that does not compile.
    pub(super) fn compile(props: &Props, is_resource: bool) -> Result<Option<Rules>, String> {
        let mut out = Rules { is_resource, ..Rules::default() };
        if let Some(own) = Ty::of(props, is_resource).filter(|_| !props.rules.is_empty()) {
            for rule in props.rules.iter().filter(|rule| !rule.rule.trim().is_empty()) {
                let compiled = compile(props, rule, &own).map_err(|error| match error {
                    CompileError::Rule(why) | CompileError::Message(why) => format!("{}: {why}", rule.rule),
                })?;
                out.own.push(compiled);
            }
        }
        if let Some(items) = &props.items {
            out.items = Rules::compile(items, items.embedded)?.map(Box::new);
        }
        if let Some(schema) = props.additional_schema() {
            out.additional = Rules::compile(schema, schema.embedded)?.map(Box::new);
        }
        for (name, schema) in &props.properties {
            if let Some(rules) = Rules::compile(schema, schema.embedded)? {
                out.properties.insert(name.clone(), rules);
            }
        }
        let is_empty = out.own.is_empty()
            && out.items.is_none()
            && out.additional.is_none()
            && out.properties.is_empty();
        Ok((!is_empty).then_some(out))
    }

    /// Runs all rules on a value. `ratchet` says that faults of unchanged parts are forgiven.
    pub(super) fn run(
        &self,
        props: &Props,
        value: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
        ratchet: bool,
        errors: &mut Errors,
    ) {
        let current = old.filter(|_| ratchet).map(|old| (Old::new(old, props), value));
        let mut run = Run { machine: Machine::new(), left: OBJECT_COST_MAX, errors };
        // An early stop has been reported by then.
        let _stopped = run.node(self, props, value, old, path, Unchanged { current, parent: None });
    }
}

/// Nothing more is run: the budget is used up.
struct Stop;

/// What is known of the older value of a part, to tell whether it changed.
#[derive(Clone, Copy)]
struct Unchanged<'a> {
    current: Option<(Old<'a>, &'a Value)>,
    /// The nearest part above that has an older value.
    parent: Option<(Old<'a>, &'a Value)>,
}

impl<'a> Unchanged<'a> {
    fn field(self, name: &str, value: &'a Value) -> Unchanged<'a> {
        match self.current {
            None => self,
            // The two objects are always of one version: a change there cannot be seen.
            Some(_) if self.parent.is_none() && matches!(name, "apiVersion" | "kind") => {
                Unchanged { current: None, parent: None }
            }
            Some((old, _)) => {
                Unchanged { current: old.field(name).map(|old| (old, value)), parent: self.current }
            }
        }
    }

    fn item(self, value: &'a Value) -> Unchanged<'a> {
        match self.current {
            None => self,
            Some((old, _)) => {
                Unchanged { current: old.item(value).map(|old| (old, value)), parent: self.current }
            }
        }
    }

    fn holds(self) -> bool {
        self.current.or(self.parent).is_some_and(|(old, value)| old.equals(value))
    }
}

struct Run<'e> {
    machine: Machine,
    left: u64,
    errors: &'e mut Errors,
}

impl Run<'_> {
    fn node<'a>(
        &mut self,
        rules: &Rules,
        props: &'a Props,
        value: &'a Value,
        old: Option<&'a Value>,
        path: &Path<'_>,
        unchanged: Unchanged<'a>,
    ) -> Result<(), Stop> {
        if value.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        for compiled in &rules.own {
            self.rule(compiled, rules.is_resource, props, value, old, path, unchanged)?;
        }
        match value {
            Value::Array(list) => {
                let (Some(rules), Some(items)) = (&rules.items, props.items.as_deref()) else {
                    return Ok(());
                };
                let before = old.and_then(Value::as_array);
                for (i, value) in list.iter().enumerate() {
                    let old = before.and_then(|before| correlate::find(props, before, value));
                    self.node(rules, items, value, old, &path.index(i), unchanged.item(value))?;
                }
            }
            Value::Object(map) => {
                let before = old.and_then(Value::as_object);
                for (key, value) in map {
                    let old = before.and_then(|before| before.get(key));
                    let unchanged = unchanged.field(key, value);
                    if let (Some(rules), Some(schema)) = (&rules.additional, props.additional_schema()) {
                        self.node(rules, schema, value, old, &path.key(key), unchanged)?;
                    }
                    if let (Some(rules), Some(schema)) =
                        (rules.properties.get(key), props.properties.get(key))
                    {
                        self.node(rules, schema, value, old, &path.child(key), unchanged)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "all of it belongs to the one place that is looked at")]
    fn rule<'a>(
        &mut self,
        compiled: &Compiled,
        is_resource: bool,
        props: &'a Props,
        value: &'a Value,
        old: Option<&'a Value>,
        path: &Path<'_>,
        unchanged: Unchanged<'a>,
    ) -> Result<(), Stop> {
        let rule = &compiled.rule;
        let is_optional = rule.optional_old_self == Some(true);
        if compiled.uses_old_self && old.is_none() && !is_optional {
            return Ok(());
        }
        let at = |below: &str| match (matches!(path, Path::Root), below) {
            (true, "") => "<nil>".to_owned(),
            (true, below) => below.to_owned(),
            (false, "") => path.to_string(),
            (false, below) => format!("{path}.{below}"),
        };
        let failed = |detail: String| Error {
            reason: Reason::Invalid,
            field: at(""),
            message: format!("Invalid value: {:?}: {detail}", props.ty),
        };
        let out_of_budget = || {
            failed("validation failed due to running out of cost budget, no further validation rules will be run".into())
        };
        let outcome = evaluate(&self.machine, compiled, is_resource, props, value, old);
        // One rule cannot use up more than its own limit, however large the last step would have been.
        self.left = match self.left.checked_sub(outcome.cost.min(eval::CALL_COST_MAX)) {
            Some(left) => left,
            None => {
                self.errors.0.push(out_of_budget());
                return Err(Stop);
            }
        };
        let shown = if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() };
        let detail = match outcome.result {
            Ok(None) => return Ok(()),
            Ok(Some(detail)) => detail,
            Err(Fault::NoOverload) => {
                self.errors.0.push(failed(format!(
                    "'no such overload': call arguments did not match a supported operator, function or macro signature \
                     for rule: {shown}"
                )));
                return Ok(());
            }
            Err(Fault::Cost) => {
                self.errors.0.push(failed(format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to \
                     call cost exceeds limit for rule: {shown}"
                )));
                return Err(Stop);
            }
            Err(Fault::Other(text)) => {
                self.errors.0.push(failed(format!("{text} evaluating rule: {shown}")));
                return Ok(());
            }
        };
        if !compiled.uses_old_self && unchanged.holds() {
            return Ok(());
        }
        let shown = match props.ty.as_str() {
            "object" | "array" => String::new(),
            _ => format!(": {}", text::value(value)),
        };
        let (reason, message) = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => (Reason::Forbidden, format!("Forbidden: {detail}")),
            Some("FieldValueRequired") => (Reason::Required, format!("Required value: {detail}")),
            Some("FieldValueDuplicate") => (Reason::Duplicate, format!("Duplicate value{shown}")),
            _ => (Reason::Invalid, format!("Invalid value{shown}: {detail}")),
        };
        self.errors.0.push(Error { reason, field: at(&compiled.at), message });
        Ok(())
    }
}

/// What a rule said: nothing if it holds, else why it does not.
struct Outcome {
    result: value::Result<Option<String>>,
    cost: u64,
}

fn evaluate(
    machine: &Machine,
    compiled: &Compiled,
    is_resource: bool,
    props: &Props,
    value: &Value,
    old: Option<&Value>,
) -> Outcome {
    let read = |value| Val::read(value, Some(props), is_resource);
    let own = match read(value) {
        Ok(own) => own,
        Err(fault) => return Outcome { result: Err(fault), cost: 0 },
    };
    let root = Scope::root(own);
    let old = match (old.map(read).transpose(), compiled.rule.optional_old_self) {
        (Err(fault), _) => return Outcome { result: Err(fault), cost: 0 },
        (Ok(old), Some(true)) => Some(Val::Optional(old.map(std::rc::Rc::new))),
        (Ok(old), _) => old,
    };
    let with_old = old.map(|old| Scope::with(&root, "oldSelf", old));
    let scope = with_old.as_ref().unwrap_or(&root);
    let (result, cost) = machine.run(&compiled.expr, scope);
    match result {
        Ok(Val::Bool(true)) => return Outcome { result: Ok(None), cost },
        Ok(Val::Bool(false)) => {}
        Ok(_) => return Outcome { result: Err(Fault::NoOverload), cost },
        Err(fault) => return Outcome { result: Err(fault), cost },
    }
    let rule = &compiled.rule;
    let own_message = || match rule.message.trim() {
        "" => format!("failed rule: {}", rule.rule.trim()),
        message => message.to_owned(),
    };
    let Some(expr) = &compiled.message else { return Outcome { result: Ok(Some(own_message())), cost } };
    let (result, message_cost) = machine.run(expr, scope);
    let usable = |text: &str| !text.is_empty() && text.len() <= MESSAGE_MAX && !text.contains('\n');
    let detail = match result {
        Err(Fault::Cost) => return Outcome { result: Err(Fault::Cost), cost },
        Ok(Val::Text(text)) if usable(text.trim()) => text.trim().to_owned(),
        // A message that cannot be made is no reason to hide the fault.
        _ => own_message(),
    };
    Outcome { result: Ok(Some(detail)), cost: cost.saturating_add(message_cost) }
}
