//! Running an expression, with a limit on how much work it may cause.
//!
//! The syntax tree is the `cel` crate's; the evaluation is our own, because work must be counted, objects must not
//! be copied at each step, and values follow the schema. The costs are kube-apiserver's: one for each name and selection,
//! ten for a list, and for a call by the sizes of what is passed (`spent`).

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::authorizer::Authorizer;
use super::environment::REQUEST_RESOURCE;
use super::functions;
use super::macros::SORT_BY_KEYS;
use super::made::Made;
use super::traits;
use super::value::{Fault, Result, Text, Val};
use crate::crd::pattern::Pattern;

/// How much one rule may cost, as in kube-apiserver.
pub(super) const CALL_COST_MAX: u64 = 1_000_000;

/// How much one rule may make us do that costs nothing by kube-apiserver's figures, such as copying what it passes on.
const WORK_MAX: u64 = 100 * CALL_COST_MAX;

/// Which overload each call of an expression calls, by id.
pub(super) type Overloads = HashMap<u64, &'static str>;

/// What evaluations share: the cost so far, and compiled patterns.
pub(super) struct Machine<'m> {
    cost: Cell<u64>,
    work: Cell<u64>,
    overloads: Option<&'m Overloads>,
    patterns: &'m Patterns,
    authorizer: Option<&'m dyn Authorizer>,
}

/// Patterns that have been compiled.
#[derive(Default)]
pub(super) struct Patterns(RefCell<HashMap<String, Rc<Pattern>>>);

