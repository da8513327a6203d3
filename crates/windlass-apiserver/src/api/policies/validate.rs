//! ValidatingAdmissionPolicies: what is refused, and what is only warned of.

use std::sync::Arc;

use serde_json::Value;

use super::compiled::{Annotation, Policy, Validation};
use super::{Server, seen};
use crate::api::conditions::{BUDGET, OUT_OF_BUDGET, hold, run};
use crate::api::matching::{Asking, list};
use crate::api::object::meta_str;
use crate::api::server::Call;
use crate::api::shown::Unshown;
use crate::api::webhooks::Write;
use crate::crd::{Answer, Evaluator, Given, OutOfBudget};
use crate::status::{self, Status};

/// How long a message may be that an expression gives, in bytes.
const MESSAGE_MAX: usize = 5 << 10;

/// Something that a policy does not like.
struct Denied {
    message: String,
    reason: String,
}

impl Denied {
    /// It could not be told.
    fn error(message: impl Into<String>) -> Denied {
        Denied { message: message.into(), reason: String::new() }
    }
}

/// What a policy says of one object of parameters.
#[derive(Default)]
struct Verdict {
    denied: Vec<Denied>,
    /// What is refused whatever the actions of the binding are.
    faults: Vec<Denied>,
}

/// Lets policies judge a write: warns, or refuses it with the first that is found.
pub(super) fn judge(
    server: &Server,
    call: &mut Call<'_>,
    own: Write<'_>,
    policies: &[Arc<Policy>],
) -> status::Result<()> {
    let mut refusal: Option<(String, String)> = None;
    let mut refuse = |policy: &Policy, binding: Option<&str>, denied: Denied| {
        let of = binding.map(|binding| format!(" with binding '{binding}'")).unwrap_or_default();
        let told =
            format!("ValidatingAdmissionPolicy '{}'{of} denied request: {}", policy.name, denied.message);
        refusal.get_or_insert((told, denied.reason));
    };
    for policy in policies {
        let (sees, bound) = match server.bindings_of(policy, call, own) {
            Ok(bound) => bound,
            Err(why) => {
                if policy.fails() {
                    refuse(policy, None, Denied::error(format!("failed to configure policy: {why}")));
                }
                continue;
            }
        };
        let (mut shown, mut request) = (None, None);
        for (binding, params) in bound {
            let (name, spec) = (meta_str(binding, "name"), &binding["spec"]);
            let params = match params {
                Ok(params) => params,
                Err(why) => {
                    if policy.fails() {
                        let why = format!("failed to configure binding: {why}");
                        refuse(policy, Some(name), Denied::error(why));
                    }
                    continue;
                }
            };
            if let (Some(other), None, false) = (&sees, &shown, params.is_empty()) {
                shown = match server.show(call, own, other) {
                    Ok(shown) => Some(shown),
                    Err(Unshown::Asking) => return Err(Status::put_aside()),
                    Err(Unshown::Failed(why)) => {
                        if policy.fails() {
                            let why = format!(
                                "failed to configure binding: failed to convert object version: {why}"
                            );
                            refuse(policy, Some(name), Denied::error(why));
                        }
                        continue;
                    }
                };
            }
            let write = shown.as_ref().map_or(own, |shown| shown.write(own));
            let request = request.get_or_insert_with(|| seen(server.request(call, write)));
            let namespace = server.namespace_object(call, write)?;
            let asking = Asking::new(server, call, write);
            let mut verdicts = Vec::new();
            for params in &params {
                let given = Given {
                    object: write.object.unwrap_or(&Value::Null),
                    old: write.old.unwrap_or(&Value::Null),
                    request,
                    params,
                    namespace: &namespace,
                    authorizer: Some((&asking, &asking.about)),
                };
                verdicts.push(policy.judge(given));
            }
            for verdict in verdicts {
                for denied in verdict.denied {
                    for action in list(spec, "validationActions") {
                        match action.as_str() {
                            Some("Deny") => refuse(
                                policy,
                                Some(name),
                                Denied { message: denied.message.clone(), reason: denied.reason.clone() },
                            ),
                            Some("Warn") => call.warnings.push(format!(
                                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{name}': {}",
                                policy.name, denied.message
                            )),
                            _ => {}
                        }
                    }
                }
                verdict.faults.into_iter().for_each(|fault| refuse(policy, Some(name), fault));
            }
        }
    }
    refusal.map_or(Ok(()), |(message, reason)| Err(refused(call, own, &message, &reason)))
}

