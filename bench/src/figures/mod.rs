//! What is measured, one file each. Every number goes under its key; `rows` says what the keys mean.

pub mod etcd;
pub mod flat;
pub mod hooked;
pub mod hung;
pub mod in_process;
pub mod operator;
pub mod pods;
pub mod rates;
pub mod start;
pub mod watch;

use anyhow::{Context as _, Result};

use crate::Numbers;
use crate::server::Which;

/// How often each server is measured.
const ROUNDS: usize = 3;

/// Measures the servers in turns, and takes of each figure the one in the middle: the same program has reads at 18 µs in
/// one minute and at 26 µs in another, by what else the host of the machine does.
pub fn in_turns(
    sides: &mut [(Which, &mut Numbers)],
    measure: impl Fn(Which) -> Result<Numbers>,
) -> Result<()> {
    let mut all = vec![Vec::new(); sides.len()];
    for _ in 0..ROUNDS {
        for ((which, _), all) in sides.iter().zip(&mut all) {
            all.push(measure(*which).with_context(|| format!("{which:?}"))?);
        }
    }
    for ((_, numbers), all) in sides.iter_mut().zip(&all) {
        for key in all[0].keys() {
            numbers.insert(key, median(all.iter().map(|one| one[key]).collect()));
        }
    }
    Ok(())
}

/// The one in the middle.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn least(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::INFINITY, f64::min)
}
