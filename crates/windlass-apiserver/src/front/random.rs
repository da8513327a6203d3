//! The source of uids and name suffixes.

use crate::api::Ids;

/// A generator of 64-bit numbers: xoshiro256++, of a seed or of the machine's randomness. A clone gives the same
/// numbers as its original.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// Always the same numbers for the same seed.
    pub fn from_seed(seed: u64) -> Random {
        let mut state = seed;
        Random(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        }))
    }

    /// Numbers that nobody has seen.
    ///
    /// # Panics
    /// When the machine has no randomness to give, which no program can go on from.
    pub fn from_os() -> Random {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the machine gives random bytes");
        let mut parts =
            bytes.chunks_exact(8).map(|part| u64::from_le_bytes(part.try_into().expect("eight bytes")));
        Random(std::array::from_fn(|_| parts.next().expect("four parts")))
    }
}

impl Ids for Random {
    fn next(&mut self) -> u64 {
        let Random([a, b, c, d]) = self;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }
}

/// Spreads a counter over all bits (the finaliser of SplitMix64).
pub(super) fn mix(counter: u64) -> u64 {
    let mut z = counter;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_the_machine_does_not() {
        let some = |mut random: Random| (0..8).map(|_| random.next()).collect::<Vec<_>>();
        assert_eq!(some(Random::from_seed(7)), some(Random::from_seed(7)));
        assert_ne!(some(Random::from_seed(7)), some(Random::from_seed(8)));
        assert_ne!(some(Random::from_os()), some(Random::from_os()));
    }
}