impl<'m> Machine<'m> {
    /// A machine that starts anew. Without the overloads, calls cost as if nobody knew the types.
    pub(super) fn new(patterns: &'m Patterns, overloads: Option<&'m Overloads>) -> Machine<'m> {
        Machine { cost: Cell::new(0), work: Cell::new(0), overloads, patterns, authorizer: None }
    }

    /// The same, with somebody who decides what may be done.
    pub(super) fn with_authorizer(self, authorizer: Option<&'m dyn Authorizer>) -> Machine<'m> {
        Machine { authorizer, ..self }
    }

    /// Who decides what may be done, if anybody does.
    pub(super) fn authorizer(&self) -> Option<&'m dyn Authorizer> {
        self.authorizer
    }

    /// Evaluates an expression; the second value is its cost.
    pub(super) fn run<'a>(&self, expr: &'a IdedExpr, scope: &Scope<'_, 'a>) -> (Result<Val<'a>>, u64) {
        let result = self.eval(expr, scope);
        (result, self.cost.get())
    }

    /// Counts costs; an error once they are too high.
    pub(super) fn charge(&self, cost: u64) -> Result<()> {
        let cost = self.cost.get().saturating_add(cost);
        self.cost.set(cost);
        if cost > CALL_COST_MAX { Err(Fault::Cost) } else { Ok(()) }
    }

    /// Counts work that has no cost; an error once it is too much.
    pub(super) fn work(&self, work: usize) -> Result<()> {
        let work = self.work.get().saturating_add(work as u64);
        self.work.set(work);
        if work > WORK_MAX { Err(Fault::Cost) } else { Ok(()) }
    }

    /// Whether something that is about to be done can still be paid for.
    pub(super) fn affords(&self, cost: usize) -> Result<()> {
        match self.cost.get().saturating_add(cost as u64) > CALL_COST_MAX {
            true => self.charge(cost as u64),
            false => Ok(()),
        }
    }

    /// The overload that a call calls; empty if nobody knows.
    pub(super) fn overload(&self, id: u64) -> &'static str {
        self.overloads.and_then(|overloads| overloads.get(&id)).copied().unwrap_or_default()
    }

    /// The compiled form of a pattern.
    pub(super) fn pattern(&self, text: &str) -> Rc<Pattern> {
        let mut patterns = self.patterns.0.borrow_mut();
        patterns.entry(text.to_owned()).or_insert_with(|| Rc::new(Pattern::new(text))).clone()
    }

    /// Evaluates one node.
    pub(super) fn eval<'a>(&self, expr: &'a IdedExpr, scope: &Scope<'_, 'a>) -> Result<Val<'a>> {
        match &expr.expr {
            Expr::Literal(literal) => Ok(read_literal(literal)),
            Expr::Ident(name) => {
                self.charge(1)?;
                match scope.get(name) {
                    Some(value) => Ok(value),
                    None => functions::type_named(name)
                        .ok_or_else(|| Fault::other(format!("undeclared reference to '{name}'"))),
                }
            }
            Expr::Select(select) => {
                if select.field == "requestResource"
                    && matches!(&select.operand.expr, Expr::Ident(name) if name == "authorizer")
                    && let Some(value) = scope.get(REQUEST_RESOURCE)
                {
                    self.charge(1)?;
                    return Ok(value);
                }
                let operand = self.eval(&select.operand, scope)?;
                if !select.test {
                    self.charge(1 + relative(&select.operand))?;
                }
                if let Val::Optional(inner) = &operand {
                    return select_optional(inner.as_deref(), &select.field, select.test);
                }
                let found = scope.field(&operand, &select.field)?;
                match select.test {
                    true => Ok(Val::Bool(found.is_some())),
                    false => found.ok_or_else(|| Fault::other(format!("no such key: {}", select.field))),
                }
            }
            Expr::List(list) => {
                self.charge(if list.elements.iter().all(is_constant) { 0 } else { 10 })?;
                let mut out = Vec::with_capacity(list.elements.len());
                for (i, element) in list.elements.iter().enumerate() {
                    match (self.eval(element, scope)?, list.optional_indices.contains(&i)) {
                        (Val::Optional(inner), true) => out.extend(inner.map(|value| (*value).clone())),
                        (value, _) => out.push(value),
                    }
                }
                Ok(Val::list(out))
            }
            Expr::Map(map) => {
                self.charge(30)?;
                let mut out = BTreeMap::new();
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(Fault::NoOverload) };
                    let key = self.eval(&entry.key, scope)?.key()?;
                    match (self.eval(&entry.value, scope)?, entry.optional) {
                        (Val::Optional(None), true) => {}
                        (Val::Optional(Some(value)), true) => drop(out.insert(key, (*value).clone())),
                        (value, _) => drop(out.insert(key, value)),
                    }
                }
                Ok(Val::Map(Rc::new(out)))
            }
            Expr::Comprehension(comprehension) => self.comprehend(comprehension, scope),
            Expr::Call(call) => {
                let args = call.args.as_slice();
                match (call.func_name.as_str(), args) {
                    (operators::LOGICAL_AND, [left, right]) => self.connect(left, right, false, scope),
                    (operators::LOGICAL_OR, [left, right]) => self.connect(left, right, true, scope),
                    (operators::CONDITIONAL, [condition, yes, no]) => match self.eval(condition, scope)? {
                        Val::Bool(true) => self.eval(yes, scope),
                        Val::Bool(false) => self.eval(no, scope),
                        _ => Err(Fault::NoOverload),
                    },
                    (operators::NOT_STRICTLY_FALSE, [inner]) => {
                        self.charge(1)?;
                        match self.eval(inner, scope) {
                            Err(fault) if fault.is_final() => Err(fault),
                            result => Ok(Val::Bool(!matches!(result, Ok(Val::Bool(false))))),
                        }
                    }
                    (operators::OPT_SELECT, [operand, field]) => {
                        self.charge(1 + relative(operand))?;
                        let operand = self.eval(operand, scope)?;
                        let Val::Text(field) = self.eval(field, scope)? else {
                            return Err(Fault::NoOverload);
                        };
                        match &operand {
                            Val::Optional(inner) => select_optional(inner.as_deref(), &field, false),
                            Val::Composed => Ok(Val::Optional(scope.field(&operand, &field)?.map(Rc::new))),
                            value => select_optional(Some(value), &field, false),
                        }
                    }
                    (name @ ("or" | "orValue"), [other]) if call.target.is_some() => {
                        // What is not needed is not asked for.
                        let target =
                            call.target.as_deref().map(|target| self.eval(target, scope)).transpose()?;
                        match (target, name) {
                            (Some(Val::Optional(Some(inner))), "orValue") => Ok((*inner).clone()),
                            (Some(found @ Val::Optional(Some(_))), _) => Ok(found),
                            (Some(Val::Optional(None)), _) => self.eval(other, scope),
                            // What is no optional is itself.
                            (Some(value), _) => Ok(value),
                            (None, _) => Err(Fault::NoOverload),
                        }
                    }
                    (name @ (operators::INDEX | operators::OPT_INDEX), [of, key]) => {
                        // A name that is looked up by is a part of the way, and is paid for with it.
                        let is_way = !matches!(key.expr, Expr::Literal(_)) && relative(key) == 0;
                        self.charge(u64::from(!is_way) + relative(of))?;
                        let (of, key) = (self.eval(of, scope)?, self.eval(key, scope)?);
                        functions::index_by(name, &of, &key)
                    }
                    (operators::IN, [value, IdedExpr { expr: Expr::List(list), .. }])
                        if list.elements.iter().all(is_constant) =>
                    {
                        // Such a list is looked up, not gone through. For an empty one nobody asks what is in it.
                        if list.elements.is_empty() {
                            return Ok(Val::Bool(false));
                        }
                        let value = self.eval(value, scope)?;
                        let mut found = false;
                        for element in &list.elements {
                            found = found || value.is_at(&self.eval(element, scope)?)?;
                        }
                        Ok(Val::Bool(found))
                    }
                    _ => functions::call(self, expr.id, call, scope),
                }
            }
            Expr::Struct(value) => {
                self.charge(40)?;
                let mut fields = BTreeMap::new();
                for entry in &value.entries {
                    let EntryExpr::StructField(entry) = &entry.expr else { return Err(Fault::NoOverload) };
                    match (self.eval(&entry.value, scope)?, entry.optional) {
                        (Val::Optional(None), true) => {}
                        (Val::Optional(Some(inner)), true) => {
                            fields.insert(entry.field.clone(), (*inner).clone());
                        }
                        (value, _) => drop(fields.insert(entry.field.clone(), value)),
                    }
                }
                let name = value.type_name.trim_start_matches('.').to_owned();
                Ok(Val::Made(Rc::new(Made { name, fields })))
            }
            Expr::Unspecified => Err(Fault::NoOverload),
        }
    }

    /// `&&` and `||`: an error on one side does not matter if the other side decides.
    fn connect<'a>(
        &self,
        left: &'a IdedExpr,
        right: &'a IdedExpr,
        decides: bool,
        scope: &Scope<'_, 'a>,
    ) -> Result<Val<'a>> {
        let bool_of = |result: Result<Val<'a>>| match result {
            Ok(Val::Bool(value)) => Ok(value),
            Ok(_) => Err(Fault::NoOverload),
            Err(fault) => Err(fault),
        };
        let left = bool_of(self.eval(left, scope));
        if left == Ok(decides) || left.as_ref().is_err_and(Fault::is_final) {
            return left.map(Val::Bool);
        }
        match (left, bool_of(self.eval(right, scope))) {
            (_, Err(fault)) if fault.is_final() => Err(fault),
            (_, Ok(value)) if value == decides => Ok(Val::Bool(decides)),
            (Err(fault), _) | (Ok(_), Err(fault)) => Err(fault),
            (Ok(_), Ok(value)) => Ok(Val::Bool(value)),
        }
    }

    fn comprehend<'a>(&self, loop_: &'a ComprehensionExpr, scope: &Scope<'_, 'a>) -> Result<Val<'a>> {
        let range = self.eval(&loop_.iter_range, scope)?;
        let is_map = range.type_name() == "map";
        if !is_map && range.type_name() != "list" {
            return Err(Fault::other(format!("got '{}', expected iterable type", traits::go_type(&range))));
        }
        let items = if is_map { range.keys()? } else { range.elements()? };
        let begin = self.eval(&loop_.accu_init, scope).map_err(|fault| match &loop_.result.expr {
            // `sortBy` names the list first, and then sorts it by keys that are of no list.
            Expr::Call(call) if call.func_name == SORT_BY_KEYS => {
                functions::broken(fault, self.overload(loop_.result.id), 1)
            }
            _ => fault,
        })?;
        let result = Scope::with(scope, &loop_.accu_var, begin);
        for (i, item) in items.into_iter().enumerate() {
            self.work(1)?;
            if !matches!(self.eval(&loop_.loop_cond, &result)?, Val::Bool(true)) {
                break;
            }
            let Some(second) = &loop_.iter_var2 else {
                let step = Scope::with(&result, &loop_.iter_var, item);
                self.step(&loop_.loop_step, &loop_.accu_var, &step, &result)?;
                continue;
            };
            let (key, value) = match is_map {
                true => {
                    let value = range.index(&item)?.unwrap_or(Val::Null);
                    (item, value)
                }
                false => (Val::Int(i64::try_from(i).unwrap_or(i64::MAX)), item),
            };
            let first = Scope::with(&result, &loop_.iter_var, key);
            let step = Scope::with(&first, second, value);
            self.step(&loop_.loop_step, &loop_.accu_var, &step, &result)?;
        }
        self.eval(&loop_.result, &result)
    }

    /// One round of a loop. `result + [x]` grows the result in place, or `map` would copy it in each round.
    fn step<'a>(
        &self,
        expr: &'a IdedExpr,
        result_name: &str,
        scope: &Scope<'_, 'a>,
        result: &Scope<'_, 'a>,
    ) -> Result<()> {
        let is_result = |expr: &IdedExpr| matches!(&expr.expr, Expr::Ident(name) if name == result_name);
        if is_result(expr) {
            return self.charge(1);
        }
        if let Expr::Call(call) = &expr.expr {
            match (call.func_name.as_str(), call.args.as_slice()) {
                (operators::CONDITIONAL, [condition, yes, no]) => {
                    let Val::Bool(condition) = self.eval(condition, scope)? else {
                        return Err(Fault::NoOverload);
                    };
                    return self.step(if condition { yes } else { no }, result_name, scope, result);
                }
                (operators::ADD, [left, right]) if is_result(left) && matches!(right.expr, Expr::List(_)) => {
                    let added = self.eval(right, scope)?.elements()?;
                    // The name, and the sum.
                    self.charge(2)?;
                    if let Val::List(list) = &mut *result.value.borrow_mut() {
                        Rc::make_mut(list).extend(added);
                        return Ok(());
                    }
                    return Err(Fault::NoOverload);
                }
                (super::macros::MAP_INSERT, [map, rest @ ..]) if is_result(map) => {
                    let rest = rest.iter().map(|arg| self.eval(arg, scope)).collect::<Result<Vec<_>>>()?;
                    self.charge(2)?;
                    let map = result.value.replace(Val::Null);
                    let map = functions::insert(map, &rest)?;
                    result.value.replace(map);
                    return Ok(());
                }
                _ => {}
            }
        }
        let value = self.eval(expr, scope)?;
        *result.value.borrow_mut() = value;
        Ok(())
    }
}

