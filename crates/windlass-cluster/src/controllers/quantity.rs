//! Amounts of resources as numbers.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use windlass_core::quantity;

/// An amount in thousandths, rounded up. What is no amount counts for nothing: validation has let no such one in.
pub(crate) fn milli(quantity: &Quantity) -> i64 {
    number(quantity, quantity::Quantity::as_milli)
}

/// An amount in whole units, rounded up.
pub(crate) fn units(quantity: &Quantity) -> i64 {
    number(quantity, quantity::Quantity::as_i64)
}

fn number(text: &Quantity, of: fn(&quantity::Quantity) -> Option<i64>) -> i64 {
    quantity::Quantity::parse(&text.0).map_or(0, |quantity| of(&quantity).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_numbers() {
        let of = |text: &str| (milli(&Quantity(text.into())), units(&Quantity(text.into())));
        assert_eq!(of("100m"), (100, 1));
        assert_eq!(of("1500u"), (2, 1));
        assert_eq!(of("1.5Gi").1, 1_610_612_736);
        assert_eq!(of("8Ei"), (i64::MAX, i64::MAX));
        assert_eq!(of("nonsense"), (0, 0));
    }
}
