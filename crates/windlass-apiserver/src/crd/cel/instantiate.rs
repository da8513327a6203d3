//! What is worked out when a program is made of an expression: conversions of constants, and patterns that are
//! constants. What fails then is told before any object is looked at, even where it would never be reached.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr};

use super::eval::{Machine, Overloads, Patterns, Scope};
use super::value::{Result, Val};
use crate::crd::pattern::Pattern;

/// Functions of one constant that are a constant.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// Why no program can be made of an expression, in the order in which kube-apiserver plans its parts.
pub(super) fn check(expr: &IdedExpr, overloads: &Overloads) -> std::result::Result<(), String> {
    Planner { patterns: &Patterns::default(), overloads }.plan(expr).map(|_| ())
}

struct Planner<'p> {
    patterns: &'p Patterns,
    overloads: &'p Overloads,
}

impl Planner<'_> {
    /// Whether a part is a constant.
    fn plan(&self, expr: &IdedExpr) -> std::result::Result<bool, String> {
        match &expr.expr {
            Expr::Literal(_) => Ok(true),
            Expr::Select(select) => self.plan(&select.operand).map(|_| false),
            Expr::List(list) => self.all(&list.elements),
            Expr::Map(map) => {
                let mut constant = true;
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        constant &= self.plan(&entry.key)? & self.plan(&entry.value)?;
                    }
                }
                Ok(constant)
            }
            Expr::Struct(made) => {
                for entry in &made.entries {
                    if let EntryExpr::StructField(entry) = &entry.expr {
                        self.plan(&entry.value)?;
                    }
                }
                Ok(false)
            }
            Expr::Comprehension(fold) => self
                .all([&fold.accu_init, &fold.iter_range, &fold.loop_cond, &fold.loop_step, &fold.result])
                .map(|_| false),
            Expr::Call(call) => self.call(expr, call),
            _ => Ok(false),
        }
    }

    fn call(&self, expr: &IdedExpr, call: &CallExpr) -> std::result::Result<bool, String> {
        let args: Vec<&IdedExpr> = call.target.as_deref().into_iter().chain(&call.args).collect();
        let mut constants = Vec::with_capacity(args.len());
        for arg in &args {
            constants.push(self.plan(arg)?);
        }
        match (call.func_name.as_str(), &constants[..]) {
            (name, [true]) if CONVERSIONS.contains(&name) => {
                self.value(expr).map(|_| true).map_err(|fault| fault.in_words())
            }
            ("find" | "findAll" | "matches", [_, true, ..]) => match self.value(args[1]) {
                Ok(Val::Text(text)) => match Pattern::new(&text).fault() {
                    Some(why) => Err(format!("error parsing regexp: {why}")),
                    None => Ok(false),
                },
                _ => Ok(false),
            },
            _ => Ok(false),
        }
    }

    fn all<'e>(&self, parts: impl IntoIterator<Item = &'e IdedExpr>) -> std::result::Result<bool, String> {
        parts.into_iter().try_fold(true, |constant, part| Ok(self.plan(part)? && constant))
    }

    fn value<'e>(&self, constant: &'e IdedExpr) -> Result<Val<'e>> {
        Machine::new(self.patterns, Some(self.overloads)).run(constant, &Scope::root(Val::Null)).0
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    #[test]
    fn patterns_that_are_constants_are_looked_at_at_once() {
        let fails = |source: &str| check(&parse(source).unwrap().expr, &Overloads::default()).is_err();
        assert!(fails("self.s.find('(') == ''"));
        assert!(fails("false && self.s.findAll('(', 1) == []"));
        assert!(fails("self.s.matches(string('('))"));
        assert!(!fails("self.s.find(self.t) == '('"));
    }
}