/// What it costs that a way does not begin at a name: one, for what it begins at.
fn relative(operand: &IdedExpr) -> u64 {
    match &operand.expr {
        Expr::Ident(_) | Expr::Select(_) => 0,
        Expr::Call(call) => {
            let ways = [operators::INDEX, operators::OPT_INDEX, operators::OPT_SELECT];
            u64::from(!ways.contains(&call.func_name.as_str()))
        }
        _ => 1,
    }
}

fn is_constant(expr: &IdedExpr) -> bool {
    matches!(expr.expr, Expr::Literal(_))
}

fn select_optional<'a>(inner: Option<&Val<'a>>, field: &str, test: bool) -> Result<Val<'a>> {
    let found = match inner.map(|value| value.field(field)) {
        // What has no fields has none of this name either.
        None | Some(Err(Fault::NoOverload)) => None,
        Some(found) => found?,
    };
    Ok(match test {
        true => Val::Bool(found.is_some()),
        false => Val::Optional(found.map(Rc::new)),
    })
}

fn read_literal(literal: &LiteralValue) -> Val<'_> {
    match literal {
        LiteralValue::Boolean(value) => Val::Bool(*value.inner()),
        LiteralValue::Bytes(value) => Val::Bytes(value.inner().into()),
        LiteralValue::Double(value) => Val::Double(*value.inner()),
        LiteralValue::Int(value) => Val::Int(*value.inner()),
        LiteralValue::Null => Val::Null,
        LiteralValue::String(value) => Val::Text(Text::Borrowed(value.inner())),
        LiteralValue::UInt(value) => Val::UInt(*value.inner()),
    }
}

