//! Pods are asked to leave: `pods/<name>/eviction`, which disruption budgets may refuse.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_core::select::LabelSelector;

use super::bind::done;
use super::create::place;
use super::delete::DeleteOptions;
use super::object::meta_str;
use super::options::WriteOptions;
use super::registry::Resource;
use super::response::Response;
use super::server::{Call, Server};
use super::webhooks::{Operation, Write};
use crate::codec;
use crate::field::{Errors, Path};
use crate::json::{at, object_entry, str_at};
use crate::kinds::{meta, pod::conditions};
use crate::status::{Result, Status};
use crate::store::Object;

/// How many evictions may wait for the controller of budgets to notice them.
const DISRUPTED_MAX: usize = 2000;

/// What an eviction asks for.
struct Eviction {
    options: DeleteOptions,
    /// What is wrong with the options, which is only told when the pod is about to be deleted.
    faults: Errors,
}

/// What the budgets say to an eviction.
enum Verdict {
    /// The pod may go.
    Free,
    /// The pod may go as long as it is as this budget looked at it: it serves nobody.
    Unhealthy(String),
}

impl Server {
    /// An Eviction: the pod is deleted, if its disruption budget allows it.
    pub(super) fn evict(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let pods = call.target.resource.clone();
        let write = WriteOptions::parse(call.query, &call.user_agent(), "CreateOptions")?;
        let evictions = evictions(call);
        let mut body = super::decode::body(call, &evictions, write.validation)?;
        meta::wipe_system_fields(&mut body);
        place(&mut body, &pods, &call.target.namespace)?;
        let admitted = Write::new(Operation::Create, &pods, None, write.dry_run).shaped(&evictions);
        self.admit(call, admitted, &mut body)?;
        let mut eviction = asked(&body, call)?;
        self.validate(call, admitted.of(&body))?;
        let found = self.store.get(&pods.storage, &call.target.namespace, &call.target.name).cloned();
        let current = found.ok_or_else(|| Status::not_found("", "pods", &call.target.name))?;
        let tree = self.load(&pods, &current);
        // What has ended, has not begun or is on its way is no disruption.
        let verdict = match is_idle(&tree) {
            true => Verdict::Free,
            false => self.ask_budget(call, &tree, eviction.options.dry_run)?,
        };
        let Verdict::Unhealthy(budget) = verdict else {
            self.evict_pod(call, &pods, &current, tree, eviction)?;
            return Ok(done(call));
        };
        let revision = meta_str(&tree, "resourceVersion").to_owned();
        let asked = eviction.options.revision.replace(revision);
        let evicted = self.evict_pod(call, &pods, &current, tree, eviction);
        evicted.map_err(|status| match status.reason == "Conflict" && asked.is_none() {
            // Whoever did not ask for that very pod may try again.
            true => in_process(&budget),
            false => status,
        })?;
        Ok(done(call))
    }

    /// Says in the pod why it goes, and deletes it.
    fn evict_pod(
        &mut self,
        call: &mut Call<'_>,
        pods: &Arc<Resource>,
        current: &Arc<Object>,
        mut tree: Value,
        eviction: Eviction,
    ) -> Result<()> {
        let Eviction { mut options, faults } = eviction;
        let mut object = current.clone();
        if !options.dry_run {
            options.check_preconditions(&tree, pods)?;
            let condition = json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            });
            conditions::set(&mut tree, condition, call.now);
            object = self.put(pods, Some(current), tree, false)?;
            // It was that revision; the one of now is our own doing.
            options.revision = None;
        }
        if !faults.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", faults));
        }
        self.delete_object(call, pods, &object, &options)?;
        Ok(())
    }

    /// Asks the disruption budget of the pod, and takes one disruption from it.
    fn ask_budget(&mut self, call: &mut Call<'_>, pod: &Value, dry_run: bool) -> Result<Verdict> {
        let budgets = self.registry.find("policy", "v1", "poddisruptionbudgets").expect("in the table");
        let snapshot = self.store.list(&budgets.storage);
        let labels = at(pod, &["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut mine = snapshot.range(Some(meta_str(pod, "namespace")), None).filter(|budget| {
            let selector = self.load(&budgets, budget)["spec"].get("selector").cloned();
            LabelSelector::from_object(selector.as_ref()).is_ok_and(|selector| selector.matches(&labels))
        });
        let Some(current) = mine.next().cloned() else { return Ok(Verdict::Free) };
        if mine.next().is_some() {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::new(500, "", message));
        }
        let old = self.load(&budgets, &current);
        if !conditions::is_ready(pod) && spares_unhealthy(&old) {
            return Ok(Verdict::Unhealthy(meta_str(&old, "name").to_owned()));
        }
        check(&old)?;
        if !dry_run {
            let mut tree = old.clone();
            disrupt(&mut tree, meta_str(pod, "name"), call.now);
            self.write_status(call, &budgets, &current, &old, tree)?;
        }
        Ok(Verdict::Free)
    }
}

