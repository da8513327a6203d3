//! What a plan would do, without doing it.

use std::fmt;

use windlass_core::diff::Difference;
use windlass_core::{Action, Outcome, Plan};

use super::child::{Decision, name, shown};
use super::prune::Leftovers;
use super::{Executor, Failure, Parent};

/// One thing that would be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What: `update Deployment.apps web/nginx`.
    pub what: String,
    /// What would change by it.
    pub differences: Vec<Difference>,
}

/// One line, and one more for each difference.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for difference in &self.differences {
            write!(f, "\n    {difference}")?;
        }
        Ok(())
    }
}

impl Executor {
    /// What [`run`](Executor::run) would do with a plan. Reads, and writes nothing. What differs and needs no apply is not
    /// among the steps only as far as this process knows it.
    ///
    /// # Errors
    /// When it cannot be told what is there.
    pub async fn preview<K, E>(&self, parent: &Parent, plan: &Plan<K, E>) -> Result<Vec<Step>, Failure>
    where
        E: fmt::Display,
    {
        let mut steps = Vec::new();
        let mut note = |what: String, differences| steps.push(Step { what, differences });
        let finalizer = self.finalizer.as_ref().filter(|name| !parent.finalizers.contains(name));
        if parent.deleting && (self.finalizer.is_none() || finalizer.is_some()) {
            return Ok(steps);
        }
        if let Some(finalizer) = finalizer
            && !plan.actions.is_empty()
        {
            note(format!("add finalizer {finalizer}"), Vec::new());
        }
        let mut planned = Vec::new();
        let mut problem = None;
        for action in &plan.actions {
            match action {
                Action::Apply(child) => match self.preview_child(parent, child).await {
                    Ok((child, step)) => {
                        planned.push((child.kind, child.key));
                        step.into_iter().for_each(|step| note(step.what, step.differences));
                    }
                    Err(failure) if failure.is_lasting() => {
                        note(format!("refuse: {failure}"), Vec::new());
                        problem.get_or_insert(failure.problem());
                    }
                    Err(failure) => return Err(failure),
                },
                Action::Delete(delete) => {
                    note(format!("delete {} {}: {}", delete.kind, delete.key, delete.because), Vec::new());
                }
                Action::Effect(_) => {}
            }
        }
        let left = if plan.prunes() { self.leftovers(parent, &planned) } else { Leftovers::default() };
        for (kind, child) in &left.there {
            note(format!("delete {kind} {}: it left the plan", child.key), Vec::new());
        }
        if let Some(error) = &left.unknown {
            note(format!("leave children that left the plan: {error}"), Vec::new());
        }
        let mut effects = plan.actions.iter().filter_map(|action| match action {
            Action::Effect(effect) => Some(effect),
            _ => None,
        });
        if let Some(effect) = effects.next() {
            note(effect.to_string(), Vec::new());
        }
        let is_last = parent.deleting && plan.actions.is_empty() && plan.outcome == Outcome::AwaitChange;
        if is_last && left.there.is_empty() && left.going == 0 && left.unknown.is_none() {
            note(format!("remove finalizer {}", self.finalizer.as_deref().unwrap_or_default()), Vec::new());
            return Ok(steps);
        }
        if let Outcome::Terminal(terminal) = &plan.outcome {
            problem = Some(terminal.clone());
        }
        if let Some(wanted) = self.status(parent, plan.status.as_ref(), problem.as_ref()) {
            note(format!("set status of {} {}", parent.kind, parent.key), wanted.found);
        }
        Ok(steps)
    }

    async fn preview_child(
        &self,
        parent: &Parent,
        child: &windlass_core::Child,
    ) -> Result<(windlass_core::Child, Option<Step>), Failure> {
        let child = parent.adopt(child)?;
        let view = self.view(&child).await?;
        let (verb, differences) = match self.decide(parent, &child, &view)? {
            Decision::Same => return Ok((child, None)),
            Decision::Create => ("create", Vec::new()),
            Decision::Update { found, .. } => ("update", shown(&child.kind, found)),
            Decision::Wait => ("wait for the end of", Vec::new()),
        };
        let what = name(&child).replacen("apply", verb, 1);
        Ok((child, Some(Step { what, differences })))
    }
}
