//! MutatingAdmissionPolicies: what is changed before anybody outside is asked.

use std::sync::Arc;

use serde_json::{Value, json};

use super::compiled::{Mutation, Policy};
use super::{Server, seen};
use crate::api::conditions::{BUDGET, OUT_OF_BUDGET, hold};
use crate::api::decode;
use crate::api::matching::Asking;
use crate::api::object::meta_str;
use crate::api::registry::{Flavor, Resource, split_api_version};
use crate::api::server::Call;
use crate::api::shown::{Seen, Unshown};
use crate::api::webhooks::{Operation, Write};
use crate::codec::Parsed;
use crate::crd::{Answer, Evaluator, Given, OutOfBudget};
use crate::json::str_at;
use crate::managed;
use crate::patch::{PatchError, json_patch};
use crate::status::{self, Status};

/// What policies did in a round.
#[derive(Default)]
pub(in crate::api) struct Applied {
    is_any: bool,
    /// What wants to see what others changed after it.
    again: Vec<String>,
}

impl Applied {
    /// Whether anything was applied.
    pub fn is_any(&self) -> bool {
        self.is_any
    }
}

/// A policy, a binding and an object of parameters that concern a write.
struct Invocation<'p> {
    policy: &'p Policy,
    binding: &'p str,
    params: Value,
    /// The version that the policy wants to see, if it is another one.
    sees: Option<Arc<Resource>>,
}

impl Invocation<'_> {
    fn key(&self) -> String {
        let of = |key: &str| meta_str(&self.params, key);
        format!("{}/{}/{}/{}", self.policy.name, self.binding, of("namespace"), of("name"))
    }
}

/// Why a mutation could not be made.
enum Failure {
    /// The policy is at fault.
    Policy(String),
    /// The request ends.
    Request(Status),
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure::Policy(why)
    }
}

/// A fault of a policy, and the reason of the refusal, if it has one.
struct Fault<'p> {
    policy: &'p Policy,
    binding: Option<String>,
    why: String,
    reason: &'static str,
}

