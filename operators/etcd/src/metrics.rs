//! What the operator measures of its clusters, beside what the framework measures of itself.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use kube::ResourceExt as _;
use windlass::metrics::prometheus_client::metrics::counter::Counter;
use windlass::metrics::prometheus_client::metrics::gauge::Gauge;
use windlass::metrics::prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use windlass::metrics::{Family, Registry};

use crate::api::EtcdCluster;
use crate::observe::Observed;
use crate::plan::{Decision, View, quorum};

/// The metrics. Clones are the same metrics.
#[derive(Clone, Debug)]
pub struct Meters(Arc<Families>);

#[derive(Debug)]
struct Families {
    desired: Family<2, Gauge>,
    voters: Family<2, Gauge>,
    healthy: Family<2, Gauge>,
    learners: Family<2, Gauge>,
    margin: Family<2, Gauge>,
    has_leader: Family<2, Gauge>,
    no_space: Family<2, Gauge>,
    blocked: Family<3, Gauge>,
    member_up: Family<3, Gauge>,
    member_lag: Family<3, Gauge>,
    member_db: Family<3, Gauge<f64, AtomicU64>>,
    replacements: Family<2, Gauge>,
    actions: Family<2, Counter>,
    durations: Family<1, Histogram>,
}

impl Default for Meters {
    fn default() -> Meters {
        let cluster = ["namespace", "cluster"];
        let member = ["namespace", "cluster", "member"];
        Meters(Arc::new(Families {
            desired: Family::new(cluster, Gauge::default),
            voters: Family::new(cluster, Gauge::default),
            healthy: Family::new(cluster, Gauge::default),
            learners: Family::new(cluster, Gauge::default),
            margin: Family::new(cluster, Gauge::default),
            has_leader: Family::new(cluster, Gauge::default),
            no_space: Family::new(cluster, Gauge::default),
            blocked: Family::new(["namespace", "cluster", "reason"], Gauge::default),
            member_up: Family::new(member, Gauge::default),
            member_lag: Family::new(member, Gauge::default),
            member_db: Family::new(member, Gauge::default),
            replacements: Family::new(cluster, Gauge::default),
            actions: Family::new(["action", "result"], Counter::default),
            durations: Family::new(["action"], || Histogram::new(exponential_buckets(0.001, 2.0, 15))),
        }))
    }
}

impl Meters {
    /// Adds them to what `/metrics` shows.
    pub fn register(&self, registry: &mut Registry) {
        let all = &*self.0;
        registry.register("etcdop_cluster_desired", "Members that the spec asks for", all.desired.clone());
        registry.register("etcdop_cluster_voters", "Members that vote", all.voters.clone());
        registry.register("etcdop_cluster_healthy", "Voters that are healthy", all.healthy.clone());
        registry.register("etcdop_cluster_learners", "Members without a vote", all.learners.clone());
        let text = "Voters that may fail before writes stop; negative where they have";
        registry.register("etcdop_cluster_quorum_margin", text, all.margin.clone());
        let text = "Whether a linearizable read was answered";
        registry.register("etcdop_cluster_has_leader", text, all.has_leader.clone());
        let text = "Whether a database is full, so that writes are refused";
        registry.register("etcdop_cluster_no_space", text, all.no_space.clone());
        let text = "Members that were replaced within the last hour";
        registry.register("etcdop_cluster_replacements", text, all.replacements.clone());
        let text = "Why nothing is done, where something should be: 1 for the reason";
        registry.register("etcdop_cluster_blocked", text, all.blocked.clone());
        registry.register("etcdop_member_up", "Whether a member is healthy", all.member_up.clone());
        let text = "How many writes a member is behind its leader";
        registry.register("etcdop_member_applied_lag", text, all.member_lag.clone());
        registry.register("etcdop_member_db_bytes", "The size of a member's database", all.member_db.clone());
        registry.register("etcdop_action", "Steps that were taken, or tried", all.actions.clone());
        registry.register("etcdop_action_duration_seconds", "How long steps took", all.durations.clone());
    }

    /// A step was taken, or was not.
    pub fn acted(&self, action: &str, is_done: bool, took: Duration) {
        self.0.actions.of([action, if is_done { "done" } else { "failed" }]).inc();
        self.0.durations.of([action]).observe(took.as_secs_f64());
    }

    /// What was seen of a cluster.
    pub fn saw(&self, cluster: &EtcdCluster, seen: &Observed, decision: &Decision) {
        let all = &*self.0;
        let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
        let of = [namespace.as_str(), name.as_str()];
        let now = windlass::jiff::Timestamp::UNIX_EPOCH;
        let view = View { spec: &cluster.spec, memory: &decision.memory, seen, now };
        let (voters, healthy) = view.count();
        let signed = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        all.desired.of(of).set(i64::from(cluster.spec.size));
        all.voters.of(of).set(signed(voters));
        all.healthy.of(of).set(signed(healthy));
        let learners = view.best().map_or(0, |list| list.members.iter().filter(|one| one.learner).count());
        all.learners.of(of).set(signed(learners));
        let needed = if voters == 0 { 0 } else { quorum(voters) };
        all.margin.of(of).set(signed(healthy) - signed(needed));
        all.has_leader.of(of).set(view.list().is_some().into());
        all.no_space.of(of).set(view.list().is_some_and(|list| list.no_space).into());
        all.replacements.of(of).set(signed(decision.memory.replacements.len()));
        let reason = decision.blocked.as_ref().map(|blocked| blocked.reason);
        all.blocked.retain(|[a, b, known]| [a, b] != of || Some(known.as_str()) == reason);
        if let Some(reason) = reason {
            all.blocked.of([of[0], of[1], reason]).set(1);
        }
        self.members(of, &view);
    }

    fn members(&self, of: [&str; 2], view: &View<'_>) {
        let all = &*self.0;
        let is_there = |[a, b, member]: &[String; 3]| [a, b] != of || view.seen.member(member).is_some();
        all.member_up.retain(is_there);
        all.member_lag.retain(is_there);
        all.member_db.retain(is_there);
        let leader = view.best().map(|list| list.leader);
        let reports = || view.seen.members.iter().filter_map(|member| member.report.as_ref());
        let head = reports().find(|report| Some(report.id) == leader).map(|report| report.applied);
        for member in &view.seen.members {
            let labels = [of[0], of[1], &*member.name];
            all.member_up.of(labels).set(view.is_healthy(member).into());
            if let Some(report) = &member.report {
                let lag = head.map_or(0, |head| head.saturating_sub(report.applied));
                all.member_lag.of(labels).set(i64::try_from(lag).unwrap_or(i64::MAX));
                all.member_db.of(labels).set(report.db_size as f64);
            }
        }
    }

    /// A cluster is gone.
    pub fn forget(&self, cluster: &EtcdCluster) {
        let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
        let of = [namespace.as_str(), name.as_str()];
        let all = &*self.0;
        for family in [
            &all.desired,
            &all.voters,
            &all.healthy,
            &all.learners,
            &all.margin,
            &all.has_leader,
            &all.no_space,
            &all.replacements,
        ] {
            family.retain(|[a, b]| [a, b] != of);
        }
        for family in [&all.blocked, &all.member_up, &all.member_lag] {
            family.retain(|[a, b, _]| [a, b] != of);
        }
        all.member_db.retain(|[a, b, _]| [a, b] != of);
    }
}
