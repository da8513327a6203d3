//! Numbers from a seed.

/// A generator of 64-bit numbers (SplitMix64): the same seed, the same numbers. The seed comes from outside.
///
/// ```
/// use windlass_core::Random;
///
/// assert_eq!(Random::from_seed(7).next(), Random::from_seed(7).next());
/// assert!((0.0..1.0).contains(&Random::from_seed(7).fraction()));
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub const fn from_seed(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number as a fraction: at least 0, less than 1.
    pub fn fraction(&mut self) -> f64 {
        // 53 bits are what a double holds exactly.
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
