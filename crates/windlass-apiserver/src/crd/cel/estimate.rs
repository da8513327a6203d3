//! How much an expression can cost at most, told from the schema before any object is seen.
//!
//! ```text
//! schema ── decl (elements_max) ─┐
//! syntax tree + types ───────────┴→ estimate: cost and size of each part, from the leaves up
//! ```
//!
//! kube-apiserver refuses definitions by this number, so it is counted as kube-apiserver counts: a name or a selection
//! is one, a list that is made is ten, text costs a tenth of its length for each time it is read, and a loop costs its
//! body as often as its range can be long.

use std::collections::HashMap;
use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::check::Checked;
use super::decl::{Decl, Shape};
use super::library_cost;
use super::parse::Parsed;
use super::range::Range;
use super::types::Ty;

/// What a name or a selection costs.
const NAME: Range = Range::fixed(1);
const LIST: Range = Range::fixed(10);
const MAP: Range = Range::fixed(30);

/// What reading a character of a text costs.
pub(super) const TEXT: f64 = 0.1;
/// What a character of a pattern costs for each piece of a text.
pub(super) const PATTERN: f64 = 0.25;

/// The most that an expression can cost. `root` is what `self` and `oldSelf` are.
pub(super) fn most(parsed: &Parsed, checked: &Checked, root: &Arc<Decl>) -> u64 {
    let mut estimate = Estimate {
        checked,
        root,
        paths: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        scope: Vec::new(),
    };
    estimate.cost(&parsed.expr).most
}

/// Where in the schema a value comes from: a variable, then fields, `@items`, `@keys`, `@values`.
type Place = Vec<String>;

/// How large the entries of a list or a map are.
#[derive(Clone, Copy)]
struct Entries {
    is_list: bool,
    key: Range,
    value: Range,
}

impl Entries {
    fn union(self, other: Entries) -> Entries {
        Entries {
            is_list: self.is_list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

/// A variable of a loop.
struct Variable {
    name: String,
    place: Place,
    size: Option<Range>,
    entries: Option<Entries>,
}

/// A part of an expression, as the costs of functions look at it.
pub(super) struct Part<'e> {
    pub expr: &'e IdedExpr,
    pub ty: Ty,
    pub size: Option<Range>,
    place: Place,
}

/// What a call costs, and how large its result is.
pub(super) struct Call {
    pub cost: Range,
    pub size: Option<Range>,
}

pub(super) struct Estimate<'s> {
    checked: &'s Checked,
    root: &'s Arc<Decl>,
    paths: HashMap<u64, Place>,
    sizes: HashMap<u64, Range>,
    entries: HashMap<u64, Entries>,
    scope: Vec<Variable>,
}

impl Estimate<'_> {
    fn cost(&mut self, expr: &IdedExpr) -> Range {
        match &expr.expr {
            Expr::Literal(_) | Expr::Unspecified => Range::default(),
            Expr::Ident(name) => {
                let place = self.variable(name).map_or_else(|| vec![name.clone()], |own| own.place.clone());
                self.paths.insert(expr.id, place);
                NAME
            }
            Expr::Select(select) => {
                let operand = self.cost(&select.operand);
                if select.test {
                    return operand;
                }
                let costs = matches!(
                    self.ty(&select.operand),
                    Ty::Map(..) | Ty::Object(_) | Ty::Struct(_) | Ty::Param(_)
                );
                let mut place = self.place(&select.operand);
                place.push(select.field.clone());
                self.paths.insert(expr.id, place);
                if costs { operand.plus(NAME) } else { operand }
            }
            Expr::Call(call) => self.call(expr, call),
            Expr::List(list) => {
                let mut item = Range { least: if list.elements.is_empty() { 0 } else { u64::MAX }, most: 0 };
                let mut sum = LIST;
                for element in &list.elements {
                    sum = sum.plus(self.cost(element));
                    item = item.union(self.size_or_unknown(element));
                }
                self.entries.insert(expr.id, Entries { is_list: true, key: Range::fixed(1), value: item });
                sum
            }
            Expr::Map(map) => {
                let least = if map.entries.is_empty() { 0 } else { u64::MAX };
                let (mut key, mut value) = (Range { least, most: 0 }, Range { least, most: 0 });
                let mut sum = MAP;
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                self.entries.insert(expr.id, Entries { is_list: false, key, value });
                sum
            }
            Expr::Struct(_) => Range::fixed(40),
            Expr::Comprehension(loop_) if is_binding(loop_) => self.binding(expr, loop_),
            Expr::Comprehension(loop_) => self.comprehension(expr, loop_),
        }
    }

