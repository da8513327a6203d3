//! What is answered without a quorum, and how a client gets along with members that hang, die and come back.

use std::time::{Duration, Instant};

use windlass_etcd::testing::{Cluster, eventually};
use windlass_etcd::{Client, Error, Range};

use crate::with_all;

const DEADLINE: Duration = Duration::from_millis(700);

/// The outcome of a call that must not take much longer than its deadline.
async fn in_time<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let started = Instant::now();
    let outcome = call.await;
    let took = started.elapsed();
    assert!(
        took < DEADLINE + Duration::from_millis(500),
        "a call with a deadline of {DEADLINE:?} took {took:?}"
    );
    outcome
}

#[tokio::test]
async fn without_a_quorum_a_linearizable_list_fails_in_time() {
    with_all(async |release| {
        let mut cluster = Cluster::of(release, 3).await.unwrap();
        let client = cluster[0].client().unwrap().within(DEADLINE);
        client.put("a", "1").await.unwrap();
        cluster[1].pause().unwrap();
        cluster[2].pause().unwrap();

        // At once: the leader may not know yet that it is alone.
        let outcome = in_time(client.member_list(true)).await;
        assert!(matches!(outcome, Err(Error::Timeout | Error::NoLeader)), "{outcome:?}");
        eventually("it sees no leader", async || match client.status().await {
            Ok(status) if status.leader == 0 && !status.errors.is_empty() => Ok(()),
            other => Err(other),
        })
        .await
        .unwrap();
        assert_eq!(in_time(client.member_list(true)).await, Err(Error::NoLeader));
        assert_eq!(in_time(client.put("a", "2")).await, Err(Error::NoLeader));
        assert_eq!(in_time(client.member_add(&["http://127.0.0.1:9"], true)).await, Err(Error::NoLeader));

        assert_eq!(in_time(client.alarms()).await, Err(Error::NoLeader));

        // What the member knows alone it tells.
        assert_eq!(in_time(client.member_list(false)).await.unwrap().members.len(), 3);
        assert_eq!(in_time(client.range(Range::key("a").serializable())).await.unwrap().kvs[0].value, b"1");
        let mut snapshot = client.snapshot().await.unwrap();
        while snapshot.next().await.unwrap().is_some() {}

        cluster[1].resume().unwrap();
        cluster[2].resume().unwrap();
        eventually("there is a quorum again", async || client.member_list(true).await).await.unwrap();
        assert_eq!(client.get("a").await.unwrap().unwrap().value, b"1");
    })
    .await;
}

#[tokio::test]
async fn a_member_that_hangs_times_out_and_comes_back() {
    with_all(async |release| {
        let mut cluster = Cluster::of(release, 1).await.unwrap();
        let client = cluster[0].client().unwrap().within(DEADLINE);
        client.put("a", "1").await.unwrap();
        let mut snapshot = client.snapshot().await.unwrap();
        cluster[0].pause().unwrap();
        assert_eq!(in_time(client.status()).await, Err(Error::Timeout));
        assert_eq!(in_time(client.member_list(false)).await, Err(Error::Timeout));
        // Each part of a stream has its deadline.
        let broken = loop {
            match in_time(snapshot.next()).await {
                Ok(Some(_)) => {}
                other => break other,
            }
        };
        assert!(matches!(broken, Err(Error::Timeout) | Ok(None)), "{broken:?}");
        cluster[0].resume().unwrap();
        assert_eq!(client.get("a").await.unwrap().unwrap().value, b"1");

        cluster[0].kill().unwrap();
        let dead = in_time(client.status()).await;
        assert!(matches!(dead, Err(Error::Unreachable { .. })), "{dead:?}");
        let dead = in_time(client.status()).await.unwrap_err();
        assert!(dead.to_string().contains("Connection refused"), "{dead}");
        cluster[0].start().unwrap();
        eventually("it is back, and the same client reaches it", async || client.get("a").await)
            .await
            .unwrap();
        cluster[0].terminate().unwrap();
        assert!(!cluster[0].is_running().unwrap());
    })
    .await;
}

#[tokio::test]
async fn what_is_no_address_is_refused() {
    for address in ["", "127.0.0.1:2379", "unix:///x", "http://"] {
        let error = Client::new(address).unwrap_err();
        assert!(matches!(error, Error::Address { .. }), "{address}: {error:?}");
    }
}
