//! The least and the most that something can be. What grows too large stays at the largest number.

/// From the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Range {
    pub least: u64,
    pub most: u64,
}

impl Range {
    /// Of a size that nobody can tell.
    pub(super) const UNKNOWN: Range = Range { least: 0, most: u64::MAX };

    pub(super) const fn fixed(value: u64) -> Range {
        Range { least: value, most: value }
    }

    pub(super) fn plus(self, other: Range) -> Range {
        Range { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }

    pub(super) fn by(self, other: Range) -> Range {
        Range { least: self.least.saturating_mul(other.least), most: self.most.saturating_mul(other.most) }
    }

    /// So many times, rounded up.
    pub(super) fn times(self, factor: f64) -> Range {
        Range { least: times(self.least, factor), most: times(self.most, factor) }
    }

    /// What holds both.
    pub(super) fn union(self, other: Range) -> Range {
        Range { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "kube-apiserver counts so, and what is too large becomes the largest number"
)]
pub(super) fn times(value: u64, factor: f64) -> u64 {
    (value as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_wraps_around() {
        let large = Range::fixed(u64::MAX - 1);
        assert_eq!(large.plus(Range::fixed(5)), Range::fixed(u64::MAX));
        assert_eq!(large.by(large), Range::fixed(u64::MAX));
        assert_eq!(Range::UNKNOWN.times(2.0), Range::UNKNOWN);
        assert_eq!(Range::fixed(11).times(0.1), Range::fixed(2));
        assert_eq!(
            Range { least: 1, most: 3 }.union(Range { least: 2, most: 9 }),
            Range { least: 1, most: 9 }
        );
    }
}
