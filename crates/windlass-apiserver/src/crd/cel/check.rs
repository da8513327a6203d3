//! Checking an expression before it is run: names, fields, operators and functions, as CEL's own checker does it, with
//! its words.

use std::collections::{BTreeMap, HashMap};

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, StructExpr,
    operators,
};

use super::depth::DEPTH_MAX;
use super::issue::{self, Issue};
use super::literals;
use super::made;
use super::overloads::{self, Overload};
use super::parse::Parsed;
use super::types::Ty;
use super::unify::{Known, instantiate, more_general};

/// What checking an expression told.
pub(super) struct Checked {
    /// Its type.
    pub ty: Ty,
    /// Whether it looks at the object before the update.
    pub uses_old_self: bool,
    /// The types of all its parts, by id.
    pub types: HashMap<u64, Ty>,
    /// What the calls in it call, by id.
    pub calls: HashMap<u64, Called>,
}

impl Checked {
    /// Which overload each call calls, where the types tell.
    pub(super) fn overloads(&self) -> HashMap<u64, &'static str> {
        let only = |(id, called): (&u64, &Called)| match called.overloads.as_slice() {
            [only] => Some((*id, *only)),
            _ => None,
        };
        self.calls.iter().filter_map(only).collect()
    }
}

/// A function that is called.
#[derive(Clone, Debug)]
pub(super) struct Called {
    /// Its name in full: `sets.contains`.
    pub name: String,
    /// The overloads that fit; more than one where types are not known before it is run.
    pub overloads: Vec<&'static str>,
    /// Whether the target is an argument, and not a part of the name.
    pub is_member: bool,
}

/// Checks an expression over some variables; `makes_objects` says whether it may make objects. The error is what the compiler would print.
pub(super) fn check(
    source: &str,
    parsed: &Parsed,
    variables: &[(&str, Ty)],
    makes_objects: bool,
) -> Result<Checked, String> {
    let mut checker = Checker {
        makes_objects,
        parsed,
        issues: Vec::new(),
        known: Known::default(),
        types: HashMap::new(),
        calls: HashMap::new(),
        scope: variables.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect(),
        uses_old_self: false,
    };
    let ty = checker.expr(&parsed.expr, 0);
    let mut issues = std::mem::take(&mut checker.issues);
    let Checker { known, types, calls, uses_old_self, .. } = checker;
    let types = types.into_iter().map(|(id, ty)| (id, known.resolve(&ty, true))).collect();
    let checked = Checked { ty: known.resolve(&ty, true), uses_old_self, types, calls };
    if issues.is_empty() {
        issues = literals::check(parsed, &checked);
    }
    match issues.is_empty() {
        true => Ok(checked),
        false => Err(issue::print(source, &issues)),
    }
}

struct Checker<'s> {
    parsed: &'s Parsed,
    issues: Vec<Issue>,
    known: Known,
    types: HashMap<u64, Ty>,
    calls: HashMap<u64, Called>,
    /// Variables, innermost last.
    scope: Vec<(String, Ty)>,
    uses_old_self: bool,
    /// Whether there are types of which it may make objects, and what goes with them.
    makes_objects: bool,
}

