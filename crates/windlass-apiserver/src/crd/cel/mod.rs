//! Rules in CEL (`x-kubernetes-validations`).
//!
//! ```text
//! rule text ── lex, parse, macros → check (types against decl, which is the schema) → instantiate → estimate → Compiled
//! object ── walk along the schema → eval, with `self` and `oldSelf` → field errors
//! ```
//!
//! A rule that looks at `oldSelf` runs only on update, and only where the older value can be found: through objects
//! and maps, and through lists that are maps. Work is bounded twice. When a definition is created, the most that a rule
//! can cost is estimated from the schema ([`RULE_ESTIMATE_MAX`], [`SCHEMA_ESTIMATE_MAX`]). When an object is written, a
//! rule may cost [`eval::CALL_COST_MAX`], all rules of an object together [`OBJECT_COST_MAX`].
//!
//! Not here: messages of protobuf as literals, such as `google.protobuf.Timestamp{}`.

mod address;
mod authorizer;
mod bounds;
mod check;
mod convert;
mod decl;
mod depth;
mod environment;
mod escape;
mod estimate;
mod eval;
mod format;
mod functions;
mod instantiate;
mod issue;
mod lex;
mod library;
mod library_cost;
mod link;
mod literals;
mod macros;
mod made;
mod named;
mod overloads;
mod parse;
mod range;
mod semver;
mod spent;
mod traits;
mod types;
mod unify;
mod value;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use cel::IdedExpr;
use serde_json::{Value, json};

use self::check::{Checked, check};
use self::decl::Decl;
use self::eval::{Machine, Overloads, Patterns, Scope};
use self::parse::{Parsed, parse};
use self::types::Ty;
use self::value::{Fault, Val};
use super::correlate::{self, Old};
use super::props::{Props, Rule};
use super::{paths, text};
use crate::field::{Error, Errors, Path, Reason};

pub(crate) use self::authorizer::{Asked, Authorizer, Part, Who};
pub(super) use self::decl::{element_of, is_declared, property_of};
pub(crate) use self::environment::{
    Answer, Environment, Evaluator, Expression, Given, NOT_MADE, OutOfBudget, Returns,
};
pub(crate) use self::escape::is_keyword;

/// How much all rules may cost for one object, as in kube-apiserver.
const OBJECT_COST_MAX: u64 = 10_000_000;

/// How much one rule may cost by estimate, for all places of an object where it can run.
const RULE_ESTIMATE_MAX: u64 = 10_000_000;

/// How much all rules of a schema may cost by estimate.
const SCHEMA_ESTIMATE_MAX: u64 = 100_000_000;

/// How long a message may be that an expression gives, in bytes.
const MESSAGE_MAX: usize = 5 << 10;

/// Whether Go's `url.ParseRequestURI` takes it.
pub(super) fn is_request_uri(text: &str) -> bool {
    address::url(text).is_ok()
}

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
    expr: Program,
    message: Option<Program>,
    uses_old_self: bool,
    /// Where to report, below the value that is checked; empty for the value itself.
    at: String,
}

/// An expression, ready to run.
#[derive(Clone, Debug)]
struct Program {
    expr: IdedExpr,
    overloads: Overloads,
    /// The most that it can cost.
    estimate: u64,
}

/// What came of compiling a rule. What is wrong with the message says nothing of the rule.
struct Outcome {
    uses_old_self: bool,
    rule: Result<Program, String>,
    message: Option<Result<Program, String>>,
}

/// The estimates of rules and messages so far, by where they stand.
#[derive(Debug, Default)]
pub(super) struct Estimates(Vec<(String, u64)>);

impl Estimates {
    /// Takes over what was found elsewhere in the schema.
    pub(super) fn append(&mut self, mut other: Estimates) {
        self.0.append(&mut other.0);
    }

