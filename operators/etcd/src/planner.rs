//! The planner: what a pass does, from the parts.

use std::time::Duration;

use kube::ResourceExt as _;
use windlass::core::Plan;
use windlass::events::Event;
use windlass::jiff::Timestamp;
use windlass::{Context, Error, Planner};

use crate::api::{CLUSTER_FINALIZER, EtcdCluster, ReclaimPolicy, validate};
use crate::effects::{self, Effect};
use crate::metrics::Meters;
use crate::observe::{self, Seen, Volume};
use crate::plan::{Action, Decision, View, decide};
use crate::{build, status};

/// Decides for a cluster and all its members.
#[derive(Debug)]
pub struct EtcdPlanner;

/// While a cluster goes, its pods are waited for this long at a time.
const GOING: Duration = Duration::from_secs(2);

impl Planner for EtcdPlanner {
    type Object = EtcdCluster;
    type Observed = Seen;
    type Effect = Effect;

    const FINALIZER: Option<&'static str> = Some(CLUSTER_FINALIZER);

    async fn observe(&self, ctx: &Context, cluster: &EtcdCluster) -> Result<Seen, Error> {
        let meters = ctx.state::<Meters>();
        if cluster.metadata.deletion_timestamp.is_some() {
            meters.forget(cluster);
            let objects = observe::Objects::read(ctx, cluster)?;
            let view = observe::Observed { members: objects.members(cluster), list: None, local: None };
            return Ok(Seen { view, objects });
        }
        let seen = observe::observe(ctx, cluster).await?;
        let decision = decision(cluster, &seen, ctx.now());
        meters.saw(cluster, &seen.view, &decision);
        tell(ctx, cluster, &decision);
        Ok(seen)
    }

    fn plan(&self, cluster: &EtcdCluster, seen: &Seen, now: Timestamp) -> Plan<EtcdCluster, Effect> {
        plan(cluster, seen, now)
    }

    fn cleanup(&self, cluster: &EtcdCluster, seen: &Seen, _: Timestamp) -> Plan<EtcdCluster, Effect> {
        cleanup(cluster, seen)
    }

    async fn perform(&self, ctx: &Context, cluster: &EtcdCluster, effect: &Effect) -> Result<(), Error> {
        effects::perform(ctx, cluster, effect).await
    }
}

fn decision(cluster: &EtcdCluster, seen: &Seen, now: Timestamp) -> Decision {
    decide(&cluster.spec, &status::memory(cluster.status.as_ref()), &seen.view, now)
}

/// What a cluster needs. Pure.
pub fn plan(cluster: &EtcdCluster, seen: &Seen, now: Timestamp) -> Plan<EtcdCluster, Effect> {
    let invalid = validate::spec(&cluster.spec);
    if !invalid.is_empty() {
        let messages: Vec<String> = invalid.iter().map(ToString::to_string).collect();
        let message = messages.join("; ");
        let mut status = cluster.status.clone().unwrap_or_default();
        status.blocked_reason = Some(format!("InvalidSpec: {message}"));
        return Plan::new().status(status).terminal("InvalidSpec", message);
    }
    let decision = decision(cluster, seen, now);
    let view = View { spec: &cluster.spec, memory: &decision.memory, seen: &seen.view, now };
    let mut plan = Plan::new().apply(build::peer_service(cluster)).apply(build::client_service(cluster));
    if cluster.spec.pdb.enabled {
        plan = plan.apply(build::budget(cluster, view.count().0));
    }
    plan = plan.status(status::of(cluster, &seen.view, &decision, now));
    // The status is written, and then looked at.
    if let Some(Action::Latch(_)) = decision.action {
        return plan.requeue_after(Duration::ZERO);
    }
    let label = if cluster.spec.paused { None } else { upkeep(cluster, seen, &view) };
    match label.or(decision.action.map(Effect::Step)) {
        Some(effect) => plan.effect(effect),
        None => plan.requeue_after(decision.look_again),
    }
}

/// What does no harm: pods say whether their member votes, and volumes grow.
fn upkeep(cluster: &EtcdCluster, seen: &Seen, view: &View<'_>) -> Option<Effect> {
    let list = view.list()?;
    for member in &seen.view.members {
        let votes = list.of(&member.name).is_some_and(|listed| !listed.learner) && member.joined().is_some();
        if let Some(pod) = member.pod.as_ref().filter(|pod| !pod.deleting && pod.voter != Some(votes)) {
            return Some(Effect::Label {
                member: member.name.clone(),
                uid: pod.uid.to_string(),
                voter: votes,
            });
        }
    }
    let wanted = validate::bytes(&cluster.spec.storage.size)?;
    let is_small = |member: &&observe::Member| {
        let claim = seen.objects.volumes.get(&member.name).filter(|_| member.volume == Volume::Present);
        let asked = claim
            .and_then(|claim| claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage"));
        asked.and_then(validate::bytes).is_some_and(|has| has < wanted)
    };
    let small = seen.view.members.iter().find(is_small)?;
    Some(Effect::Expand { member: small.name.clone() })
}

/// What has to be done before a deleted cluster may go: pods end, then volumes are dealt with, then members go. etcd is not
/// asked: nobody stays who could answer.
fn cleanup(cluster: &EtcdCluster, seen: &Seen) -> Plan<EtcdCluster, Effect> {
    let because = "its EtcdCluster is deleted";
    let objects = &seen.objects;
    if !objects.pods.is_empty() {
        let alive = objects.pods.values().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        return alive.fold(Plan::new(), |plan, pod| plan.delete(&**pod, because)).requeue_after(GOING);
    }
    if !objects.volumes.is_empty() {
        if cluster.spec.storage.reclaim_policy == ReclaimPolicy::Retain {
            let first = objects.volumes.keys().next();
            return first
                .into_iter()
                .fold(Plan::new(), |plan, member| plan.effect(Effect::Retain { member: member.clone() }));
        }
        let there = objects.volumes.values().filter(|claim| claim.metadata.deletion_timestamp.is_none());
        return there.fold(Plan::new(), |plan, claim| plan.delete(&**claim, because)).requeue_after(GOING);
    }
    let mut plan = Plan::new();
    for (name, member) in &objects.members {
        plan = match member.metadata.deletion_timestamp {
            None => plan.delete(&**member, because),
            Some(_) => plan.effect(Effect::Release { member: name.clone() }),
        };
    }
    plan
}

/// Tells people when the operator begins to wait for them.
fn tell(ctx: &Context, cluster: &EtcdCluster, decision: &Decision) {
    let Some(blocked) = &decision.blocked else { return };
    let is_quiet = matches!(
        blocked.reason,
        "Bootstrapping"
            | "CatchingUp"
            | "Settling"
            | "Restarting"
            | "Recovering"
            | "OneLearner"
            | "ChangeUnconfirmed"
            | "Paused"
    );
    let before = cluster.status.as_ref().and_then(|status| status.blocked_reason.as_deref());
    let is_known = before.is_some_and(|before| before.split(':').next() == Some(blocked.reason));
    if !is_quiet && !is_known {
        tracing::warn!(cluster = cluster.name_any(), reason = blocked.reason, "nothing can be done");
        ctx.event(cluster, Event::warning(blocked.reason, "Wait", blocked.message.clone()));
    }
}
