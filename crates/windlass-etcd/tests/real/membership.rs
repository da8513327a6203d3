//! A cluster comes to be, moves its leader, and loses a member.

use windlass_etcd::testing::{Cluster, Release, eventually};
use windlass_etcd::{Error, Status};

use crate::{storage_is_of, with_all};

#[tokio::test]
async fn seed_learner_promote_move_leader_remove() {
    with_all(async |release| life(release).await).await;
}

async fn life(release: &Release) {
    let mut cluster = Cluster::new(release).unwrap();
    cluster.seed().await.unwrap();
    let seed = cluster[0].client().unwrap();
    let status = seed.status().await.unwrap();
    assert_eq!(status.leader, status.header.member_id);
    assert!(status.version.starts_with(release.version()), "{}", status.version);
    assert!(status.db_size > 0 && status.raft_index > 0 && status.raft_applied_index > 0, "{status:?}");
    if release.version() != "3.5" {
        assert!(status.db_size_quota > 0);
        storage_is_of(release, &seed).await;
    }
    assert!(!seed.auth_status().await.unwrap());

    let second = cluster.join().await.unwrap();
    let learner = cluster[1].client().unwrap();
    eventually("the learner knows itself", async || match learner.status().await {
        Ok(Status { is_learner: true, .. }) => Ok(()),
        other => Err(other),
    })
    .await
    .unwrap();
    // A learner has no vote and answers no linearizable question.
    assert_eq!(learner.get("a").await, Err(Error::NotForLearners));
    assert_eq!(seed.move_leader(second).await, Err(Error::BadTransferee));
    // One learner at a time.
    assert_eq!(seed.member_add(&["http://127.0.0.1:1"], true).await, Err(Error::TooManyLearners));
    cluster.promote(second).await.unwrap();
    // etcd looks first how far it is, then whether it is one: just after its promotion it may be behind again.
    eventually("it is no learner any more", async || match seed.member_promote(second).await {
        Err(Error::NotLearner) => Ok(()),
        other => Err(other),
    })
    .await
    .unwrap();

    cluster.grow_to(3).await.unwrap();
    let members = seed.member_list(true).await.unwrap().members;
    assert_eq!(members.len(), 3);
    for at in 0..3 {
        let member = members.iter().find(|member| member.name == cluster[at].name()).unwrap();
        assert_eq!(member.peer_urls, [cluster[at].peer_url()]);
        assert_eq!(member.client_urls, [cluster[at].client_url()]);
        assert!(!member.is_learner);
    }

    // The leader moves, and says so; only it can.
    let leader = cluster.leader().await.unwrap();
    let here = leader.status().await.unwrap().leader;
    let there = if here == second { members.iter().find(|m| m.id != second).unwrap().id } else { second };
    let follower = cluster[members_at(&cluster, &members, there)].client().unwrap();
    assert_eq!(follower.move_leader(there).await, Err(Error::NotLeader));
    leader.move_leader(there).await.unwrap();
    assert_eq!(follower.status().await.unwrap().leader, there);

    // All have the same data at one revision.
    let revision = seed.put("a", "1").await.unwrap().revision;
    let mut hashes = Vec::new();
    for at in 0..3 {
        let client = cluster[at].client().unwrap();
        client.get("a").await.unwrap();
        hashes.push(client.hash_kv(revision).await.unwrap());
    }
    assert!(hashes.iter().all(|hash| hash.hash == hashes[0].hash && hash.hash != 0), "{hashes:?}");
    assert_eq!(seed.hash_kv(revision + 100).await, Err(Error::FutureRevision));

    // A member goes. What is left goes on.
    let gone = members.iter().find(|member| member.id != there).unwrap();
    // etcd wants its members connected for five seconds first.
    let removed = eventually("a member is removed", async || follower.member_remove(gone.id).await).await;
    let left = removed.unwrap().members;
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|member| member.id != gone.id));
    assert_eq!(follower.member_remove(gone.id).await, Err(Error::MemberNotFound));
    cluster.discard(members_at(&cluster, &members, gone.id));
    assert_eq!(follower.get("a").await.unwrap().unwrap().value, b"1");
}

fn members_at(cluster: &Cluster, members: &[windlass_etcd::Member], id: u64) -> usize {
    let name = &members.iter().find(|member| member.id == id).unwrap().name;
    (0..cluster.len()).find(|at| cluster[*at].name() == name).unwrap()
}

#[tokio::test]
async fn a_member_gets_other_peer_urls() {
    with_all(async |release| {
        let cluster = Cluster::of(release, 1).await.unwrap();
        let client = cluster[0].client().unwrap();
        let id = client.status().await.unwrap().header.member_id;
        let members =
            client.member_update(id, &["http://127.0.0.1:9", "http://localhost:9"]).await.unwrap().members;
        assert_eq!(members[0].peer_urls, ["http://127.0.0.1:9", "http://localhost:9"]);
        assert_eq!(client.member_update(id + 1, &["http://127.0.0.1:7"]).await, Err(Error::MemberNotFound));
    })
    .await;
}
