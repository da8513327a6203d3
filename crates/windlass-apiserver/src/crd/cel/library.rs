//! The function library: what is not part of the language itself is done by `cel` and `kube-cel`.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use cel::Context;
use cel::common::ast::{CallExpr, Expr, IdedExpr};
use jiff::tz::Offset;
use kube_cel::KubeCelExt as _;

use super::value::{Fault, Result, Val};
use crate::codec::scalar::time::{self, Precision};

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

/// The times that there are, in seconds since 1970.
pub(super) const TIMES: RangeInclusive<i64> = time::ZERO_SECONDS..=253_402_300_799;

/// A point in time, from RFC 3339 as Go reads it. The offset that it is written with stays.
pub(super) fn timestamp<'a>(text: &str) -> Result<Val<'a>> {
    let (seconds, nanos) =
        time::read(text, Precision::Seconds).map_err(|why| Fault::other(why.to_string()))?;
    if !TIMES.contains(&seconds) {
        return Err(Fault::other("timestamp overflow"));
    }
    let Ok(time) = jiff::Timestamp::new(seconds, nanos) else {
        // The last two days.
        return call(None, "timestamp", None, &[Val::text(text)]);
    };
    let shown = match offset(text) {
        Some(offset) => time.display_with_offset(offset).to_string(),
        None => time.to_string(),
    };
    call(None, "timestamp", None, &[Val::text(shown)])
}

/// A time with the hours and days of a zone as if they were those of UTC. The zone is a name, or an offset.
pub(super) fn in_zone<'a>(time: &Val<'a>, zone: &str) -> Result<Val<'a>> {
    let Val::Foreign(time @ cel::Value::Timestamp(inner)) = time else { return Err(Fault::NoOverload) };
    let seconds = match zone.split_once(':') {
        Some((hours, minutes)) => {
            let number = |text: &str| {
                let why = || Fault::other(format!("strconv.Atoi: parsing {text:?}: invalid syntax"));
                text.parse::<i64>().map_err(|_| why())
            };
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            let minutes = if zone.starts_with('-') { -minutes } else { minutes };
            hours.saturating_mul(60).saturating_add(minutes).saturating_mul(60)
        }
        None => {
            let unknown = |_| Fault::other(format!("unknown time zone {zone}"));
            let known = jiff::tz::TimeZone::get(zone).map_err(unknown)?;
            let time = jiff::Timestamp::from_second(inner.timestamp()).map_err(unknown)?;
            i64::from(known.to_offset(time).seconds())
        }
    };
    let Val::Foreign(offset) = duration(seconds.saturating_mul(1_000_000_000))? else {
        return Err(Fault::NoOverload);
    };
    let utc = match time {
        cel::Value::Timestamp(time) => cel::Value::Timestamp(time.to_utc().fixed_offset()),
        other => other.clone(),
    };
    (utc + offset).map(Val::from_library).map_err(fault)
}

/// The offset at the end of a time, such as `+01:00`.
fn offset(time: &str) -> Option<Offset> {
    let (hours, minutes) = time.rsplit_once(':')?;
    let (_, hours) = hours.split_at_checked(hours.len().checked_sub(3)?)?;
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let number = |text: &str| text.parse::<i32>().ok();
    let seconds = number(hours.strip_prefix(['+', '-'])?)? * 3600 + number(minutes)? * 60;
    Offset::from_seconds(sign * seconds).ok()
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
            if message.starts_with("expected ") || message.contains(" not supported on type ") =>
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
