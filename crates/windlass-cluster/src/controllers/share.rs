//! Numbers that are given as a count or as a share of something.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a share that is no whole number goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To the greater number.
    Up,
    /// To the lesser number.
    Down,
}

/// A count, or a percentage of a whole. What is neither counts for nothing: validation has let no such one in.
pub(crate) fn share(value: Option<&IntOrString>, whole: i32, round: Round) -> i32 {
    match value {
        None => 0,
        Some(IntOrString::Int(count)) => *count,
        Some(IntOrString::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse::<i64>().ok());
            let product = i64::from(whole) * percent.unwrap_or_default();
            let up = i64::from(round == Round::Up && product % 100 > 0);
            i32::try_from(product.div_euclid(100) + up).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stay_and_shares_are_rounded() {
        let of = |value: &str, whole| {
            let value = IntOrString::String(value.to_owned());
            (share(Some(&value), whole, Round::Up), share(Some(&value), whole, Round::Down))
        };
        assert_eq!(of("25%", 10), (3, 2));
        assert_eq!(of("25%", 4), (1, 1));
        assert_eq!(of("1%", 1), (1, 0));
        assert_eq!(of("0%", 7), (0, 0));
        assert_eq!(of("100%", 7), (7, 7));
        assert_eq!(share(Some(&IntOrString::Int(3)), 1, Round::Up), 3);
        assert_eq!(share(None, 9, Round::Up), 0);
    }
}