    fn call(&mut self, expr: &IdedExpr, call: &CallExpr) -> Range {
        if let ("dyn", None, [arg]) = (call.func_name.as_str(), &call.target, call.args.as_slice()) {
            let cost = self.cost(arg);
            self.copy_sizes(expr, arg);
            return cost.plus(NAME);
        }
        let costs: Vec<Range> = call.args.iter().map(|arg| self.cost(arg)).collect();
        let parts: Vec<Part<'_>> = call.args.iter().map(|arg| self.part(arg)).collect();
        let Some(called) = self.checked.calls.get(&expr.id) else { return Range::default() };
        let (mut sum, mut target) = (Range::default(), None);
        if let Some(on) = call.target.as_deref().filter(|_| called.is_member) {
            sum = self.cost(on);
            target = Some(self.part(on));
        }
        let mut cost = Range { least: u64::MAX, most: 0 };
        let mut size: Option<Range> = None;
        for overload in &called.overloads {
            let one = self.overload(expr, &called.name, overload, target.as_ref(), &parts, &costs);
            cost = cost.union(one.cost);
            size = match (size, one.size) {
                (Some(a), Some(b)) => Some(a.union(b)),
                (a, b) => a.or(b),
            };
            if let ("index_list" | "index_map", Some(of)) = (*overload, call.args.first()) {
                size = self.entries_of(of).map(|entries| entries.value);
                let mut place = self.place(of);
                place.push(if *overload == "index_list" { "@items" } else { "@values" }.to_owned());
                self.paths.insert(expr.id, place);
            }
            size = size.or_else(|| self.size(expr));
        }
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
        sum.plus(cost)
    }

