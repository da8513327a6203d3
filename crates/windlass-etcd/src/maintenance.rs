//! One member's state, and what is done to it.

use crate::client::Leader;
use crate::proto::kv::HeaderOnly;
use crate::proto::maintenance::{
    AlarmRequest, Alarms, DowngradeRequest, Empty, HashKvRequest, MoveLeaderRequest, SnapshotRequest, Version,
};
use crate::{Alarm, AlarmKind, Client, Error, HashKv, Snapshot, Status};

/// What is done about a downgrade of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downgrade {
    /// Whether it would be possible.
    Validate,
    /// Allow it: members may be started with the older version from now on. Since 3.6; 3.5 does not answer.
    Enable,
    /// Call it off.
    Cancel,
}

const GET: i32 = 0;
const ACTIVATE: i32 = 1;
const DEACTIVATE: i32 = 2;

impl Client {
    /// What the asked member says about itself. It answers without a leader, too.
    ///
    /// # Errors
    /// The member does not answer.
    pub async fn status(&self) -> Result<Status, Error> {
        self.unary("/etcdserverpb.Maintenance/Status", Empty {}, Leader::Any).await
    }

    /// The alarms of all members. The question goes through raft, so it is answered with a leader only.
    ///
    /// # Errors
    /// The member does not answer.
    pub async fn alarms(&self) -> Result<Vec<Alarm>, Error> {
        self.alarm(GET, 0, AlarmKind::None).await
    }

    /// Takes an alarm of a member away. Do so when its cause is gone.
    ///
    /// # Errors
    /// The member does not answer, or refuses.
    pub async fn disarm(&self, alarm: Alarm) -> Result<Vec<Alarm>, Error> {
        self.alarm(DEACTIVATE, alarm.member_id, alarm.kind()).await
    }

    /// Raises an alarm for a member, as a drill: etcd raises its own by itself.
    ///
    /// # Errors
    /// The member does not answer, or refuses.
    pub async fn raise_alarm(&self, member_id: u64, kind: AlarmKind) -> Result<Vec<Alarm>, Error> {
        self.alarm(ACTIVATE, member_id, kind).await
    }

    async fn alarm(&self, action: i32, member_id: u64, kind: AlarmKind) -> Result<Vec<Alarm>, Error> {
        let request = AlarmRequest { action, member_id, alarm: kind as i32 };
        let answer: Alarms = self.unary("/etcdserverpb.Maintenance/Alarm", request, Leader::Required).await?;
        Ok(answer.alarms)
    }

    /// Gives the free space of the member's database back to its disk. The member answers nothing else meanwhile, and it takes as
    /// long as copying the database does: give it a deadline ([`Client::within`]).
    ///
    /// # Errors
    /// The member does not answer in time, or refuses.
    pub async fn defragment(&self) -> Result<(), Error> {
        let _: HeaderOnly = self.unary("/etcdserverpb.Maintenance/Defragment", Empty {}, Leader::Any).await?;
        Ok(())
    }

    /// The hash of all keys of the member up to a revision (0: the newest). Two members with the same compacted revision that have
    /// different hashes at one revision have different data.
    ///
    /// # Errors
    /// The member does not answer, or does not have the revision.
    pub async fn hash_kv(&self, revision: i64) -> Result<HashKv, Error> {
        self.unary("/etcdserverpb.Maintenance/HashKV", HashKvRequest { revision }, Leader::Any).await
    }

    /// Makes another voter the leader. Only the leader does this.
    ///
    /// # Errors
    /// The member does not answer, or refuses ([`Error::NotLeader`], [`Error::BadTransferee`]).
    pub async fn move_leader(&self, to: u64) -> Result<(), Error> {
        let request = MoveLeaderRequest { target_id: to };
        let _: HeaderOnly =
            self.unary("/etcdserverpb.Maintenance/MoveLeader", request, Leader::Required).await?;
        Ok(())
    }

    /// Asks about, allows or calls off the downgrade of the cluster to `version` (`3.5`). The answer is the cluster's version.
    ///
    /// # Errors
    /// The member does not answer, or refuses ([`Error::Downgrade`]).
    pub async fn downgrade(&self, what: Downgrade, version: &str) -> Result<String, Error> {
        let request = DowngradeRequest { action: what as i32, version: version.to_owned() };
        let answer: Version =
            self.unary("/etcdserverpb.Maintenance/Downgrade", request, Leader::Required).await?;
        Ok(answer.version)
    }

    /// The member's database as a stream. It is given without a leader, too, and is then what this member has.
    ///
    /// # Errors
    /// The member does not answer.
    pub async fn snapshot(&self) -> Result<Snapshot, Error> {
        let parts = self.server_streaming("/etcdserverpb.Maintenance/Snapshot", SnapshotRequest {}).await?;
        Ok(Snapshot::new(self.clone(), parts))
    }
}
