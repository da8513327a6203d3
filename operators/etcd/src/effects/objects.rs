//! What is made and deleted in the API server: members, volumes, pods.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt as _;
use windlass::core::{Child, Kind};
use windlass::write::{Mode, Propagation, Target};
use windlass::{Context, Error};

use super::{RETAINED, Refused, key_of, volume_key};
use crate::api::{EtcdCluster, EtcdMember, Joined, MEMBER_FINALIZER, names};
use crate::build;
use crate::observe::{Name, Seen};
use crate::plan::Action;

/// Does a step that is about objects.
pub(super) async fn act(
    ctx: &Context,
    cluster: &EtcdCluster,
    seen: &Seen,
    action: &Action,
) -> Result<(), Error> {
    let member_of = |name: &Name| {
        let missing = || Refused::Missing { what: "EtcdMember", member: name.clone() };
        seen.objects.members.get(name).ok_or_else(missing)
    };
    match action {
        Action::CreateMember { serial, seed } => {
            create(ctx, Child::new(build::member(cluster, *serial, *seed))).await
        }
        Action::CreateVolume { member } => create(ctx, Child::new(build::volume(cluster, member))).await,
        Action::NoteJoined { member, id } => {
            let joined = Joined { id: names::id(*id), initial_cluster: initial_cluster(cluster, seen) };
            let object = member_of(member)?;
            let child = Child::new(build::joined(cluster, object, joined));
            let uid = object.uid().unwrap_or_default();
            ctx.writer().apply(&child, Mode::Update { uid: &uid }, ctx.origin()).await?;
            Ok(())
        }
        Action::StartPod { member, start } => {
            create(ctx, Child::new(build::pod(cluster, member_of(member)?, *start))).await
        }
        Action::DeletePod { member, uid, .. } => {
            let kind = Kind::of::<Pod>();
            let background = Propagation::Background;
            ctx.writer().delete(&kind, &key_of(cluster, member), uid, None, background, ctx.origin()).await?;
            Ok(())
        }
        Action::DeleteVolume { member, .. } => {
            let missing = || Refused::Missing { what: "volume", member: member.clone() };
            let claim = seen.objects.volumes.get(member).ok_or_else(missing)?;
            let (kind, uid) = (Kind::of::<PersistentVolumeClaim>(), claim.uid().unwrap_or_default());
            let version = claim.resource_version();
            let key = volume_key(cluster, member);
            let background = Propagation::Background;
            ctx.writer().delete(&kind, &key, &uid, version.as_deref(), background, ctx.origin()).await?;
            Ok(())
        }
        Action::RetainVolume { member } => retain(ctx, cluster, member).await,
        Action::DeleteMember { member, .. } => {
            let object = member_of(member)?;
            match object.metadata.deletion_timestamp {
                Some(_) => let_go(ctx, cluster, object).await,
                None => {
                    let (kind, uid) = (Kind::of::<EtcdMember>(), object.uid().unwrap_or_default());
                    let (key, background) = (key_of(cluster, member), Propagation::Background);
                    ctx.writer().delete(&kind, &key, &uid, None, background, ctx.origin()).await?;
                    Ok(())
                }
            }
        }
        _ => Ok(()),
    }
}

async fn create(ctx: &Context, child: Child) -> Result<(), Error> {
    ctx.writer().apply(&child, Mode::Create, ctx.origin()).await?;
    Ok(())
}

/// The members of this moment, as `--initial-cluster` has them. One that has not started has no name in etcd: it will have
/// that of its URL.
fn initial_cluster(cluster: &EtcdCluster, seen: &Seen) -> String {
    let (name, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
    let members = seen.view.list.iter().flat_map(|list| &list.members);
    let pair = |listed: &crate::observe::Listed| {
        let member = names::member_of_url(&name, &namespace, &listed.url)
            .map_or_else(|| names::id(listed.id), str::to_owned);
        format!("{member}={}", listed.url)
    };
    members.map(pair).collect::<Vec<_>>().join(",")
}

/// Marks a volume as one that stays.
pub(super) async fn retain(ctx: &Context, cluster: &EtcdCluster, member: &Name) -> Result<(), Error> {
    let key = volume_key(cluster, member);
    let Some(claim) = ctx.get::<PersistentVolumeClaim>(&key)? else { return Ok(()) };
    let kind = Kind::of::<PersistentVolumeClaim>();
    let uid = claim.uid().unwrap_or_default();
    ctx.writer().set_labels(&kind, &key, &uid, &RETAINED, ctx.origin()).await?;
    Ok(())
}

/// Lets a volume grow to what is asked for.
pub(super) async fn expand(ctx: &Context, cluster: &EtcdCluster, member: &Name) -> Result<(), Error> {
    let key = volume_key(cluster, member);
    let Some(claim) = ctx.get::<PersistentVolumeClaim>(&key)? else { return Ok(()) };
    let uid = claim.uid().unwrap_or_default();
    let child = Child::new(build::volume(cluster, member));
    ctx.writer().apply(&child, Mode::Update { uid: &uid }, ctx.origin()).await?;
    Ok(())
}

/// Lets a member go whose cluster is deleted.
pub(super) async fn release(ctx: &Context, cluster: &EtcdCluster, member: &Name) -> Result<(), Error> {
    match ctx.get::<EtcdMember>(&key_of(cluster, member))? {
        Some(object) => let_go(ctx, cluster, &object).await,
        None => Ok(()),
    }
}

/// Takes the finalizer away.
async fn let_go(ctx: &Context, cluster: &EtcdCluster, member: &EtcdMember) -> Result<(), Error> {
    let (kind, key) = (Kind::of::<EtcdMember>(), key_of(cluster, &member.name_any()));
    let (uid, version) = (member.uid().unwrap_or_default(), member.resource_version().unwrap_or_default());
    let left: Vec<String> =
        member.finalizers().iter().filter(|name| *name != MEMBER_FINALIZER).cloned().collect();
    let target = Target { kind: &kind, key: &key, uid: &uid, resource_version: &version };
    ctx.writer().set_finalizers(target, &left, ctx.origin()).await?;
    Ok(())
}