    fn overload(
        &mut self,
        expr: &IdedExpr,
        name: &str,
        overload: &str,
        target: Option<&Part<'_>>,
        args: &[Part<'_>],
        costs: &[Range],
    ) -> Call {
        let all = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        if let Some(own) = library_cost::estimate(self, name, overload, target, args) {
            return Call { cost: own.cost.plus(all), size: own.size };
        }
        let size = |part: &Part<'_>| part.size.unwrap_or(Range::UNKNOWN);
        match (overload, target, args) {
            ("string_format", Some(target), _) => {
                Call { cost: size(target).times(TEXT).plus(all), size: None }
            }
            ("string_to_bytes", _, [arg]) => {
                let size = size(arg);
                let longer = Range { least: size.least, most: size.most.wrapping_mul(4) };
                Call { cost: size.times(TEXT).plus(all), size: Some(longer) }
            }
            ("bytes_to_string", _, [arg]) => {
                let size = size(arg);
                let shorter = Range { least: size.least / 4, most: size.most };
                Call { cost: size.times(TEXT).plus(all), size: Some(shorter) }
            }
            ("strings_quote", _, [arg]) => {
                let size = size(arg);
                let most = size.most.wrapping_mul(2).wrapping_add(2);
                let quoted = Range { least: size.least.wrapping_add(2), most };
                Call { cost: size.times(TEXT).plus(all), size: Some(quoted) }
            }
            ("starts_with_string" | "ends_with_string", _, [arg]) => {
                Call { cost: size(arg).times(TEXT).plus(all), size: None }
            }
            ("in_list", _, [_, list]) => Call { cost: size(list).times(1.0).plus(all), size: None },
            ("matches_string", Some(target), [pattern]) => {
                let text = size(target).plus(Range::fixed(1)).times(TEXT);
                Call { cost: text.by(size(pattern).times(PATTERN)).plus(all), size: None }
            }
            ("contains_string", Some(target), [part]) => {
                Call { cost: size(target).times(TEXT).by(size(part).times(TEXT)).plus(all), size: None }
            }
            ("logical_or" | "logical_and", _, _) => {
                let (left, right) = (costs[0], costs[1]);
                Call { cost: Range { least: left.least, most: left.plus(right).most }, size: None }
            }
            ("conditional", _, [_, yes, no]) => {
                if let (Some(a), Some(b)) = (self.entries_of(yes.expr), self.entries_of(no.expr)) {
                    self.entries.insert(expr.id, a.union(b));
                }
                let cost = costs[0].plus(costs[1].union(costs[2]));
                Call { cost, size: Some(size(yes).union(size(no))) }
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let sum = size(left).plus(size(right));
                if let (Some(a), Some(b)) = (self.entries_of(left.expr), self.entries_of(right.expr)) {
                    self.entries.insert(expr.id, a.union(b));
                }
                let own = if overload == "add_list" { NAME } else { sum.times(TEXT) };
                Call { cost: own.plus(all), size: Some(sum) }
            }
            ("equals" | "not_equals", _, [left, right]) => compared(size(left), size(right), all),
            (name, _, [left, right])
                if (name.starts_with("less_") || name.starts_with("greater_"))
                    && (name.ends_with("_string") || name.ends_with("_bytes")) =>
            {
                compared(size(left), size(right), all)
            }
            _ => Call { cost: NAME.plus(all), size: None },
        }
    }

    fn comprehension(&mut self, expr: &IdedExpr, loop_: &ComprehensionExpr) -> Range {
        let mut sum = self.cost(&loop_.iter_range).plus(self.cost(&loop_.accu_init));
        let outside = self.scope.len();
        self.bind(&loop_.accu_var, &loop_.accu_init);
        let entries = self.entries_of(&loop_.iter_range);
        let is_list = match entries {
            Some(entries) => entries.is_list,
            None => matches!(self.ty(&loop_.iter_range), Ty::List(_)),
        };
        let key = (if is_list { "@indices" } else { "@keys" }, entries.map(|entries| entries.key));
        let value = (if is_list { "@items" } else { "@values" }, entries.map(|entries| entries.value));
        match &loop_.iter_var2 {
            Some(second) => {
                self.iterate(&loop_.iter_var, &loop_.iter_range, key);
                self.iterate(second, &loop_.iter_range, value);
            }
            None => self.iterate(&loop_.iter_var, &loop_.iter_range, if is_list { value } else { key }),
        }
        let condition = self.cost(&loop_.loop_cond);
        let step = self.cost(&loop_.loop_step);
        self.scope.truncate(outside + 1);
        sum = sum.plus(self.cost(&loop_.result));
        self.scope.truncate(outside);
        let rounds = self.size_or_unknown(&loop_.iter_range);
        sum = sum.plus(rounds.by(step.plus(condition)));
        match &loop_.accu_init.expr {
            Expr::Literal(_) => {
                if let Some(size) = self.size(&loop_.accu_init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(expr.id, rounds);
                if let Some(entries) = self.entries_of(&loop_.loop_step) {
                    self.entries.insert(expr.id, entries);
                }
            }
            _ => {}
        }
        sum
    }

    /// A loop that only gives a name to a value.
    fn binding(&mut self, expr: &IdedExpr, loop_: &ComprehensionExpr) -> Range {
        let sum = self.cost(&loop_.iter_range).plus(self.cost(&loop_.accu_init));
        let outside = self.scope.len();
        self.bind(&loop_.accu_var, &loop_.accu_init);
        let sum = sum.plus(self.cost(&loop_.result));
        self.scope.truncate(outside);
        self.copy_sizes(expr, &loop_.result);
        sum
    }

    fn bind(&mut self, name: &str, value: &IdedExpr) {
        let (place, size, entries) = (self.place(value), self.size(value), self.entries_of(value));
        self.scope.push(Variable { name: name.to_owned(), place, size, entries });
    }

    fn iterate(&mut self, name: &str, range: &IdedExpr, (part, size): (&str, Option<Range>)) {
        let mut place = self.place(range);
        place.push(part.to_owned());
        self.scope.push(Variable { name: name.to_owned(), place, size, entries: None });
    }

    fn variable(&self, name: &str) -> Option<&Variable> {
        self.scope.iter().rev().find(|variable| variable.name == name)
    }

    fn own_variable(&self, expr: &IdedExpr) -> Option<&Variable> {
        if let Expr::Ident(name) = &expr.expr { self.variable(name) } else { None }
    }

    fn ty(&self, expr: &IdedExpr) -> Ty {
        self.checked.types.get(&expr.id).cloned().unwrap_or(Ty::Dyn)
    }

    fn place(&self, expr: &IdedExpr) -> Place {
        match self.own_variable(expr) {
            Some(variable) => variable.place.clone(),
            None => self.paths.get(&expr.id).cloned().unwrap_or_default(),
        }
    }

    fn part<'e>(&mut self, expr: &'e IdedExpr) -> Part<'e> {
        let mut place = self.place(expr);
        if place.first().is_some_and(|first| first == super::macros::RESULT) {
            place.clear();
        }
        Part { expr, ty: self.ty(expr), size: self.size(expr), place }
    }

