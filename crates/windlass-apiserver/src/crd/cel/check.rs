//! Checking an expression before it is run: names, fields, operators, functions.
//!
//! Functions of the library are checked by name and number of arguments, and give types where these are plain.

use std::cell::RefCell;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::depth::DEPTH_MAX;
use super::functions::NAMESPACES;
use super::signatures;
use super::types::Ty;
use crate::crd::pattern::Pattern;

/// What checking an expression told.
pub(super) struct Checked<'p> {
    /// Its type.
    pub ty: Ty<'p>,
    /// Whether it looks at the object before the update.
    pub uses_old_self: bool,
}

/// Checks an expression. The error is what the compiler would print.
pub(super) fn check<'p>(
    source: &str,
    expr: &IdedExpr,
    own: &Ty<'p>,
    old: &Ty<'p>,
) -> Result<Checked<'p>, String> {
    let checker = Checker { source, uses_old_self: RefCell::new(false) };
    let old = Vars { name: "oldSelf", ty: old.clone(), parent: None };
    let vars = Vars { name: "self", ty: own.clone(), parent: Some(&old) };
    let ty = checker.expr(expr, &vars, 0)?;
    Ok(Checked { ty, uses_old_self: checker.uses_old_self.into_inner() })
}

struct Vars<'v, 'p> {
    name: &'v str,
    ty: Ty<'p>,
    parent: Option<&'v Vars<'v, 'p>>,
}

impl<'p> Vars<'_, 'p> {
    fn get(&self, name: &str) -> Option<&Ty<'p>> {
        if self.name == name { Some(&self.ty) } else { self.parent?.get(name) }
    }
}

struct Checker<'s> {
    source: &'s str,
    uses_old_self: RefCell<bool>,
}