impl Checker<'_> {
    fn fault(&mut self, id: u64, message: String) {
        self.issues.push(Issue { at: self.parsed.place(id), message });
    }

    fn mismatch(&mut self, id: u64, expected: &Ty, found: &Ty) {
        self.fault(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Ty {
        self.fault(id, format!("undeclared reference to '{name}' (in container '')"));
        Ty::Error
    }

    fn lookup(&self, name: &str) -> Option<Ty> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let variable = self.scope.iter().rev().find(|(own, _)| own == name).map(|(_, ty)| ty.clone());
        variable.or_else(|| Ty::named(name).map(|ty| Ty::Type(Some(ty.into()))))
    }

    fn expr(&mut self, expr: &IdedExpr, depth: usize) -> Ty {
        // Macros expand to trees that are a few levels deeper than their text.
        if depth > 3 * DEPTH_MAX {
            self.fault(expr.id, "expression is nested too deeply".to_owned());
            return Ty::Error;
        }
        let depth = depth + 1;
        let ty = match &expr.expr {
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => {
                self.uses_old_self |= name == "oldSelf";
                self.lookup(name).unwrap_or_else(|| self.undeclared(expr.id, name))
            }
            Expr::Select(select) => {
                let qualified = if select.test { None } else { qualified_name(expr) };
                match qualified.and_then(|name| self.lookup(&name)) {
                    Some(ty) => ty,
                    None => {
                        let field = self.select(expr.id, &select.operand, &select.field, false, depth);
                        if select.test { Ty::Bool } else { self.known.resolve(&field, false) }
                    }
                }
            }
            Expr::List(list) => self.list(list, depth),
            Expr::Map(map) => self.map(map, depth),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, depth),
            Expr::Call(call) => self.call(expr.id, call, depth),
            Expr::Struct(value) => self.structure(expr.id, value, depth),
            Expr::Unspecified => Ty::Error,
        };
        self.types.insert(expr.id, ty.clone());
        ty
    }

    fn structure(&mut self, id: u64, value: &StructExpr, depth: usize) -> Ty {
        let name = value.type_name.trim_start_matches('.');
        if !self.makes_objects || !made::is_type(name) {
            return self.undeclared(id, &value.type_name);
        }
        for entry in &value.entries {
            let EntryExpr::StructField(field) = &entry.expr else { continue };
            let found = self.expr(&field.value, depth);
            let found = self.present(field.value.id, found, field.optional);
            let wanted = made::field(name, &field.field);
            if !self.known.fits(&wanted, &found) {
                let message = format!(
                    "expected type of field '{}' is '{wanted}' but provided type is '{found}'",
                    field.field
                );
                self.fault(entry.id, message);
            }
        }
        Ty::Made(name.into())
    }

    /// The type of a field of what `operand` gives.
    fn select(&mut self, id: u64, operand: &IdedExpr, field: &str, optional: bool, depth: usize) -> Ty {
        let operand = self.expr(operand, depth);
        let operand = self.known.resolve(&operand, false);
        let (target, was_optional) = operand.unwrap_optional();
        let found = match target {
            Ty::Map(_, value) => (**value).clone(),
            Ty::Object(decl) => match decl.field(field) {
                Some(field) => field.into(),
                None => {
                    self.fault(id, format!("undefined field '{field}'"));
                    Ty::Error
                }
            },
            Ty::Made(name) => made::field(name, field),
            Ty::Struct(name) => {
                self.fault(id, format!("unexpected failed resolution of '{name}'"));
                Ty::Error
            }
            Ty::Param(_) => {
                self.known.fits(&Ty::Dyn, target);
                Ty::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.fault(id, format!("type '{other}' does not support field selection"));
                }
                Ty::Dyn
            }
        };
        if was_optional || optional { Ty::optional(found) } else { found }
    }

    /// The type of the elements of a literal. That they are all of one is asked for once all else is right.
    fn join(&mut self, previous: Option<Ty>, current: Ty) -> Ty {
        let Some(previous) = previous else { return current };
        match self.known.fits(&previous, &current) {
            true => more_general(&previous, &current),
            false => Ty::Dyn,
        }
    }

    /// What an optional element of a literal is, once it is there.
    fn present(&mut self, id: u64, ty: Ty, is_optional: bool) -> Ty {
        match ty {
            Ty::Optional(inner) if is_optional => (*inner).clone(),
            ty => {
                if is_optional && !ty.is_dyn() {
                    self.mismatch(id, &Ty::optional(ty.clone()), &ty);
                }
                ty
            }
        }
    }

    fn list(&mut self, list: &ListExpr, depth: usize) -> Ty {
        let mut element = None;
        for (i, value) in list.elements.iter().enumerate() {
            let ty = self.expr(value, depth);
            let ty = self.present(value.id, ty, list.optional_indices.contains(&i));
            element = Some(self.join(element, ty));
        }
        Ty::list(element.unwrap_or_else(|| self.known.fresh()))
    }

    fn map(&mut self, map: &MapExpr, depth: usize) -> Ty {
        let (mut key, mut value) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let ty = self.expr(&entry.key, depth);
            key = Some(self.join(key, ty));
            let ty = self.expr(&entry.value, depth);
            let ty = self.present(entry.value.id, ty, entry.optional);
            value = Some(self.join(value, ty));
        }
        let key = key.unwrap_or_else(|| self.known.fresh());
        Ty::map(key, value.unwrap_or_else(|| self.known.fresh()))
    }

    fn comprehension(&mut self, loop_: &ComprehensionExpr, depth: usize) -> Ty {
        let range = self.expr(&loop_.iter_range, depth);
        let result = self.expr(&loop_.accu_init, depth);
        let range = self.known.resolve(&range, false);
        let (key, value) = match &range {
            Ty::List(element) => (Ty::Int, (**element).clone()),
            Ty::Map(key, value) => ((**key).clone(), (**value).clone()),
            Ty::Dyn | Ty::Error | Ty::Param(_) => {
                self.known.fits(&Ty::Dyn, &range);
                (Ty::Dyn, Ty::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.fault(loop_.iter_range.id, message);
                (Ty::Error, Ty::Error)
            }
        };
        let outside = self.scope.len();
        self.scope.push((loop_.accu_var.clone(), result.clone()));
        match &loop_.iter_var2 {
            Some(second) => {
                self.scope.push((loop_.iter_var.clone(), key));
                self.scope.push((second.clone(), value));
            }
            None => {
                let element = if matches!(range, Ty::List(_)) { value } else { key };
                self.scope.push((loop_.iter_var.clone(), element));
            }
        }
        self.expect(&loop_.loop_cond, &Ty::Bool, depth);
        self.expect(&loop_.loop_step, &result, depth);
        self.scope.truncate(outside + 1);
        let ty = self.expr(&loop_.result, depth);
        self.scope.truncate(outside);
        self.known.resolve(&ty, false)
    }

    fn expect(&mut self, expr: &IdedExpr, ty: &Ty, depth: usize) {
        let found = self.expr(expr, depth);
        if !self.known.fits(ty, &found) {
            self.mismatch(expr.id, ty, &found);
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr, depth: usize) -> Ty {
        let name = call.func_name.as_str();
        if let (operators::OPT_SELECT, [operand, field]) = (name, call.args.as_slice())
            && let Expr::Literal(LiteralValue::String(field_name)) = &field.expr
        {
            let ty = self.select(id, operand, field_name.inner(), true, depth);
            self.types.insert(field.id, Ty::Text);
            let overloads = vec!["select_optional_field"];
            self.calls.insert(id, Called { name: name.to_owned(), overloads, is_member: false });
            return self.known.resolve(&ty, false);
        }
        let args: Vec<Ty> = call.args.iter().map(|arg| self.expr(arg, depth)).collect();
        let Some(target) = &call.target else {
            let plain = name.strip_prefix('.').unwrap_or(name);
            return match overloads::of(plain).is_some() {
                true => self.resolve(id, plain, call, None, args),
                false => self.undeclared(id, name),
            };
        };
        let qualified = qualified_name(target).map(|space| format!("{space}.{name}"));
        let is_known = |name: &String| {
            overloads::of(name).is_some() && (self.makes_objects || !name.starts_with("jsonpatch."))
        };
        if let Some(name) = qualified.filter(is_known) {
            return self.resolve(id, &name, call, None, args);
        }
        let target = self.expr(target, depth);
        match overloads::of(name).is_some() {
            true => self.resolve(id, name, call, Some(target), args),
            false => self.undeclared(id, name),
        }
    }

    /// Finds the overloads that fit, and what they give.
    fn resolve(&mut self, id: u64, name: &str, call: &CallExpr, target: Option<Ty>, args: Vec<Ty>) -> Ty {
        let is_member = target.is_some();
        if matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) && !is_member {
            return self.connect(id, name, call, &args);
        }
        let args: Vec<Ty> = target.into_iter().chain(args).collect();
        let (mut found, mut result): (Vec<&'static str>, Option<Ty>) = (Vec::new(), None);
        let overloads = overloads::of(name).unwrap_or_default();
        for overload in overloads.iter().filter(|overload| overload.is_member == is_member) {
            let (wanted, gives) = self.instance(overload);
            if !self.known.all_fit(&args, &wanted) {
                continue;
            }
            found.push(overload.id);
            let gives = self.known.resolve(&gives, false);
            result = Some(match result.take() {
                None => gives,
                Some(before) if before.is_dyn() || before.same(&gives) => before,
                Some(_) => Ty::Dyn,
            });
        }
        let Some(result) = result else {
            let mut shown: Vec<String> =
                args.iter().map(|arg| self.known.resolve(arg, true).to_string()).collect();
            let target = if is_member { format!("{}.", shown.remove(0)) } else { String::new() };
            let applied = format!("{target}({})", shown.join(", "));
            self.fault(id, format!("found no matching overload for '{name}' applied to '{applied}'"));
            return Ty::Error;
        };
        self.calls.insert(id, Called { name: name.to_owned(), overloads: found, is_member });
        result
    }

    /// What an overload takes and gives, with letters that are its own.
    fn instance(&mut self, overload: &Overload) -> (Vec<Ty>, Ty) {
        let by: BTreeMap<u32, Ty> =
            overload.params.iter().map(|letter| (*letter, self.known.fresh())).collect();
        let args = overload.args.iter().map(|arg| instantiate(arg, &by)).collect();
        (args, instantiate(&overload.result, &by))
    }

    fn connect(&mut self, id: u64, name: &str, call: &CallExpr, args: &[Ty]) -> Ty {
        let mut fits = true;
        for (arg, ty) in call.args.iter().zip(args) {
            if !self.known.fits(ty, &Ty::Bool) {
                self.mismatch(arg.id, &Ty::Bool, ty);
                fits = false;
            }
        }
        let overload = if name == operators::LOGICAL_AND { "logical_and" } else { "logical_or" };
        let called = Called { name: name.to_owned(), overloads: vec![overload], is_member: false };
        self.calls.insert(id, called);
        if fits { Ty::Bool } else { Ty::Error }
    }
}

/// `a.b.c`, if an expression is nothing else.
fn qualified_name(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Expr::Ident(name) => Some(name.strip_prefix('.').unwrap_or(name).to_owned()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified_name(&select.operand)?, select.field))
        }
        _ => None,
    }
}

fn literal_type(literal: &LiteralValue) -> Ty {
    match literal {
        LiteralValue::Boolean(_) => Ty::Bool,
        LiteralValue::Bytes(_) => Ty::Bytes,
        LiteralValue::Double(_) => Ty::Double,
        LiteralValue::Int(_) => Ty::Int,
        LiteralValue::Null => Ty::Null,
        LiteralValue::String(_) => Ty::Text,
        LiteralValue::UInt(_) => Ty::UInt,
    }
}
