//! The function library: what is not part of the language itself is done by `cel` and `kube-cel`.

use std::sync::LazyLock;

use cel::Context;
use cel::common::ast::{CallExpr, Expr, IdedExpr};
use kube_cel::KubeCelExt as _;

use super::value::{Fault, Result, Val};

/// All functions, registered once.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default();
    context.register_all();
    context
});

/// Calls a function of the library. `namespace` is the prefix of a qualified name, such as `sets` of `sets.contains`.
pub(super) fn call<'a>(
    namespace: Option<&str>,
    name: &str,
    target: Option<&Val<'a>>,
    args: &[Val<'a>],
) -> Result<Val<'a>> {
    let mut scope = FUNCTIONS.new_inner_scope();
    let ident = |name: String| IdedExpr { id: 0, expr: Expr::Ident(name) };
    let mut idents = Vec::with_capacity(args.len());
    for (i, arg) in args.iter().enumerate() {
        scope.add_variable_from_value(format!("@{i}"), arg.to_library()?);
        idents.push(ident(format!("@{i}")));
    }
    if let Some(target) = target {
        scope.add_variable_from_value("@t", target.to_library()?);
    }
    let target = match (namespace, target) {
        (Some(namespace), _) => Some(Box::new(ident(namespace.to_owned()))),
        (None, Some(_)) => Some(Box::new(ident("@t".to_owned()))),
        (None, None) => None,
    };
    let call = CallExpr { func_name: name.to_owned(), target, args: idents };
    let result = scope.resolve(&IdedExpr { id: 0, expr: Expr::Call(call) });
    result.map(Val::from_library).map_err(fault)
}

/// A duration of so many nanoseconds.
pub(super) fn duration<'a>(nanos: i64) -> Result<Val<'a>> {
    call(None, "duration", None, &[Val::text(format!("{nanos}ns"))])
}

/// A point in time, from RFC 3339. Hours and days are asked for in UTC, whatever offset it is written with.
pub(super) fn timestamp<'a>(text: &str) -> Result<Val<'a>> {
    let in_utc = text.parse::<jiff::Timestamp>().map(|time| time.to_string());
    call(None, "timestamp", None, &[Val::text(in_utc.as_deref().unwrap_or(text))])
}

fn fault(error: cel::ExecutionError) -> Fault {
    use cel::ExecutionError as E;
    match error {
        E::NoSuchOverload
        | E::UnexpectedType { .. }
        | E::NotSupportedAsMethod { .. }
        | E::UnsupportedTargetType { .. }
        | E::UnsupportedBinaryOperator(..)
        | E::UnsupportedUnaryOperator(..)
        | E::ValuesNotComparable(..)
        | E::InvalidArgumentCount { .. }
        | E::MissingArgumentOrTarget => Fault::NoOverload,
        E::NoSuchKey(key) => Fault::other(format!("no such key: {key}")),
        E::FunctionError { message, .. }
            if message.starts_with("expected ") && message.ends_with(" type") =>
        {
            Fault::NoOverload
        }
        E::FunctionError { function, message } if message.contains("empty list") => {
            Fault::other(format!("{function} called on empty list"))
        }
        E::FunctionError { message, .. } => Fault::Other(message),
        other => Fault::other(other.to_string()),
    }
}