impl Checker<'_> {
    /// A fault, with its place in the source as far as the text tells it.
    fn fault(&self, near: &str, message: &str) -> String {
        self.fault_at(self.source.find(near).unwrap_or_default(), message)
    }

    fn fault_at(&self, place: usize, message: &str) -> String {
        let line = self.source[..place].matches('\n').count();
        let start = self.source[..place].rfind('\n').map_or(0, |newline| newline + 1);
        let column = self.source[start..place].chars().count();
        let text = self.source.lines().nth(line).unwrap_or_default();
        let dots = ".".repeat(column);
        format!("ERROR: <input>:{}:{}: {message}\n | {text}\n | {dots}^", line + 1, column + 1)
    }

    /// A fault of a call: its place is the parenthesis.
    fn call_fault(&self, name: &str, message: &str) -> String {
        let place = self.source.find(&format!("{name}(")).map_or(0, |start| start + name.len());
        self.fault_at(place, message)
    }

    fn no_overload(&self, name: &str, target: Option<&Ty<'_>>, args: &[Ty<'_>]) -> String {
        let list = args.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let applied = match target {
            Some(target) => format!("{target}.({list})"),
            None => format!("({list})"),
        };
        let message = format!("found no matching overload for '{name}' applied to '{applied}'");
        match name {
            operators::INDEX | operators::OPT_INDEX => self.fault("[", &message),
            operators::CONDITIONAL => self.fault("?", &message),
            _ if name.contains(char::is_alphanumeric) && name != operators::IN => {
                self.call_fault(name, &message)
            }
            _ => self.fault(name.trim_matches(|c| "_@".contains(c)), &message),
        }
    }

    fn expr<'p>(&self, expr: &IdedExpr, vars: &Vars<'_, 'p>, depth: usize) -> Result<Ty<'p>, String> {
        // Macros expand to trees that are a few levels deeper than their text.
        if depth > 3 * DEPTH_MAX {
            return Err(self.fault("", "expression is nested too deeply"));
        }
        let depth = depth + 1;
        match &expr.expr {
            Expr::Literal(literal) => Ok(literal_type(literal)),
            Expr::Ident(name) => {
                if name == "oldSelf" {
                    *self.uses_old_self.borrow_mut() = true;
                }
                match vars.get(name) {
                    Some(ty) => Ok(ty.clone()),
                    None if super::functions::type_named(name).is_some() => Ok(Ty::Type),
                    None => {
                        let message = format!("undeclared reference to '{name}' (in container '')");
                        Err(self.fault(name, &message))
                    }
                }
            }
            Expr::Select(select) => {
                let operand = self.expr(&select.operand, vars, depth)?;
                let field = self.field(&operand, &select.field)?;
                Ok(if select.test { Ty::Bool } else { field })
            }
            Expr::List(list) => {
                let mut element = Ty::Dyn;
                for (i, value) in list.elements.iter().enumerate() {
                    let ty = match (self.expr(value, vars, depth)?, list.optional_indices.contains(&i)) {
                        (Ty::Optional(inner), true) => *inner,
                        (ty, _) => ty,
                    };
                    element = self.same(element, ty)?;
                }
                Ok(Ty::List(Box::new(element)))
            }
            Expr::Map(map) => {
                let (mut key, mut value) = (Ty::Dyn, Ty::Dyn);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    let found = self.expr(&entry.key, vars, depth)?;
                    key = self.same(key, found)?;
                    let found = self.expr(&entry.value, vars, depth)?;
                    value = self.same(value, found)?;
                }
                Ok(Ty::Map(Box::new(key), Box::new(value)))
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, vars, depth),
            Expr::Call(call) => self.call(call, vars, depth),
            Expr::Struct(value) => {
                let message = format!("undeclared reference to '{}' (in container '')", value.type_name);
                Err(self.fault(&value.type_name, &message))
            }
            Expr::Unspecified => Err(self.fault("", "unspecified expression")),
        }
    }

    /// The elements of a literal are all of one type.
    fn same<'p>(&self, expected: Ty<'p>, found: Ty<'p>) -> Result<Ty<'p>, String> {
        match expected.fits(&found) {
            true => Ok(expected.join(found)),
            false => Err(self.fault("", &format!("expected type '{expected}' but found '{found}'"))),
        }
    }

    fn field<'p>(&self, operand: &Ty<'p>, name: &str) -> Result<Ty<'p>, String> {
        let near = format!(".{name}");
        match operand.field(name) {
            Ok(Some(ty)) => Ok(ty),
            Ok(None) => Err(self.fault(&near, &format!("undefined field '{name}'"))),
            Err(()) => Err(self.fault(&near, &format!("type '{operand}' does not support field selection"))),
        }
    }

    fn element<'p>(&self, range: Ty<'p>) -> Result<(Ty<'p>, Ty<'p>), String> {
        match range {
            Ty::List(element) => Ok((Ty::Int, *element)),
            Ty::Map(key, value) => Ok((*key, *value)),
            Ty::Dyn => Ok((Ty::Dyn, Ty::Dyn)),
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                Err(self.fault("", &message))
            }
        }
    }

    fn comprehension<'p>(
        &self,
        loop_: &ComprehensionExpr,
        vars: &Vars<'_, 'p>,
        depth: usize,
    ) -> Result<Ty<'p>, String> {
        let range = self.expr(&loop_.iter_range, vars, depth)?;
        let is_map = matches!(range, Ty::Map(..));
        let (key, value) = self.element(range)?;
        let item = if is_map { key } else { value };
        let start = self.expr(&loop_.accu_init, vars, depth)?;
        let accu = Vars { name: &loop_.accu_var, ty: start.clone(), parent: Some(vars) };
        self.expr(&loop_.loop_cond, &accu, depth)?;
        let step = Vars { name: &loop_.iter_var, ty: item, parent: Some(&accu) };
        let grown = self.expr(&loop_.loop_step, &step, depth)?;
        let result = Vars { name: &loop_.accu_var, ty: start.join(grown), parent: Some(vars) };
        self.expr(&loop_.result, &result, depth)
    }

    fn call<'p>(&self, call: &CallExpr, vars: &Vars<'_, 'p>, depth: usize) -> Result<Ty<'p>, String> {
        let name = call.func_name.as_str();
        if let Some(ty) = self.special(call, vars, depth) {
            return ty;
        }
        if let (operators::OPT_SELECT, [operand, field]) = (name, call.args.as_slice()) {
            let operand = self.expr(operand, vars, depth)?;
            let Expr::Literal(LiteralValue::String(field)) = &field.expr else {
                return Err(self.fault("?", "unsupported optional field selection"));
            };
            return Ok(match self.field(&operand, field.inner())? {
                optional @ Ty::Optional(_) => optional,
                ty => Ty::Optional(Box::new(ty)),
            });
        }
        let namespace = call.target.as_deref().and_then(|target| match &target.expr {
            Expr::Ident(ident) if NAMESPACES.contains(&ident.as_str()) && vars.get(ident).is_none() => {
                Some(ident.as_str())
            }
            _ => None,
        });
        let target = match (&call.target, namespace) {
            (Some(target), None) => Some(self.expr(target, vars, depth)?),
            _ => None,
        };
        let args = call.args.iter().map(|arg| match (&arg.expr, name) {
            // What is put into a text may be of any type.
            (Expr::List(list), "format") => {
                list.elements.iter().try_for_each(|value| self.expr(value, vars, depth).map(drop))?;
                Ok(Ty::List(Box::new(Ty::Dyn)))
            }
            _ => self.expr(arg, vars, depth),
        });
        let args: Vec<Ty<'p>> = args.collect::<Result<_, _>>()?;
        if namespace.is_none()
            && target.is_none()
            && name.contains(['_', '@'])
            && !name.contains(char::is_alphabetic)
            || name == operators::IN
            || name == operators::NOT_STRICTLY_FALSE
        {
            return operator_type(name, &args).ok_or_else(|| self.no_overload(name, None, &args));
        }
        let qualified = namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}.{name}"));
        if !signatures::is_known(&qualified) {
            let message = format!("undeclared reference to '{name}' (in container '')");
            return Err(self.call_fault(name, &message));
        }
        if let ("matches", Some(pattern)) = (name, call.args.last())
            && let Expr::Literal(LiteralValue::String(pattern)) = &pattern.expr
            && Pattern::new(pattern.inner()).fault().is_some()
        {
            return Err(self.call_fault(name, "invalid matches argument"));
        }
        signatures::result(&qualified, target.as_ref(), &args)
            .ok_or_else(|| self.no_overload(&qualified, target.as_ref(), &args))
    }

    /// Macros that the parser leaves as calls.
    fn special<'p>(
        &self,
        call: &CallExpr,
        vars: &Vars<'_, 'p>,
        depth: usize,
    ) -> Option<Result<Ty<'p>, String>> {
        let target = call.target.as_deref()?;
        let ident = |expr: &IdedExpr| match &expr.expr {
            Expr::Ident(name) => Some(name.clone()),
            _ => None,
        };
        let name = call.func_name.as_str();
        match (name, call.args.as_slice()) {
            ("optMap" | "optFlatMap", [var, body]) => {
                let var = ident(var)?;
                let inner = match self.expr(target, vars, depth) {
                    Ok(Ty::Optional(inner)) => *inner,
                    Ok(Ty::Dyn) => Ty::Dyn,
                    Ok(other) => return Some(Err(self.no_overload(name, Some(&other), &[]))),
                    Err(fault) => return Some(Err(fault)),
                };
                let vars = Vars { name: &var, ty: inner, parent: Some(vars) };
                let body = self.expr(body, &vars, depth);
                Some(body.map(|ty| if name == "optMap" { Ty::Optional(Box::new(ty)) } else { ty }))
            }
            ("all" | "exists" | "existsOne" | "exists_one", [first, second, body])
            | (
                "transformList" | "transformMap" | "transformMapEntry",
                [first, second, body] | [first, second, _, body],
            ) => {
                let (first, second) = (ident(first)?, ident(second)?);
                Some(self.two_variables(call, target, (&first, &second), body, vars, depth))
            }
            _ => None,
        }
    }

    fn two_variables<'p>(
        &self,
        call: &CallExpr,
        target: &IdedExpr,
        (first, second): (&str, &str),
        body: &IdedExpr,
        vars: &Vars<'_, 'p>,
        depth: usize,
    ) -> Result<Ty<'p>, String> {
        let (key, value) = self.element(self.expr(target, vars, depth)?)?;
        let outer = Vars { name: first, ty: key.clone(), parent: Some(vars) };
        let inner = Vars { name: second, ty: value, parent: Some(&outer) };
        if let [_, _, filter, _] = call.args.as_slice() {
            self.expr(filter, &inner, depth)?;
        }
        let body = self.expr(body, &inner, depth)?;
        Ok(match call.func_name.as_str() {
            "transformList" => Ty::List(Box::new(body)),
            "transformMap" => Ty::Map(Box::new(key), Box::new(body)),
            "transformMapEntry" => body,
            _ => Ty::Bool,
        })
    }
}

