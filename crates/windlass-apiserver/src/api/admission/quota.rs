//! ResourceQuota: a namespace has no more than its quotas allow, and they say how much it has.
//!
//! Whoever asks for something is charged before it is written, in the same step. As with kube-apiserver, somebody who is then
//! told that the name is taken was charged all the same: the controller of quotas counts anew.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_core::amounts::{Amounts, add, amounts};
use windlass_core::quota::{Classes, Evaluator, World, ends_by_itself};

use super::{Admission, Operation};
use crate::api::object::meta_str;
use crate::api::server::{Call, Server};
use crate::api::webhooks::Write;
use crate::codec::Quantity;
use crate::kinds::tree::sub;
use crate::status::Result;
use crate::store::Kind;

/// The name of the plugin.
pub(super) const NAME: &str = "ResourceQuota";

static QUOTAS: LazyLock<Kind> = LazyLock::new(|| Kind::new("", "resourcequotas"));

impl Server {
    /// Refuses what no quota has room for, and charges for the rest.
    pub(in crate::api) fn charge(&mut self, call: &mut Call<'_>, write: Write<'_>) -> Result<()> {
        let namespace = call.target.namespace.as_str();
        if namespace.is_empty() || !self.config.plugins.has(NAME) {
            return Ok(());
        }
        let found: Vec<_> = self.store.list(&QUOTAS).range(Some(namespace), None).cloned().collect();
        let Some(object) = write.object.filter(|_| !found.is_empty()) else { return Ok(()) };
        let resource = self.registry.find("", "v1", "resourcequotas").expect("in the table");
        let quotas: Vec<Value> = found.iter().map(|quota| self.load(&resource, quota)).collect();
        let used = self.with(call, write, |_, admission| check(&quotas, object, admission))?;
        if write.dry_run {
            return Ok(());
        }
        for (index, used) in used {
            let mut tree = quotas[index].clone();
            let used = used.iter().map(|(name, amount)| (name.clone(), json!(amount.to_string())));
            sub(&mut tree, "status")["used"] = used.collect::<serde_json::Map<_, _>>().into();
            self.write_status(call, &resource, &found[index], &quotas[index], tree)?;
        }
        Ok(())
    }
}

/// What quotas will have used; only of those that change.
fn check(quotas: &[Value], object: &Value, admission: &Admission<'_>) -> Result<BTreeMap<usize, Amounts>> {
    let mut charged = BTreeMap::new();
    let context = &admission.context;
    let classes = || Classes::of(&context.world.list("resource.k8s.io", "DeviceClass", ""));
    let evaluator = Evaluator::of(context.group, context.resource, classes);
    let Some(evaluator) = evaluator.filter(|evaluator| concerns(evaluator, object, admission)) else {
        return Ok(charged);
    };
    let mut interested = Vec::new();
    for (index, quota) in quotas.iter().enumerate() {
        let (hard, used) = (amounts(&quota["status"], "hard"), amounts(&quota["status"], "used"));
        let restricted: Vec<&str> =
            hard.keys().map(String::as_str).filter(|name| evaluator.counts(name)).collect();
        if restricted.is_empty() || !evaluator.is_in_scope(quota, object) {
            continue;
        }
        let name = meta_str(quota, "name");
        if let Some(why) = evaluator.lacks(&restricted, object) {
            return Err(admission.refuse(object, &format!("failed quota: {name}: {why}")));
        }
        if restricted.iter().any(|name| !used.contains_key(*name)) {
            let why = format!("status unknown for quota: {name}, resources: {}", restricted.join(","));
            return Err(admission.refuse(object, &why));
        }
        interested.push((index, hard, used));
    }
    let usage = evaluator.usage(object, admission);
    let below: Vec<&str> =
        usage.iter().filter(|(_, amount)| amount.signum() < 0).map(|(name, _)| name.as_str()).collect();
    if !below.is_empty() {
        let why = format!("quota usage is negative for resource(s): {}", below.join(","));
        return Err(admission.refuse(object, &why));
    }
    let before = admission.old.filter(|_| admission.operation == Operation::Update);
    for (index, hard, used) in interested {
        let was_in_scope = before.filter(|old| evaluator.is_in_scope(&quotas[index], old));
        let more = match was_in_scope {
            Some(old) => beyond(&usage, &evaluator.usage(old, admission)),
            None => usage.clone(),
        };
        let more: Amounts =
            more.into_iter().filter(|(name, amount)| !amount.is_zero() && hard.contains_key(name)).collect();
        let mut sum = used.clone();
        add(&mut sum, &more);
        let exceeded: Vec<&str> =
            more.keys().map(String::as_str).filter(|name| sum[*name] > hard[*name]).collect();
        if !exceeded.is_empty() && admission.context.subresource != "status" {
            let why = format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                meta_str(&quotas[index], "name"),
                told(&more, &exceeded),
                told(&used, &exceeded),
                told(&hard, &exceeded),
            );
            return Err(admission.refuse(object, &why));
        }
        if sum != used {
            charged.insert(index, sum);
        }
    }
    Ok(charged)
}

/// Whether a write can change anything of what is counted.
fn concerns(evaluator: &Evaluator, object: &Value, admission: &Admission<'_>) -> bool {
    let (operation, subresource) = (admission.operation, admission.context.subresource);
    match (evaluator, operation, subresource) {
        (_, Operation::Delete, _) => false,
        (_, Operation::Create, "") => true,
        (Evaluator::Pods, Operation::Update, "") => {
            admission.old.is_some_and(|old| ends_by_itself(old) != ends_by_itself(object))
        }
        (Evaluator::Pods, Operation::Update, "resize") => true,
        (Evaluator::Services | Evaluator::DeviceClaims(_), Operation::Update, "") => true,
        (Evaluator::Claims, Operation::Update, "" | "status") => true,
        _ => false,
    }
}

impl World for Admission<'_> {
    fn now(&self) -> Timestamp {
        self.context.now
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Value> {
        self.context.world.get("", "Pod", namespace, name)
    }

    fn device_claims(&self, namespace: &str) -> Vec<Value> {
        self.context.world.list("resource.k8s.io", "ResourceClaim", namespace)
    }
}

/// How much more something is than it was; never less than nothing.
fn beyond(now: &Amounts, before: &Amounts) -> Amounts {
    let zero = Quantity::from_i64(0);
    let of = |(name, amount): (&String, &Quantity)| {
        let more = before.get(name).map_or_else(|| amount.clone(), |before| amount - before);
        (name.clone(), if more > zero { more } else { zero.clone() })
    };
    now.iter().map(of).collect()
}

/// Some of the amounts, by name.
fn told(amounts: &Amounts, names: &[&str]) -> String {
    let told = names.iter().filter_map(|name| amounts.get(*name).map(|amount| format!("{name}={amount}")));
    told.collect::<Vec<_>>().join(",")
}