    /// Reports rules that are too expensive together. `path` is the schema's.
    pub(super) fn check(self, path: &Path<'_>, errors: &mut Errors) {
        let total = self.0.iter().fold(0u64, |total, (_, cost)| total.saturating_add(*cost));
        if total <= SCHEMA_ESTIMATE_MAX {
            return;
        }
        let mut most: Vec<(String, u64)> =
            self.0.into_iter().filter(|(_, cost)| *cost >= SCHEMA_ESTIMATE_MAX / 100).collect();
        most.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        for (field, _) in most.into_iter().take(4) {
            let message = "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.0.push(Error { reason: Reason::Forbidden, field, message: message.into() });
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.forbidden(path, &too_expensive(what, total, SCHEMA_ESTIMATE_MAX));
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with a few digits")]
fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        _ if factor > 100.0 => "more than 100x".to_owned(),
        _ if factor < 1.5 => format!("{factor:.6}x"),
        _ => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// Where rules stand, and how often they can run.
pub(super) struct Site<'a> {
    pub is_resource: bool,
    /// The rules themselves.
    pub path: &'a Path<'a>,
    /// The nearest list above whose elements cannot be found again in an older object.
    pub uncorrelatable: Option<&'a str>,
    /// How often the schema can apply in one object, if the lists and maps above it say so.
    pub cardinality: Option<u64>,
    /// Whether the schema is what it was, so that a rule stays however much it costs.
    pub unchanged: bool,
}

/// Compiles the rules of one node, which is of the type that `typed_by` describes, and reports what is wrong with them.
pub(super) fn check_rules(
    rules: &[Rule],
    typed_by: &Props,
    site: &Site<'_>,
    estimates: &mut Estimates,
    errors: &mut Errors,
) {
    let Some(own) = Decl::of(typed_by, site.is_resource, SELF_TYPE) else { return };
    let own = Arc::new(own);
    let cardinality = site.cardinality.unwrap_or_else(|| own.cardinality_max());
    for (i, rule) in rules.iter().enumerate().filter(|(_, rule)| !rule.rule.trim().is_empty()) {
        let at = site.path.index(i);
        let shown = text::json(&go_rule(rule));
        let outcome = compile(rule, &own);
        let mut weigh = |key: &str, what: &str, cost: u64, errors: &mut Errors| {
            if cost > RULE_ESTIMATE_MAX && !site.unchanged {
                errors.forbidden(&at.child(key), &too_expensive(what, cost, RULE_ESTIMATE_MAX));
            }
            estimates.0.push((at.child(key).to_string(), cost));
        };
        match &outcome.rule {
            Ok(program) => {
                let cost = program.estimate.saturating_mul(cardinality);
                weigh("rule", "estimated rule cost", cost, errors);
            }
            Err(detail) => {
                errors.push(Reason::Invalid, &at.child("rule"), format!("Invalid value: {shown}: {detail}"));
            }
        }
        match &outcome.message {
            Some(Ok(program)) => {
                weigh("messageExpression", "estimated messageExpression cost", program.estimate, errors);
            }
            Some(Err(detail)) => {
                let message = format!("Invalid value: {shown}: {detail}");
                errors.push(Reason::Invalid, &at.child("messageExpression"), message);
            }
            None => {}
        }
        if outcome.uses_old_self {
            if let Some(within) = site.uncorrelatable {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                errors.invalid(&at.child("rule"), &rule.rule.as_str().into(), &detail);
            }
        } else if let Some(optional) = rule.optional_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            errors.invalid(&at.child("optionalOldSelf"), &optional.into(), detail);
        }
    }
}

/// What faults call the type of `self`. kube-apiserver puts a number behind it that changes each time.
const SELF_TYPE: &str = "selfType0";

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

/// What is wrong with the rules of one node.
pub(super) fn compile_faults(props: &Props, is_resource: bool) -> Vec<String> {
    let own = (!props.rules.is_empty()).then(|| Decl::of(props, is_resource, SELF_TYPE)).flatten();
    let Some(own) = own.map(Arc::new) else { return Vec::new() };
    let rules = props.rules.iter().filter(|rule| !rule.rule.trim().is_empty());
    rules.filter_map(|rule| compile(rule, &own).rule.err()).collect()
}

fn compile(rule: &Rule, own: &Arc<Decl>) -> Outcome {
    let ty = Ty::from(own);
    let old = match rule.optional_old_self {
        Some(true) => Ty::optional(ty.clone()),
        _ => ty.clone(),
    };
    let variables = [("self", ty), ("oldSelf", old)];
    let program = |source: &str,
                   (compiled, instantiated): (&str, &str),
                   wrong_type: &str,
                   is_right: fn(&Ty) -> bool| {
        let (parsed, checked) = match parse_and_check(source, &variables) {
            Ok(found) => found,
            Err(issues) => return (Err(format!("{compiled} failed: {issues}")), false),
        };
        if !is_right(&checked.ty) {
            return (Err(wrong_type.to_owned()), false);
        }
        let overloads = checked.overloads();
        let program = match instantiate::check(&parsed.expr, &overloads) {
            Ok(()) => {
                let estimate = estimate::most(&parsed, &checked, own);
                Ok(Program { expr: parsed.expr, overloads, estimate })
            }
            Err(why) => Err(format!("{instantiated} failed: {why}")),
        };
        (program, checked.uses_old_self)
    };
    let wrong_type = "cel expression must evaluate to a bool";
    let steps = ("compilation", "program instantiation");
    let (rule_program, uses_old_self) = program(&rule.rule, steps, wrong_type, |ty| matches!(ty, Ty::Bool));
    let wrong_type = "messageExpression must evaluate to a string";
    let steps = ("messageExpression compilation", "messageExpression instantiation");
    let has_message = rule_program.is_ok() && !rule.message_expression.is_empty();
    let message = has_message
        .then(|| program(&rule.message_expression, steps, wrong_type, |ty| matches!(ty, Ty::Text)).0);
    Outcome { uses_old_self, rule: rule_program, message }
}

fn parse_and_check(source: &str, variables: &[(&str, Ty)]) -> Result<(Parsed, Checked), String> {
    let parsed = parse(source)?;
    let checked = check(source, &parsed, variables, false)?;
    Ok((parsed, checked))
}

impl Rules {
    /// Compiles the rules of a schema; `None` if it has none. The error names a rule that does not compile.
    pub(super) fn compile(props: &Props, is_resource: bool) -> Result<Option<Rules>, String> {
        let mut out = Rules { is_resource, ..Rules::default() };
        if !props.rules.is_empty()
            && let Some(own) = Decl::of(props, is_resource, SELF_TYPE).map(Arc::new)
        {
            for rule in props.rules.iter().filter(|rule| !rule.rule.trim().is_empty()) {
                let outcome = compile(rule, &own);
                let named = |why: String| format!("{}: {why}", rule.rule);
                out.own.push(Compiled {
                    rule: rule.clone(),
                    expr: outcome.rule.map_err(named)?,
                    message: outcome.message.transpose().map_err(named)?,
                    uses_old_self: outcome.uses_old_self,
                    at: match rule.field_path.as_str() {
                        "" => String::new(),
                        path => paths::resolve(props, path, true).map(|found| found.path).unwrap_or_default(),
                    },
                });
            }
        }
        // What has no elements of a kind never comes to their rules.
        if let Some(items) = props.items.as_deref().filter(|_| matches!(props.ty.as_str(), "" | "array")) {
            out.items = Rules::compile(items, items.embedded)?.map(Box::new);
        }
        let is_map = matches!(props.ty.as_str(), "" | "object");
        if let Some(schema) = props.additional_schema().filter(|_| is_map) {
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

    /// Runs all rules on a value. `ratchet` says that faults of unchanged parts are forgiven; these are given back.
    pub(super) fn run(
        &self,
        props: &Props,
        value: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
        ratchet: bool,
        errors: &mut Errors,
    ) -> Vec<Error> {
        let current = old.filter(|_| ratchet).map(|old| (Old::new(old, props), value));
        let mut run =
            Run { patterns: Patterns::default(), left: OBJECT_COST_MAX, errors, forgiven: Vec::new() };
        // An early stop has been reported by then.
        let _stopped = run.node(self, props, value, old, path, Unchanged { current, parent: None });
        run.forgiven
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
    patterns: Patterns,
    left: u64,
    errors: &'e mut Errors,
    /// Faults of what is as it was.
    forgiven: Vec<Error>,
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
        let outcome = evaluate(&self.patterns, compiled, is_resource, props, value, old);
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
            Err(fault) if fault.is_overload() => {
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
            Err(fault) => {
                let text = fault.in_words();
                self.errors.0.push(failed(format!("{text} evaluating rule: {shown}")));
                return Ok(());
            }
        };
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
        let error = Error { reason, field: at(&compiled.at), message };
        match !compiled.uses_old_self && unchanged.holds() {
            true => self.forgiven.push(error),
            false => self.errors.0.push(error),
        }
        Ok(())
    }
}

/// What a rule said: nothing if it holds, else why it does not.
struct Verdict {
    result: value::Result<Option<String>>,
    cost: u64,
}

fn evaluate(
    patterns: &Patterns,
    compiled: &Compiled,
    is_resource: bool,
    props: &Props,
    value: &Value,
    old: Option<&Value>,
) -> Verdict {
    let read = |value| Val::read(value, Some(props), is_resource);
    let own = match read(value) {
        Ok(own) => own,
        Err(fault) => return Verdict { result: Err(fault), cost: 0 },
    };
    let root = Scope::root(own);
    let old = match (old.map(read).transpose(), compiled.rule.optional_old_self) {
        (Err(fault), _) => return Verdict { result: Err(fault), cost: 0 },
        (Ok(old), Some(true)) => Some(Val::Optional(old.map(Rc::new))),
        (Ok(old), _) => old,
    };
    let with_old = old.map(|old| Scope::with(&root, "oldSelf", old));
    let scope = with_old.as_ref().unwrap_or(&root);
    let (result, cost) =
        Machine::new(patterns, Some(&compiled.expr.overloads)).run(&compiled.expr.expr, scope);
    match result {
        Ok(Val::Bool(true)) => return Verdict { result: Ok(None), cost },
        Ok(Val::Bool(false)) => {}
        Ok(_) => return Verdict { result: Err(Fault::NoOverload), cost },
        Err(fault) => return Verdict { result: Err(fault), cost },
    }
    let rule = &compiled.rule;
    let own_message = || match rule.message.trim() {
        "" => format!("failed rule: {}", rule.rule.trim()),
        message => message.to_owned(),
    };
    let Some(message) = &compiled.message else { return Verdict { result: Ok(Some(own_message())), cost } };
    let (result, message_cost) = Machine::new(patterns, Some(&message.overloads)).run(&message.expr, scope);
    let usable = |text: &str| !text.is_empty() && text.len() <= MESSAGE_MAX && !text.contains('\n');
    let detail = match result {
        Err(Fault::Cost) => return Verdict { result: Err(Fault::Cost), cost },
        Ok(Val::Text(text)) if usable(text.trim()) => text.trim().to_owned(),
        // A message that cannot be made is no reason to hide the fault.
        _ => own_message(),
    };
    Verdict { result: Ok(Some(detail)), cost: cost.saturating_add(message_cost) }
}
