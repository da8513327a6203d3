//! Chance that can be had again.

use std::time::Duration;

/// Numbers that follow from a seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Another source, which does not depend on how much is drawn from this one.
    #[must_use]
    pub fn branch(&self, number: u64) -> Random {
        let mut branch = Random(self.0 ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        branch.draw();
        branch
    }

    /// A number below a bound, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.draw() % bound as u64).unwrap_or(0)
    }

    /// A time of up to so many milliseconds.
    pub fn milliseconds(&mut self, most: usize) -> Duration {
        Duration::from_millis(self.below(most + 1) as u64)
    }

    /// One of several.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        if all.is_empty() { None } else { all.get(self.below(all.len())) }
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..20).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_ne!(Random::new(7).branch(1).below(1 << 30), Random::new(7).branch(2).below(1 << 30));
    }
}
