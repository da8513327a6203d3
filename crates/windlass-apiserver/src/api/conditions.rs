//! Conditions in CEL: what a webhook or a policy wants to hold before it is asked at all.

use crate::crd::{Answer, Environment, Evaluator, Expression, Given, OutOfBudget};

/// How much all that a policy evaluates at once may cost, as in kube-apiserver.
pub(super) const BUDGET: u64 = 10_000_000;
/// The same for the conditions of one holder.
const CONDITIONS_BUDGET: u64 = BUDGET / 4;

/// What is said when the budget is used up.
pub(super) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// An expression, or why it does not compile.
pub(super) type Compiled = Result<Expression, String>;

/// Whether conditions hold: one that does not is enough, even where another one cannot be told.
pub(super) fn hold<'a>(
    conditions: &'a [Compiled],
    environment: &'a Environment,
    given: Given<'a>,
) -> Result<bool, String> {
    let evaluator = Evaluator::new(environment, given, CONDITIONS_BUDGET);
    let mut failed: Vec<String> = Vec::new();
    let answers: Result<Vec<_>, OutOfBudget> =
        conditions.iter().map(|condition| run(condition, &evaluator)).collect();
    for answer in answers.map_err(|OutOfBudget| OUT_OF_BUDGET.to_owned())? {
        match answer {
            Ok(Answer::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(why) => failed.push(why),
        }
    }
    // The same fault is told once.
    let mut told: Vec<String> = Vec::new();
    failed.into_iter().for_each(|why| {
        if !told.contains(&why) {
            told.push(why)
        }
    });
    match &told[..] {
        [] => Ok(true),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// Runs an expression, if there is one to run.
pub(super) fn run<'a>(
    compiled: &'a Compiled,
    evaluator: &Evaluator<'a>,
) -> Result<Result<Answer, String>, OutOfBudget> {
    match compiled {
        Ok(expression) => evaluator.run(expression),
        Err(why) => Ok(Err(format!("compilation error: {why}"))),
    }
}
