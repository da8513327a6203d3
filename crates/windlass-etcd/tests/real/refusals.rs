//! The refusals that need a cluster in a special state.

use std::process::Command;

use windlass_etcd::testing::{Cluster, eventually};
use windlass_etcd::{Downgrade, Error};

use crate::{NOBODY, with_all};

#[tokio::test]
async fn a_learner_that_has_not_started_and_names_that_are_taken() {
    with_all(async |release| {
        let cluster = Cluster::of(release, 1).await.unwrap();
        let client = cluster[0].client().unwrap();
        assert_eq!(client.member_add(&[&cluster[0].peer_url()], true).await, Err(Error::MemberExists));
        assert_eq!(client.member_add(&["not a url"], true).await, Err(Error::BadPeerUrls));
        assert_eq!(client.member_promote(1).await, Err(Error::MemberNotFound));
        let added = client.member_add(&[NOBODY], true).await.unwrap();
        assert!(added.member.is_learner && added.member.name.is_empty() && added.members.len() == 2);
        assert_eq!(client.member_promote(added.member.id).await, Err(Error::LearnerNotReady));
        client.member_remove(added.member.id).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_change_that_would_cost_the_quorum() {
    with_all(async |release| {
        let mut cluster = Cluster::of(release, 2).await.unwrap();
        let client = cluster.leader().await.unwrap();
        let members = eventually("a voter is added", async || {
            // An addition without an answer may have happened, so the list decides.
            let added = client.member_add(&[NOBODY], false).await;
            let members = client.member_list(true).await?.members;
            let there = members.iter().any(|member| member.peer_urls == [NOBODY]);
            if there { Ok(members) } else { added.map(|_| members) }
        })
        .await
        .unwrap();
        // Three members, two of them started: without one of these there is no quorum.
        let (started, absent): (Vec<_>, Vec<_>) = members.iter().partition(|member| !member.name.is_empty());
        assert_eq!((started.len(), absent.len()), (2, 1));
        assert_eq!(client.member_remove(started[0].id).await, Err(Error::NotEnoughStarted));
        client.member_remove(absent[0].id).await.unwrap();

        cluster.grow_to(3).await.unwrap();
        let follower = (cluster.leader_at().await.unwrap() + 1) % 3;
        let leader = cluster.leader().await.unwrap();
        cluster[follower].kill().unwrap();
        let refused = eventually("etcd has seen that a member is gone", async || {
            match leader.member_add(&[NOBODY], false).await {
                Ok(added) => {
                    leader.member_remove(added.member.id).await?;
                    Err(Error::MemberExists)
                }
                Err(Error::UnhealthyCluster) => Ok(()),
                Err(error) => Err(error),
            }
        })
        .await;
        refused.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_downgrade_that_cannot_be() {
    with_all(async |release| {
        let cluster = Cluster::of(release, 1).await.unwrap();
        let client = cluster[0].client().unwrap();
        let refused = client.downgrade(Downgrade::Validate, "3.0").await;
        assert!(matches!(refused, Err(Error::Downgrade { .. })), "{refused:?}");
        let below = match release.version() {
            "3.7" => "3.6",
            "3.6" => "3.5",
            _ => "3.4",
        };
        // The version of the cluster is decided a moment after its start.
        eventually("a downgrade is possible", async || client.downgrade(Downgrade::Validate, below).await)
            .await
            .unwrap();
        if release.version() != "3.5" {
            client.downgrade(Downgrade::Enable, below).await.unwrap();
            let info = client.status().await.unwrap().downgrade.unwrap();
            assert_eq!((info.enabled, info.target_version.starts_with(below)), (true, true), "{info:?}");
            client.downgrade(Downgrade::Cancel, "").await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_cluster_that_wants_a_login() {
    with_all(async |release| {
        let cluster = Cluster::of(release, 1).await.unwrap();
        let client = cluster[0].client().unwrap();
        for args in [
            &["user", "add", "root:secret"][..],
            &["user", "grant-role", "root", "root"],
            &["auth", "enable"],
        ] {
            let mut command = Command::new(release.program("etcdctl"));
            let done = command.arg("--endpoints").arg(cluster[0].client_url()).args(args).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        assert!(client.auth_status().await.unwrap());
        let refused = client.put("a", "1").await;
        assert!(matches!(refused, Err(Error::Denied { .. })), "{refused:?}");
    })
    .await;
}
