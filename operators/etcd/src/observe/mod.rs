//! Looks: at the objects in the cache, and at what etcd says of itself.
//!
//! ```text
//! cache ─► EtcdMembers, pods, volumes of the cluster ─► by name ─┐
//! etcd  ─► each member: its own status, all at once             ─┼─► Observed
//!       ─► one that has a leader: a linearizable list           ─┘
//! ```

mod ask;
mod etcd;
mod objects;
mod view;

pub use ask::client_url;
pub use etcd::{Etcd, Network};
pub use objects::{BY_CLUSTER, Objects, cluster_key, index_value};
pub use view::{List, Listed, Member, Name, Object, Observed, Pod, Report, Volume};

use std::sync::Arc;

use windlass::{Context, Error};

use crate::api::EtcdCluster;

/// What there is: as a value to decide on, and the objects themselves to act on.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// What there is.
    pub view: Observed,
    /// The objects.
    pub objects: Objects,
}

/// Who answers for etcd: the operator's state.
#[derive(Clone)]
pub struct Asked(pub Arc<dyn Etcd>);

/// Looks.
///
/// # Errors
/// When the cache has not heard from the server yet. That etcd does not answer is something seen, not an error.
pub async fn observe(ctx: &Context, cluster: &EtcdCluster) -> Result<Seen, Error> {
    let objects = Objects::read(ctx, cluster)?;
    let mut view = Observed { members: objects.members(cluster), list: None, local: None };
    let asked = ctx.state::<Asked>();
    ask::ask(&*asked.0, ctx.env(), cluster, &mut view).await;
    Ok(Seen { view, objects })
}