impl Server {
    /// Lets policies change an object. In a second round only those are asked that want to be, and were in the first.
    pub(in crate::api) fn change(
        &self,
        call: &mut Call<'_>,
        write: Write<'_>,
        tree: &mut Value,
        before: Option<&Applied>,
    ) -> status::Result<Applied> {
        let mut applied = Applied::default();
        let policies: Vec<Arc<Policy>> = match self.is_judged(call, write) {
            true => self.policies.mutating.to_vec(),
            false => return Ok(applied),
        };
        let mut faults = Vec::new();
        let invocations = self.invocations(call, write.of(tree), &policies, &mut faults)?;
        let mut seen = Seen::default();
        for invocation in &invocations {
            let Invocation { policy, sees, .. } = invocation;
            self.turn(call, write, tree, &mut seen, sees.as_ref()).map_err(unconverted)?;
            match self.meets_conditions(call, seen.write(write.of(tree)), invocation) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    faults.push(fault(invocation, why));
                    continue;
                }
            }
            let key = invocation.key();
            if before.is_some_and(|before| !before.again.contains(&key)) {
                continue;
            }
            for mutation in &policy.mutations {
                match self.mutation(call, seen.write(write.of(tree)), invocation, mutation) {
                    Ok(changed) => {
                        seen.put(tree, changed);
                        applied.is_any = true;
                    }
                    Err(Failure::Policy(why)) => faults.push(fault(invocation, why)),
                    Err(Failure::Request(status)) => return Err(status),
                }
            }
            if str_at(&policy.spec, &["reinvocationPolicy"]) == "IfNeeded" {
                applied.again.push(key);
            }
        }
        self.turn_back(call, write, tree, &mut seen).map_err(unconverted)?;
        faults.retain(|fault| fault.policy.fails());
        if faults.is_empty() { Ok(applied) } else { Err(refused(call, write.of(tree), &faults)) }
    }

    fn invocations<'p>(
        &self,
        call: &mut Call<'_>,
        write: Write<'_>,
        policies: &'p [Arc<Policy>],
        faults: &mut Vec<Fault<'p>>,
    ) -> status::Result<Vec<Invocation<'p>>> {
        let mut out = Vec::new();
        for policy in policies {
            let (sees, bound) = match self.bindings_of(policy, call, write) {
                Ok(bound) => bound,
                Err(why) => {
                    let why = format!("failed to configure policy: {why}");
                    faults.push(Fault { policy, binding: None, why, reason: "" });
                    continue;
                }
            };
            for (binding, params) in bound {
                match sees.as_ref().map(|other| self.show(call, write, other)).transpose() {
                    Ok(_) => {}
                    Err(Unshown::Asking) => return Err(Status::put_aside()),
                    Err(Unshown::Failed(why)) => {
                        let why = format!("failed to configure policy: {why}");
                        faults.push(Fault { policy, binding: None, why, reason: "" });
                        continue;
                    }
                }
                let binding = meta_str(binding, "name");
                match params {
                    Ok(all) => out.extend(all.into_iter().map(|params| {
                        let sees = sees.clone();
                        Invocation { policy, binding, params, sees }
                    })),
                    Err(why) => {
                        let (binding, why) =
                            (Some(binding.to_owned()), format!("failed to configure binding: {why}"));
                        faults.push(Fault { policy, binding, why, reason: "" });
                    }
                }
            }
        }
        Ok(out)
    }

    fn meets_conditions(
        &self,
        call: &Call<'_>,
        write: Write<'_>,
        invocation: &Invocation<'_>,
    ) -> Result<bool, String> {
        let Invocation { policy, params, .. } = invocation;
        if policy.conditions.is_empty() {
            return Ok(true);
        }
        let (request, asking) = (seen(self.request(call, write)), Asking::new(self, call, write));
        let given = Given {
            object: write.object.unwrap_or(&Value::Null),
            old: write.old.unwrap_or(&Value::Null),
            request: &request,
            params,
            namespace: &Value::Null,
            authorizer: Some((&asking, &asking.about)),
        };
        match hold(&policy.conditions, &policy.plain, given) {
            // Where nobody can tell, a policy that may fail does nothing.
            Err(_) if !policy.fails() => Ok(false),
            held => held,
        }
    }

    /// The object as a mutation makes it.
    fn mutation(
        &self,
        call: &Call<'_>,
        write: Write<'_>,
        invocation: &Invocation<'_>,
        mutation: &Mutation,
    ) -> Result<Value, Failure> {
        let (resource, tree) = (write.shape, write.object.unwrap_or(&Value::Null));
        let (request, asking) = (seen(self.request(call, write)), Asking::new(self, call, write));
        let namespace = self.namespace_object(call, write).map_err(Failure::Request)?;
        let given = Given {
            object: tree,
            old: write.old.unwrap_or(&Value::Null),
            request: &request,
            params: &invocation.params,
            namespace: &namespace,
            authorizer: Some((&asking, &asking.about)),
        };
        let expression = mutation.expression.as_ref().map_err(Clone::clone)?;
        let evaluator = Evaluator::new(&invocation.policy.environment, given, BUDGET);
        let answer = evaluator.run(expression).map_err(|OutOfBudget| OUT_OF_BUDGET.to_owned())??;
        let internal = |why: &str| Status::internal(why);
        let changed = match answer {
            // The options of connections are in no schema.
            Answer::Object(_) if write.operation == Operation::Connect => {
                return Err(untyped(&resource.api_version(), &resource.kind));
            }
            // Nor is what a mutation before this one called something else.
            Answer::Object(_) if resource.is_custom() && !is_of(resource, tree) => {
                return Err(untyped(str_at(tree, &["apiVersion"]), str_at(tree, &["kind"])));
            }
            Answer::Object(config) => {
                let mut config = config?;
                (config["apiVersion"], config["kind"]) =
                    (json!(resource.api_version()), json!(resource.kind));
                let (types, root) = resource.types();
                let schema = managed::Schema { types, root, custom: resource.is_custom(), versions: &[] };
                managed::overlay(&schema, tree, &config)
                    .map_err(|why| format!("error applying patch: {why}"))?
            }
            Answer::Patches(steps) => {
                let mut changed = tree.clone();
                match json_patch(&mut changed, &Value::Array(steps?)) {
                    Ok(()) => changed,
                    // A test that fails says that there is nothing to do.
                    Err(PatchError::Rejected(why)) if why.contains("test failed") => {
                        return Ok(tree.clone());
                    }
                    Err(why) => return Err(Failure::Policy(format!("JSON Patch: {why}"))),
                }
            }
            _ => return Err(Failure::Policy("it gives no change".to_owned())),
        };
        if let Flavor::Custom { definition, .. } = &resource.flavor {
            let left = decode::as_left(definition, changed);
            return left.map_err(|why| Failure::Request(internal(&why)));
        }
        let changed = decode::check_type(resource, Parsed::from(changed))
            .map_err(|why| Failure::Request(internal(&why)))?;
        let mut unknown = Vec::new();
        let conformed = decode::conform_or(resource, changed, &mut unknown, internal);
        if !unknown.is_empty() {
            let all: Vec<String> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
            let why = format!("strict decoding error: {}", all.join(", "));
            return Err(Failure::Request(Status::internal(&why)));
        }
        conformed.map_err(Failure::Request)
    }
}

/// Whether an object says that it is one of this resource.
fn is_of(resource: &Resource, tree: &Value) -> bool {
    let has = |field| str_at(tree, &[field]);
    has("apiVersion") == resource.api_version() && has("kind") == &*resource.kind
}

/// Nobody knows the fields of what is to be laid over such an object.
fn untyped(api_version: &str, kind: &str) -> Failure {
    let (group, version) = split_api_version(api_version);
    let what = format!("no corresponding type for {group}/{version}, Kind={kind}");
    Failure::Policy(format!("error applying patch: failed to convert patch object to typed object: {what}"))
}

fn unconverted(unshown: Unshown) -> Status {
    unshown.end(|why| Status::internal(&format!("failed to convert object: {why}")))
}

fn fault<'p>(invocation: &Invocation<'p>, why: String) -> Fault<'p> {
    Fault { policy: invocation.policy, binding: Some(invocation.binding.to_owned()), why, reason: "Invalid" }
}

/// A refusal that names all that went wrong.
fn refused(call: &Call<'_>, write: Write<'_>, faults: &[Fault<'_>]) -> Status {
    let mut status = write.forbidden(call, "admission request denied by policy");
    for (index, fault) in faults.iter().enumerate() {
        let (name, why) = (&fault.policy.name, &fault.why);
        let told = match &fault.binding {
            Some(binding) => format!("policy '{name}' with binding '{binding}' denied request: {why}"),
            None => format!("policy {name:?} denied request: {why}"),
        };
        if index == 0 {
            status.message.clone_from(&told);
            if !fault.reason.is_empty() {
                status.reason = fault.reason.into();
            }
        }
        status = status.cause("", told, "");
    }
    status
}
