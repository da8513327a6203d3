//! Bounds, steps and ranges of numbers, with kube-openapi's care for what is an integer.

use serde_json::{Number, Value};

use super::formats;
use super::props::Props;
use super::text::float;
use super::validate::Outcome;
use crate::field::Path;

/// Checks the range that type and format give, `multipleOf`, and the bounds.
pub(super) fn check(props: &Props, number: &Number, path: &Path<'_>, out: &mut Outcome) {
    let kind = match (props.int_or_string, props.ty.as_str()) {
        (false, ty @ ("integer" | "number")) => ty,
        _ => "",
    };
    let range = Range { kind, format: if kind.is_empty() { "" } else { formats::of(props) } };
    let (value, float) = (number.as_i64(), number.as_f64().unwrap_or_default());
    let shown = Value::Number(number.clone());
    if !value.map_or_else(|| range.holds(float), |value| range.holds_integer(value)) {
        out.general(range.text("Checked", path));
    }
    if let Some(factor) = props.multiple_of {
        let native = range.holds(factor);
        if !native {
            out.general(range.text("MultipleOf", path));
        }
        multiple(value.filter(|_| native), float, factor, &shown, path, out);
    }
    if let Some(min) = props.minimum {
        let bound = Bound { limit: min, exclusive: props.exclusive_minimum, name: "greater" };
        let native = range.holds(min);
        if !native {
            out.general(range.text("Minimum boundary", path));
        }
        let below = match value.filter(|_| native) {
            Some(value) => value < truncate(min) || (bound.exclusive && value == truncate(min)),
            None => float < min || (bound.exclusive && float == min),
        };
        if below {
            out.invalid(path, &shown, &bound.text(value.is_some() && native));
        }
    }
    if let Some(max) = props.maximum {
        let bound = Bound { limit: max, exclusive: props.exclusive_maximum, name: "less" };
        let native = range.holds(max);
        if !native {
            out.general(range.text("Maximum boundary", path));
        }
        let above = match value.filter(|_| native) {
            Some(value) => value > truncate(max) || (bound.exclusive && value == truncate(max)),
            None => float > max || (bound.exclusive && float == max),
        };
        if above {
            out.invalid(path, &shown, &bound.text(value.is_some() && native));
        }
    }
}

fn multiple(value: Option<i64>, number: f64, factor: f64, shown: &Value, path: &Path<'_>, out: &mut Outcome) {
    let whole = value.map(|value| (value, truncate(factor)));
    let positive = whole.map_or(factor > 0.0, |(_, factor)| factor > 0);
    if !positive {
        let factor = whole.map_or_else(|| float(factor), |(_, factor)| factor.to_string());
        out.general(format!("factor MultipleOf declared for {path} must be positive: {factor}"));
        return;
    }
    let is_multiple = match whole {
        Some((value, factor)) => value % factor == 0,
        None => {
            let times = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
            is_whole(times)
        }
    };
    if !is_multiple {
        out.invalid(path, shown, &format!("should be a multiple of {}", float(factor)));
    }
}

/// Whether a float stands for an integer, with the tolerance that Go's `swag` allows.
pub(super) fn is_whole(number: f64) -> bool {
    const EPSILON: f64 = 1e-9;
    const SAFE: f64 = 9_007_199_254_740_991.0;
    if !number.is_finite() || number.abs() > SAFE {
        return false;
    }
    let whole = number.trunc();
    number == whole || (whole != 0.0 && (number - whole).abs() / (number.abs() + whole.abs()) < EPSILON)
}

/// Go's conversion of a bound to an integer.
#[expect(clippy::cast_possible_truncation, reason = "this is what the conversion does")]
fn truncate(number: f64) -> i64 {
    number as i64
}

struct Bound {
    limit: f64,
    exclusive: bool,
    name: &'static str,
}

impl Bound {
    fn text(&self, integer: bool) -> String {
        let or_equal = if self.exclusive { "" } else { " or equal to" };
        let limit = if integer { truncate(self.limit).to_string() } else { float(self.limit) };
        format!("should be {} than{or_equal} {limit}", self.name)
    }
}

/// What numbers a type and a format can hold.
struct Range<'a> {
    kind: &'a str,
    format: &'a str,
}

impl Range<'_> {
    fn holds_integer(&self, value: i64) -> bool {
        !(self.kind == "integer" && self.format == "int32") || i32::try_from(value).is_ok()
    }

    fn holds(&self, number: f64) -> bool {
        match (self.kind, self.format) {
            ("integer", "int32") => {
                number.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)
            }
            // 2^63 itself is out of range.
            ("integer", _) => {
                number.fract() == 0.0
                    && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number)
            }
            (_, "float") => number.abs() <= f64::from(f32::MAX),
            _ => true,
        }
    }

    fn text(&self, what: &str, path: &Path<'_>) -> String {
        match self.format {
            "" => format!("{what} value must be of type {} (default format) in {path}", self.kind),
            format => format!("{what} value must be of type {} with format {format} in {path}", self.kind),
        }
    }
}
