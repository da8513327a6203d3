//! What is measured, one file each. Every number goes under its key; `rows` says what the keys mean.

pub mod etcd;
pub mod flat;
pub mod hung;
pub mod in_process;
pub mod operator;
pub mod pods;
pub mod rates;
pub mod start;
pub mod watch;

/// The one in the middle.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn least(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::INFINITY, f64::min)
}
