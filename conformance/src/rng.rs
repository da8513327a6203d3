//! Random numbers that a seed repeats: SplitMix64.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// A stream of its own for each part of a run, so that one more draw here changes nothing there.
    pub fn part(seed: u64, name: &str, index: usize) -> Rng {
        let mut rng = Rng(seed);
        for byte in name.bytes() {
            rng.0 = rng.bits() ^ u64::from(byte);
        }
        rng.0 = rng.bits() ^ index as u64;
        rng.bits();
        rng
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// One of the items.
    pub fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }

    /// True `percent` times of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_parts_differ() {
        let draw = |seed, name, index| Rng::part(seed, name, index).bits();
        assert_eq!(draw(1, "a", 0), draw(1, "a", 0));
        assert_ne!(draw(1, "a", 0), draw(2, "a", 0));
        assert_ne!(draw(1, "a", 0), draw(1, "b", 0));
        assert_ne!(draw(1, "a", 0), draw(1, "a", 1));
    }
}