    fn copy_sizes(&mut self, to: &IdedExpr, from: &IdedExpr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entries) = self.entries_of(from) {
            self.entries.insert(to.id, entries);
        }
    }

    fn entries_of(&self, expr: &IdedExpr) -> Option<Entries> {
        let own = self.entries.get(&expr.id).copied();
        own.or_else(|| self.own_variable(expr).and_then(|variable| variable.entries))
    }

    fn size_or_unknown(&mut self, expr: &IdedExpr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    /// How large a value is, if there is any telling.
    fn size(&mut self, expr: &IdedExpr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        let count = |count: usize| Some(Range::fixed(count as u64));
        let own = match &expr.expr {
            Expr::Literal(LiteralValue::String(text)) => count(text.inner().chars().count()),
            Expr::Literal(LiteralValue::Bytes(bytes)) => count(bytes.inner().len()),
            Expr::Literal(_) => count(1),
            Expr::List(list) => count(list.elements.len()),
            Expr::Map(map) => count(map.entries.len()),
            _ => None,
        };
        if own.is_some() {
            return own;
        }
        if let Some(size) = self.size_at(&self.place(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if self.ty(expr).is_scalar() {
            return Some(Range::fixed(1));
        }
        self.own_variable(expr).and_then(|variable| variable.size)
    }

    /// How large the schema lets a value be.
    fn size_at(&self, place: &[String]) -> Option<Range> {
        let (_, below) = place.split_first()?;
        let mut decl = self.root;
        // The keys of a map are texts of which the schema says nothing: they count as empty.
        let mut is_key = false;
        for part in below {
            if is_key {
                return None;
            }
            match (part.as_str(), &decl.shape) {
                ("@items" | "@values", Shape::List(inner) | Shape::Map(inner)) => decl = inner,
                ("@keys", Shape::Map(_)) => is_key = true,
                ("@items" | "@values" | "@keys", _) => return None,
                (field, Shape::Object { fields, .. }) => decl = fields.get(field)?,
                _ => return None,
            }
        }
        Some(Range { least: 0, most: if is_key { 0 } else { decl.elements_max } })
    }

    /// How large a part is, for the costs of the library.
    pub(super) fn part_size(&self, part: &Part<'_>) -> Range {
        part.size.or_else(|| self.size_at(&part.place)).unwrap_or(Range::UNKNOWN)
    }

    /// The type and the size of the elements of a list; `None` if it is none.
    pub(super) fn element(&self, part: &Part<'_>) -> Option<(Ty, Range)> {
        let ty = match &part.ty {
            Ty::List(element) | Ty::Optional(element) => (**element).clone(),
            Ty::Map(key, _) => (**key).clone(),
            _ => return None,
        };
        let mut place = part.place.clone();
        if !place.is_empty() {
            place.push("@items".to_owned());
        }
        Some((ty, self.size_at(&place).unwrap_or(Range::UNKNOWN)))
    }
}

/// Two values are compared as far as the shorter one goes.
fn compared(left: Range, right: Range, args: Range) -> Call {
    let most = left.most.min(right.most);
    let least = u64::from(most > 0);
    Call { cost: Range { least, most }.times(TEXT).plus(args), size: None }
}

/// Whether a loop only gives a name to a value.
fn is_binding(loop_: &ComprehensionExpr) -> bool {
    let is_false = |expr: &IdedExpr| matches!(&expr.expr, Expr::Literal(LiteralValue::Boolean(value)) if !*value.inner());
    matches!(&loop_.iter_range.expr, Expr::List(list) if list.elements.is_empty())
        && is_false(&loop_.loop_cond)
}