fn literal_type<'p>(literal: &LiteralValue) -> Ty<'p> {
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

/// The type that an operator gives; `None` if it takes no such operands.
fn operator_type<'p>(name: &str, args: &[Ty<'p>]) -> Option<Ty<'p>> {
    let number = |ty: &Ty<'_>| matches!(ty, Ty::Int | Ty::UInt | Ty::Double);
    Some(match (name, args) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [a, b]) => {
            (a.is(&Ty::Bool) && b.is(&Ty::Bool)).then_some(Ty::Bool)?
        }
        (operators::LOGICAL_NOT | operators::NOT_STRICTLY_FALSE, [a]) => {
            a.is(&Ty::Bool).then_some(Ty::Bool)?
        }
        (operators::CONDITIONAL, [condition, a, b]) => {
            (condition.is(&Ty::Bool) && a.fits(b)).then(|| a.clone().join(b.clone()))?
        }
        (operators::EQUALS | operators::NOT_EQUALS, [a, b]) => a.fits(b).then_some(Ty::Bool)?,
        (
            operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS,
            [a, b],
        ) => {
            let ordered = |ty: &Ty<'_>| {
                number(ty)
                    || matches!(ty, Ty::Dyn | Ty::Bool | Ty::Text | Ty::Bytes | Ty::Duration | Ty::Timestamp)
            };
            let alike = a.fits(b) || (number(a) && number(b));
            (ordered(a) && ordered(b) && alike).then_some(Ty::Bool)?
        }
        (operators::ADD, [a, b]) => match (a, b) {
            (Ty::Dyn, other) | (other, Ty::Dyn) => other.clone(),
            (Ty::Timestamp, Ty::Duration) | (Ty::Duration, Ty::Timestamp) => Ty::Timestamp,
            (Ty::Int | Ty::UInt | Ty::Double | Ty::Text | Ty::Bytes | Ty::List(_) | Ty::Duration, _)
                if a.fits(b) =>
            {
                a.clone().join(b.clone())
            }
            _ => return None,
        },
        (operators::SUBSTRACT, [a, b]) => match (a, b) {
            (Ty::Dyn, other) | (other, Ty::Dyn) => other.clone(),
            (Ty::Timestamp, Ty::Duration) => Ty::Timestamp,
            (Ty::Timestamp, Ty::Timestamp) => Ty::Duration,
            (Ty::Int | Ty::UInt | Ty::Double | Ty::Duration, _) if a.fits(b) => a.clone(),
            _ => return None,
        },
        (operators::MULTIPLY | operators::DIVIDE, [a, b]) => match (a, b) {
            (Ty::Dyn, other) | (other, Ty::Dyn) => other.clone(),
            _ if number(a) && a.fits(b) => a.clone(),
            _ => return None,
        },
        (operators::MODULO, [a, b]) => match (a, b) {
            (Ty::Dyn, other) | (other, Ty::Dyn) => other.clone(),
            (Ty::Int, Ty::Int) | (Ty::UInt, Ty::UInt) => a.clone(),
            _ => return None,
        },
        (operators::NEGATE, [a]) => matches!(a, Ty::Int | Ty::Double | Ty::Dyn).then(|| a.clone())?,
        (operators::IN, [a, b]) => match b {
            Ty::Dyn => Ty::Bool,
            Ty::List(element) => a.fits(element).then_some(Ty::Bool)?,
            Ty::Map(key, _) => a.fits(key).then_some(Ty::Bool)?,
            _ => return None,
        },
        (operators::INDEX | operators::OPT_INDEX, [of, key]) => {
            let (of, optional) = match of {
                Ty::Optional(inner) => (&**inner, true),
                of => (of, name == operators::OPT_INDEX),
            };
            let value = match of {
                Ty::Dyn => Ty::Dyn,
                Ty::List(element) => key.is(&Ty::Int).then(|| (**element).clone())?,
                Ty::Map(own, value) => key.fits(own).then(|| (**value).clone())?,
                _ => return None,
            };
            if optional { Ty::Optional(Box::new(value)) } else { value }
        }
        _ => return None,
    })
}
