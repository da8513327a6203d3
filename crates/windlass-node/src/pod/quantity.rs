//! Amounts of resources, in thousandths.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// An amount in thousandths, rounded up; `None` if the text is no quantity.
pub fn millis(quantity: &Quantity) -> Option<i128> {
    let text = quantity.0.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (factor, divisor): (i128, i128) = match suffix {
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "" => (1, 1),
        "k" => (1000, 1),
        "M" => (1000i128.pow(2), 1),
        "G" => (1000i128.pow(3), 1),
        "T" => (1000i128.pow(4), 1),
        "P" => (1000i128.pow(5), 1),
        "E" => (1000i128.pow(6), 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        exponent => match exponent.strip_prefix(['e', 'E'])?.parse::<i32>().ok()? {
            power @ 0..=18 => (10i128.pow(power.unsigned_abs()), 1),
            power @ -9..0 => (1, 10i128.pow(power.unsigned_abs())),
            _ => return None,
        },
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let negative = whole.starts_with('-');
    let digits: String = whole.trim_start_matches(['+', '-']).chars().chain(part.chars()).collect();
    let scale = 10i128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let number: i128 = digits.parse().ok()?;
    let below = scale.checked_mul(divisor)?;
    let above = number.checked_mul(factor)?.checked_mul(1000)?;
    let rounded = above.checked_add(below - 1)? / below;
    Some(if negative { -rounded } else { rounded })
}

/// An amount in whole ones, rounded up.
pub fn whole(quantity: &Quantity) -> Option<i128> {
    Some((millis(quantity)? + 999).div_euclid(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        let of = |text: &str| millis(&Quantity(text.to_owned()));
        for (text, expected) in [
            ("1", 1000),
            ("100m", 100),
            ("0.5", 500),
            ("1.5Gi", 1_610_612_736_000),
            ("64Mi", 67_108_864_000),
            ("1k", 1_000_000),
            ("1e3", 1_000_000),
            ("1E3", 1_000_000),
            ("100n", 1),
            ("-1", -1000),
        ] {
            assert_eq!(of(text), Some(expected), "{text}");
        }
        assert_eq!(of("1X"), None);
        assert_eq!(of(""), None);
        assert_eq!(whole(&Quantity("100m".to_owned())), Some(1));
    }
}
