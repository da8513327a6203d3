//! Does one step: looks again, asks the rules again, acts, and tells people.
//!
//! # Guarantees
//! - Nothing is done to a member, a pod or a volume that the rules do not permit on a look that is newer than the decision:
//!   the EtcdCluster as the server has it, etcd by a linearizable read.
//! - A step that is done twice does no harm: what is there is not made again, what is gone is not missed.

mod cluster;
mod objects;

use std::fmt;

use kube::ResourceExt as _;
use windlass::core::{Kind, ObjectKey};
use windlass::events::Event;
use windlass::{Context, Error};

use crate::api::{EtcdCluster, RETAINED_LABEL, VOTER_LABEL, names};
use crate::goal::Rules;
use crate::metrics::Meters;
use crate::observe::{self, Name};
use crate::plan::{Action, View, Why};
use crate::status;

/// What can be done beside applying Services and the budget.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A step of the plan, which the rules have to permit once more.
    Step(Action),
    /// A pod has to say whether its member votes.
    Label {
        /// Whose pod.
        member: Name,
        /// Which one of that name.
        uid: String,
        /// Whether it votes.
        voter: bool,
    },
    /// A volume has to grow.
    Expand {
        /// Whose.
        member: Name,
    },
    /// A volume stays on purpose, and is marked so.
    Retain {
        /// Whose.
        member: Name,
    },
    /// An EtcdMember of a cluster that is deleted may go.
    Release {
        /// Which one.
        member: Name,
    },
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Step(action) => action.fmt(f),
            Effect::Label { member, voter: true, .. } => write!(f, "mark {member} as a voter"),
            Effect::Label { member, .. } => write!(f, "mark {member} as no voter"),
            Effect::Expand { member } => write!(f, "grow the volume of {member}"),
            Effect::Retain { member } => write!(f, "keep the volume of {member} for good"),
            Effect::Release { member } => write!(f, "let {member} go with its cluster"),
        }
    }
}

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The cluster is not what was planned for.
    #[error("the EtcdCluster is gone, or another one has its name")]
    Gone,
    /// A rule forbids it by now.
    #[error("{action} is not done, since something has changed: {sentence}")]
    Rule {
        /// What.
        action: String,
        /// Which rule.
        sentence: &'static str,
    },
    /// Nobody is there to ask.
    #[error("no member of etcd answers that could do it")]
    NobodyToAsk,
    /// etcd did not do it.
    #[error("etcd did not do it")]
    Etcd(#[source] windlass_etcd::Error),
    /// An object that it is about is not there.
    #[error("the {what} of {member} is not there any more")]
    Missing {
        /// What.
        what: &'static str,
        /// Whose.
        member: Name,
    },
}

/// Does one.
///
/// # Errors
/// When it was not done. The next pass looks anew.
pub async fn perform(ctx: &Context, cluster: &EtcdCluster, effect: &Effect) -> Result<(), Error> {
    match effect {
        Effect::Step(action) => step(ctx, cluster, action).await,
        Effect::Label { member, uid, voter } => {
            let key = key_of(cluster, member);
            let labels = [(VOTER_LABEL, if *voter { "true" } else { "false" })];
            let kind = Kind::of::<k8s_openapi::api::core::v1::Pod>();
            ctx.writer().set_labels(&kind, &key, uid, &labels, ctx.origin()).await?;
            Ok(())
        }
        Effect::Expand { member } => objects::expand(ctx, cluster, member).await,
        Effect::Retain { member } => objects::retain(ctx, cluster, member).await,
        Effect::Release { member } => objects::release(ctx, cluster, member).await,
    }
}

async fn step(ctx: &Context, cluster: &EtcdCluster, action: &Action) -> Result<(), Error> {
    let started = ctx.env().moment();
    let done = permitted(ctx, cluster, action).await;
    let meters = ctx.state::<Meters>();
    meters.acted(action.name(), done.is_ok(), ctx.env().moment() - started);
    if done.is_ok() {
        tell(ctx, cluster, action);
    }
    done
}

/// Looks again, asks the rules, and acts.
async fn permitted(ctx: &Context, cluster: &EtcdCluster, action: &Action) -> Result<(), Error> {
    let live = ctx.writer().read(&Kind::of::<EtcdCluster>(), ctx.key()).await?.ok_or(Refused::Gone)?;
    let live: EtcdCluster = serde_json::from_value(live)?;
    if live.uid() != cluster.uid() || live.metadata.deletion_timestamp.is_some() {
        return Err(Refused::Gone.into());
    }
    let seen = observe::observe(ctx, &live).await?;
    let memory = status::memory(live.status.as_ref()).learn(&seen.view, ctx.now());
    let view = View { spec: &live.spec, memory: &memory, seen: &seen.view, now: ctx.now() };
    if let Err(rule) = Rules::ALL.permit(action, &view) {
        return Err(Refused::Rule { action: action.to_string(), sentence: rule.sentence }.into());
    }
    match action {
        Action::Latch(_) => Ok(()),
        Action::AddLearner { .. }
        | Action::Promote { .. }
        | Action::MoveLeader { .. }
        | Action::RemoveMember { .. } => cluster::change(ctx, &live, &seen, action).await,
        _ => objects::act(ctx, &live, &seen, action).await,
    }
}

/// Where something of the cluster is.
fn key_of(cluster: &EtcdCluster, name: &str) -> ObjectKey {
    ObjectKey::new(cluster.namespace().as_deref(), name)
}

/// The volume's place.
fn volume_key(cluster: &EtcdCluster, member: &str) -> ObjectKey {
    key_of(cluster, &names::volume(member))
}

/// What a volume that stays is marked with.
const RETAINED: [(&str, &str); 1] = [(RETAINED_LABEL, "true")];

/// Tells people what was done.
fn tell(ctx: &Context, cluster: &EtcdCluster, action: &Action) {
    let note = action.to_string();
    let is_bad = action.because().is_some_and(|because| {
        matches!(because.why, Why::Failed(_) | Why::Suspect | Why::LearnerStuck | Why::Orphan | Why::Fenced)
    });
    let reason = match action {
        Action::CreateMember { seed: true, .. } => "Bootstrapping",
        Action::CreateMember { .. } => "MemberCreated",
        Action::CreateVolume { .. } => "VolumeCreated",
        Action::AddLearner { .. } => "LearnerAdded",
        Action::NoteJoined { .. } => "MemberJoined",
        Action::StartPod { .. } => "PodStarted",
        Action::Promote { .. } => "MemberPromoted",
        Action::MoveLeader { .. } => "LeaderMoved",
        Action::RemoveMember { .. } => "MemberRemoved",
        Action::DeletePod { .. } => "PodDeleted",
        Action::DeleteVolume { .. } => "VolumeDeleted",
        Action::RetainVolume { .. } => "VolumeRetained",
        Action::DeleteMember { .. } => "MemberReleased",
        Action::Latch(_) => "Decided",
    };
    let event = match is_bad {
        true => Event::warning(reason, action.name(), note),
        false => Event::normal(reason, action.name(), note),
    };
    ctx.event(cluster, event);
}
