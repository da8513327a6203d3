//! Amounts of resources as numbers.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// An amount in thousandths, rounded up. What is no amount counts for nothing: validation has let no such one in.
pub(crate) fn milli(quantity: &Quantity) -> i64 {
    whole(nano(&quantity.0), 1_000_000)
}

/// An amount in whole units, rounded up.
pub(crate) fn units(quantity: &Quantity) -> i64 {
    whole(nano(&quantity.0), 1_000_000_000)
}

fn whole(nano: i128, unit: i128) -> i64 {
    let up = i128::from(nano % unit > 0);
    i64::try_from(nano / unit + up).unwrap_or(i64::MAX)
}

fn nano(text: &str) -> i128 {
    const UNIT: i128 = 1_000_000_000;
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (factor, divisor) = match suffix {
        "n" => (1, 1),
        "u" => (1_000, 1),
        "m" => (1_000_000, 1),
        "" => (UNIT, 1),
        "k" => (UNIT * 1_000, 1),
        "M" => (UNIT * 1_000_000, 1),
        "G" => (UNIT * 1_000_000_000, 1),
        "T" => (UNIT * 1_000_000_000_000, 1),
        "P" => (UNIT * 1_000_000_000_000_000, 1),
        "E" => (UNIT * 1_000_000_000_000_000_000, 1),
        "Ki" => (UNIT << 10, 1),
        "Mi" => (UNIT << 20, 1),
        "Gi" => (UNIT << 30, 1),
        "Ti" => (UNIT << 40, 1),
        "Pi" => (UNIT << 50, 1),
        "Ei" => (UNIT << 60, 1),
        exponent => match exponent[1..].parse::<i32>() {
            Ok(power @ 0..=18) => (UNIT * 10_i128.pow(power.unsigned_abs()), 1),
            Ok(power @ -9..0) => (UNIT, 10_i128.pow(power.unsigned_abs())),
            _ => return 0,
        },
    };
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
    let mut value = before.parse::<i128>().unwrap_or_default().saturating_mul(factor);
    let mut part = factor;
    for digit in after.bytes().filter(u8::is_ascii_digit) {
        part /= 10;
        value = value.saturating_add(i128::from(digit - b'0') * part);
    }
    sign * value / divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_numbers() {
        let of = |text: &str| (milli(&Quantity(text.into())), units(&Quantity(text.into())));
        assert_eq!(of("1"), (1000, 1));
        assert_eq!(of("100m"), (100, 1));
        assert_eq!(of("1.5"), (1500, 2));
        assert_eq!(of("1500u"), (2, 1));
        assert_eq!(of("128Mi").1, 134_217_728);
        assert_eq!(of("1.5Gi").1, 1_610_612_736);
        assert_eq!(of("2e3").1, 2000);
        assert_eq!(of("5E-1"), (500, 1));
        assert_eq!(of("1E").1, 1_000_000_000_000_000_000);
        assert_eq!(of("-1"), (-1000, -1));
    }
}