/// Variables, innermost first.
pub(super) struct Scope<'s, 'a> {
    parent: Option<&'s Scope<'s, 'a>>,
    name: &'s str,
    value: RefCell<Val<'a>>,
    /// What the fields of [`Val::Composed`] are; only the outermost scope knows.
    lazy: Option<&'s dyn Lazy<'a>>,
}

/// Values that are found out when they are first asked for.
pub(super) trait Lazy<'a> {
    /// The value of a name; `None` if there is none.
    fn field(&self, name: &str) -> Option<Result<Val<'a>>>;
}

impl<'s, 'a> Scope<'s, 'a> {
    /// The outermost scope: `self`.
    pub(super) fn root(value: Val<'a>) -> Scope<'s, 'a> {
        Scope { parent: None, name: "self", value: RefCell::new(value), lazy: None }
    }

    /// An outermost scope that names nothing, and knows where composed values come from.
    pub(super) fn lazy(lazy: &'s dyn Lazy<'a>) -> Scope<'s, 'a> {
        Scope { parent: None, name: "", value: RefCell::new(Val::Null), lazy: Some(lazy) }
    }

    /// A scope with one variable more.
    pub(super) fn with(parent: &'s Scope<'s, 'a>, name: &'s str, value: Val<'a>) -> Scope<'s, 'a> {
        Scope { parent: Some(parent), name, value: RefCell::new(value), lazy: parent.lazy }
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<Val<'a>> {
        if self.name == name {
            return Some(self.value.borrow().clone());
        }
        self.parent?.get(name)
    }

    /// A field of a value. What has no fields has none of this name either.
    fn field(&self, of: &Val<'a>, name: &str) -> Result<Option<Val<'a>>> {
        match (of, self.lazy) {
            (Val::Composed, Some(lazy)) => lazy.field(name).transpose(),
            _ => match of.field(name) {
                Err(Fault::NoOverload) => Ok(None),
                found => found,
            },
        }
    }
}

/// The order of two values, or an error if they have none.
pub(super) fn order<'a>(left: &Val<'a>, right: &Val<'a>) -> Result<Ordering> {
    left.compare(right).ok_or(Fault::NoOverload)
}
