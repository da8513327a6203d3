//! What can be told of literals once all types are known: patterns, durations and times that are none, lists of mixed
//! types, and formats that do not fit what is put into them.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use windlass_core::duration;

use super::check::Checked;
use super::issue::Issue;
use super::parse::Parsed;
use super::types::Ty;
use crate::codec::scalar::time::{self, Precision};
use crate::crd::pattern::Pattern;

/// The faults of the literals in an expression.
pub(super) fn check(parsed: &Parsed, checked: &Checked) -> Vec<Issue> {
    let mut walk = Walk { parsed, checked, issues: Vec::new() };
    walk.expr(&parsed.expr, false);
    walk.issues
}

struct Walk<'s> {
    parsed: &'s Parsed,
    checked: &'s Checked,
    issues: Vec<Issue>,
}

impl Walk<'_> {
    fn fault(&mut self, id: u64, message: String) {
        self.issues.push(Issue { at: self.parsed.place(id), message });
    }

    fn ty(&self, expr: &IdedExpr) -> Ty {
        self.checked.types.get(&expr.id).cloned().unwrap_or(Ty::Dyn)
    }

    /// `mixed` says that lists may be mixed here, as what is put into a format is.
    fn expr(&mut self, expr: &IdedExpr, mixed: bool) {
        match &expr.expr {
            Expr::Call(call) => {
                self.call(expr.id, call);
                let mixed = mixed || call.func_name == "format";
                call.target.iter().for_each(|target| self.expr(target, mixed));
                call.args.iter().for_each(|arg| self.expr(arg, mixed));
            }
            Expr::Select(select) => self.expr(&select.operand, mixed),
            Expr::List(list) => {
                let element = |(i, value): (usize, &IdedExpr)| {
                    (value.id, self.ty(value), list.optional_indices.contains(&i))
                };
                let elements: Vec<_> = list.elements.iter().enumerate().map(element).collect();
                if !mixed {
                    self.alike(elements, true);
                }
                list.elements.iter().for_each(|value| self.expr(value, mixed));
            }
            Expr::Map(map) => {
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some(entry),
                    EntryExpr::StructField(_) => None,
                });
                let entries: Vec<_> = entries.collect();
                if !mixed {
                    let keys =
                        entries.iter().map(|entry| (entry.key.id, self.ty(&entry.key), false)).collect();
                    let value = |entry: &&cel::common::ast::MapEntryExpr| {
                        (entry.value.id, self.ty(&entry.value), entry.optional)
                    };
                    let values = entries.iter().map(value).collect();
                    self.alike(keys, false);
                    self.alike(values, false);
                }
                for entry in entries {
                    self.expr(&entry.key, mixed);
                    self.expr(&entry.value, mixed);
                }
            }
            Expr::Comprehension(loop_) => {
                for part in
                    [&loop_.iter_range, &loop_.accu_init, &loop_.loop_cond, &loop_.loop_step, &loop_.result]
                {
                    self.expr(part, mixed);
                }
            }
            _ => {}
        }
    }

    /// Reports elements that are not of the first one's type, or the first of these.
    fn alike(&mut self, elements: Vec<(u64, Ty, bool)>, only_first: bool) {
        let mut expected: Option<Ty> = None;
        for (id, ty, is_optional) in elements {
            let ty = if is_optional { ty.unwrap_optional().0.clone() } else { ty };
            match &expected {
                None => expected = Some(ty),
                Some(first) if first.same(&ty) => {}
                Some(first) => {
                    self.fault(id, format!("expected type '{first}' but found '{ty}'"));
                    if only_first {
                        return;
                    }
                }
            }
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) {
        let name = call.func_name.as_str();
        if let Some(IdedExpr { id, expr: Expr::Literal(literal) }) = call.args.first() {
            let is_wrong = match (name, literal) {
                ("duration", LiteralValue::String(text)) => duration::parse(text.inner()).is_err(),
                // It has an overload for numbers, and no way to make one of them.
                ("duration", LiteralValue::Int(_)) => true,
                ("timestamp", LiteralValue::String(text)) => {
                    time::read(text.inner(), Precision::Seconds).is_err()
                }
                ("matches", LiteralValue::String(text)) => Pattern::new(text.inner()).fault().is_some(),
                _ => false,
            };
            if is_wrong {
                self.fault(*id, format!("invalid {name} argument"));
            }
        }
        if let ("format", Some(target), [args]) = (name, &call.target, call.args.as_slice())
            && let (Expr::Literal(LiteralValue::String(format)), Expr::List(list)) =
                (&target.expr, &args.expr)
        {
            self.format(id, format.inner(), &list.elements);
        }
    }

    fn format(&mut self, id: u64, format: &str, args: &[IdedExpr]) {
        let mut seen = 0;
        let mut rest = format;
        while let Some(start) = rest.find('%') {
            rest = &rest[start + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                rest = after;
                continue;
            }
            if rest.is_empty() {
                return self.fault(id, "unexpected end of string".to_owned());
            }
            let Some(arg) = args.get(seen) else {
                return self.fault(id, format!("index {seen} out of range"));
            };
            seen += 1;
            let (clause, after) = match clause(rest) {
                Ok(clause) => clause,
                Err(why) => return self.fault(id, format!("could not parse formatting clause: {why}")),
            };
            rest = after;
            if let Err((id, why)) = self.takes(clause, arg) {
                return self.fault(id, format!("error during formatting: {why}"));
            }
        }
        if args.len() > seen {
            let message =
                format!("too many arguments supplied to string.format (expected {seen}, got {})", args.len());
            self.fault(id, message);
        }
    }

    /// Whether a clause of a format takes the argument.
    fn takes(&self, clause: char, arg: &IdedExpr) -> Result<(), (u64, String)> {
        let ty = self.ty(arg);
        let (fits, wants) = match clause {
            's' => {
                self.is_text(arg)?;
                return Ok(());
            }
            'd' => (matches!(ty, Ty::Int | Ty::UInt), "decimal clause can only be used on integers"),
            'f' => (matches!(ty, Ty::Double | Ty::Text), "fixed-point clause can only be used on doubles"),
            'e' => (matches!(ty, Ty::Double | Ty::Text), "scientific clause can only be used on doubles"),
            'b' => (
                matches!(ty, Ty::Int | Ty::UInt | Ty::Bool),
                "only integers and bools can be formatted as binary",
            ),
            'x' | 'X' => (
                matches!(ty, Ty::Int | Ty::UInt | Ty::Text | Ty::Bytes),
                "only integers, byte buffers, and strings can be formatted as hex",
            ),
            _ => (matches!(ty, Ty::Int | Ty::UInt), "octal clause can only be used on integers"),
        };
        match fits || ty.is_dyn() {
            true => Ok(()),
            false => Err((arg.id, format!("{wants}, was given {}", type_name(&ty)))),
        }
    }

    fn is_text(&self, arg: &IdedExpr) -> Result<(), (u64, String)> {
        let ty = self.ty(arg);
        if matches!(ty, Ty::Object(_) | Ty::Struct(_) | Ty::Opaque(_) | Ty::Optional(_)) {
            let wants = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                         durations, and timestamps";
            return Err((arg.id, format!("{wants}, was given {}", type_name(&ty))));
        }
        match &arg.expr {
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.is_text(element)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.is_text(&entry.key)?;
                    self.is_text(&entry.value)
                }
                EntryExpr::StructField(_) => Ok(()),
            }),
            _ => Ok(()),
        }
    }
}

/// The name of a type without what it is made of.
fn type_name(ty: &Ty) -> String {
    match ty {
        Ty::Duration => "google.protobuf.Duration".to_owned(),
        Ty::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Ty::Null => "null_type".to_owned(),
        other => other.to_string().split('(').next().unwrap_or_default().to_owned(),
    }
}

/// The letter of a clause, and what comes after it.
pub(super) fn clause(text: &str) -> Result<(char, &str), String> {
    let mut rest = text;
    if let Some(after) = text.strip_prefix('.') {
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.is_empty() {
            return Err("error while parsing precision: could not find end of precision specifier".to_owned());
        }
        let digits = &after[..after.len() - rest.len()];
        if digits.parse::<i64>().is_err() {
            let kind = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
            return Err(format!(
                "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \
                 {digits:?}: {kind}"
            ));
        }
    }
    let mut chars = rest.chars();
    match chars.next() {
        Some(clause @ ('s' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o')) => Ok((clause, chars.as_str())),
        Some(other) => Err(format!("unrecognized formatting clause \"{other}\"")),
        None => Err("unexpected end of string".to_owned()),
    }
}