/// Evictions of the older version are understood, too.
fn evictions(call: &Call<'_>) -> Resource {
    let format = super::negotiate::input(&call.request.headers).unwrap_or(codec::Format::Json);
    let older = format != codec::Format::Protobuf
        && codec::parse(&call.request.body, format)
            .is_ok_and(|body| str_at(&body.value, &["apiVersion"]) == "policy/v1beta1");
    let version = if older { "v1beta1" } else { "v1" };
    Resource::of_type("policy", version, "Eviction", "io.k8s.api.policy.v1.Eviction")
}

/// What the body asks for, together with what the query says of a dry run.
fn asked(body: &Value, call: &Call<'_>) -> Result<Eviction> {
    let name = call.target.name.as_str();
    if meta_str(body, "name") != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let given = body.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    let unsafe_option = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if given.get(unsafe_option).and_then(Value::as_bool) == Some(true) {
        let mut errors = Errors::default();
        let path = Path::Root.child("deleteOptions");
        let why = "can not be set for pod eviction, try after removing the option";
        errors.invalid(&path.child(unsafe_option), &json!(true), why);
        return Err(Status::invalid("policy", "Eviction", name, errors));
    }
    let mut faults = Errors::default();
    let mut options = DeleteOptions::of(&given, &mut faults);
    options.check(&mut faults);
    let wanted = call.query.all("dryRun");
    let own: Vec<&str> = given
        .get("dryRun")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !wanted.is_empty() && !own.is_empty() && wanted != own {
        let message = format!(
            "Non-matching dry-run options in request and content: [{}] and [{}]",
            wanted.join(" "),
            own.join(" ")
        );
        return Err(Status::new(500, "", message));
    }
    options.dry_run |= !wanted.is_empty();
    Ok(Eviction { options, faults })
}

/// Whether no budget is asked.
fn is_idle(pod: &Value) -> bool {
    matches!(str_at(pod, &["status", "phase"]), "Succeeded" | "Failed" | "Pending")
        || at(pod, &["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null())
}

fn count(budget: &Value, field: &str) -> i64 {
    at(budget, &["status", field]).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether a pod that is not ready may go without taking a disruption.
fn spares_unhealthy(budget: &Value) -> bool {
    let desired = count(budget, "desiredHealthy");
    str_at(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow"
        || (count(budget, "currentHealthy") >= desired && desired > 0)
}

/// Refuses what the budget does not allow.
fn check(budget: &Value) -> Result<()> {
    let name = meta_str(budget, "name");
    let forbidden = |why: &str| Err(Status::forbidden("policy", "poddisruptionbudget", name, why));
    let generation = at(budget, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
    if count(budget, "observedGeneration") < generation {
        return Err(in_process(name));
    }
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    let disrupted = at(budget, &["status", "disruptedPods"]).and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > DISRUPTED_MAX) {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed > 0 { Ok(()) } else { Err(too_many(why_not(budget))) }
}

/// A budget that is not settled yet.
fn in_process(name: &str) -> Status {
    too_many(format!("The disruption budget {name} is still being processed by the server.")).retry_after(10)
}

fn too_many(why: String) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    Status::new(429, "TooManyRequests", message).cause("DisruptionBudget", why, "")
}

fn why_not(budget: &Value) -> String {
    let name = meta_str(budget, "name");
    let (desired, healthy) = (count(budget, "desiredHealthy"), count(budget, "currentHealthy"));
    let conditions = at(budget, &["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
    let mut denied = conditions.filter(|condition| {
        condition["type"] == "DisruptionAllowed"
            && condition["status"] == "False"
            && !str_at(condition, &["message"]).is_empty()
    });
    let denied =
        denied.next().map(|condition| (str_at(condition, &["reason"]), str_at(condition, &["message"])));
    let cannot = format!("The disruption budget {name} does not allow evicting pods currently");
    match denied {
        Some(("SyncFailed", message)) => format!("{cannot} because it failed sync: {message}"),
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some((reason, message)) => format!("{cannot} ({reason}): {message}"),
        None => cannot,
    }
}

/// Takes one disruption, for this pod.
fn disrupt(budget: &mut Value, pod: &str, now: jiff::Timestamp) {
    let left = count(budget, "disruptionsAllowed") - 1;
    let observed = at(budget, &["status", "observedGeneration"]).cloned();
    let time = json!(crate::kinds::seconds(now));
    let object = budget.as_object_mut().expect("objects are JSON objects");
    let status = object_entry(object, "status");
    status.insert("disruptionsAllowed".into(), json!(left));
    object_entry(status, "disruptedPods").insert(pod.to_owned(), time.clone());
    if left > 0 {
        return;
    }
    let mut condition = json!({
        "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
        "lastTransitionTime": time,
    });
    if let Some(observed) = observed {
        condition["observedGeneration"] = observed;
    }
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|condition| condition["type"] == "DisruptionAllowed") {
        Some(had) => {
            if had["status"] == condition["status"] {
                condition["lastTransitionTime"] = had["lastTransitionTime"].clone();
            }
            *had = condition;
        }
        None => conditions.push(condition),
    }
}