/// A refusal. The policy may say what kind of refusal it is.
fn refused(call: &Call<'_>, write: Write<'_>, message: &str, reason: &str) -> Status {
    let (reason, code) = match reason {
        "Forbidden" => ("Forbidden", 403),
        "Unauthorized" => ("Unauthorized", 401),
        "RequestEntityTooLarge" => ("RequestEntityTooLarge", 413),
        _ => ("Invalid", 422),
    };
    let mut status = write.forbidden(call, message).cause("", message, "");
    (status.reason, status.code) = (reason.into(), code);
    status
}

impl Policy {
    fn judge(&self, given: Given<'_>) -> Verdict {
        let failed = |message: String| {
            let denied = if self.fails() { vec![Denied::error(message)] } else { Vec::new() };
            Verdict { denied, ..Verdict::default() }
        };
        // Conditions see no namespace.
        let conditions = Given { namespace: &Value::Null, ..given };
        match hold(&self.conditions, &self.plain, conditions) {
            Ok(true) => {}
            Ok(false) => return Verdict::default(),
            Err(why) => return failed(why),
        }
        let evaluator = Evaluator::new(&self.environment, given, BUDGET);
        let answers: Result<Vec<_>, OutOfBudget> =
            self.validations.iter().map(|one| run(&one.expression, &evaluator)).collect();
        let Ok(answers) = answers else { return failed(OUT_OF_BUDGET.to_owned()) };
        let unasked = Given { authorizer: None, ..given };
        let messages = Evaluator::new(&self.environment, unasked, evaluator.left());
        let told: Result<Vec<_>, OutOfBudget> = self
            .validations
            .iter()
            .map(|one| one.message_expression.as_ref().map(|message| run(message, &messages)).transpose())
            .collect();
        let mut verdict = Verdict::default();
        for (index, (validation, answer)) in self.validations.iter().zip(answers).enumerate() {
            let error = match (answer, &told) {
                (Err(why), _) => why,
                (Ok(_), Err(OutOfBudget)) => format!("failed messageExpression: {OUT_OF_BUDGET}"),
                (Ok(Answer::Bool(true)), _) => continue,
                (Ok(_), Ok(told)) => {
                    let message = validation.message(told[index].as_ref());
                    let reason = validation.reason.clone();
                    verdict.denied.push(Denied { message, reason });
                    continue;
                }
            };
            if self.fails() {
                verdict.denied.push(Denied::error(error));
            }
        }
        match self.annotate(unasked) {
            Ok(faults) => verdict.faults = faults,
            Err(OutOfBudget) => return failed(OUT_OF_BUDGET.to_owned()),
        }
        verdict
    }

    /// What is wrong with annotations.
    fn annotate(&self, given: Given<'_>) -> Result<Vec<Denied>, OutOfBudget> {
        let evaluator = Evaluator::new(&self.environment, given, BUDGET);
        let mut faults = Vec::new();
        for Annotation { source, expression } in &self.annotations {
            match run(expression, &evaluator)? {
                Ok(Answer::Text(_) | Answer::Null) => {}
                Ok(Answer::Bool(_)) => faults.push(unsupported(source, "bool")),
                Ok(Answer::Other(ty)) => faults.push(unsupported(source, ty)),
                Ok(Answer::Object(_) | Answer::Patches(_)) => faults.push(unsupported(source, "object")),
                Err(why) if self.fails() => faults.push(Denied::error(why)),
                Err(_) => {}
            }
        }
        Ok(faults)
    }
}

fn unsupported(source: &str, ty: &str) -> Denied {
    Denied::error(format!(
        "valueExpression '{source}' resulted in unsupported return type: {ty}. Return type must be either string or null."
    ))
}

impl Validation {
    /// What is said when it does not hold.
    fn message(&self, told: Option<&Result<Answer, String>>) -> String {
        let usable = |text: &str| text.len() <= MESSAGE_MAX && !text.is_empty() && !text.contains('\n');
        match (told, self.message.trim()) {
            (Some(Ok(Answer::Text(text))), _) if usable(text.trim()) => text.trim().to_owned(),
            (_, "") => format!("failed expression: {}", self.source.trim()),
            (_, message) => message.to_owned(),
        }
    }
}
