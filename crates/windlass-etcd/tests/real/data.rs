//! Keys, their history, alarms, and the database as a file.

use std::process::Command;

use windlass_etcd::testing::Cluster;
use windlass_etcd::{Alarm, AlarmKind, Compare, Error, EventKind, Op, Range, Txn, Watch, prefix_end};

use crate::{storage_is_of, with_all};

#[tokio::test]
async fn keys_are_written_read_compared_and_compacted() {
    with_all(async |release| {
        let cluster = Cluster::of(release, 1).await.unwrap();
        let client = cluster[0].client().unwrap();
        let first = client.put("k/a", "1").await.unwrap().revision;
        client.put("k/b", "2").await.unwrap();
        client.put("other", "3").await.unwrap();
        let all = client.range(Range::prefix("k/")).await.unwrap();
        let keys: Vec<_> = all.kvs.iter().map(|kv| kv.key.as_slice()).collect();
        assert_eq!(keys, [b"k/a", b"k/b"]);
        assert_eq!(client.range(Range::prefix("")).await.unwrap().count, 3);
        let one = client.range(Range::prefix("").limit(1)).await.unwrap();
        assert!(one.more && one.kvs.len() == 1);

        let replace = |expected| Txn {
            compare: vec![Compare::mod_revision("k/a", expected)],
            success: vec![Op::put("k/a", "4"), Op::delete("other")],
            failure: vec![Op::put("k/failed", "")],
        };
        assert!(!client.txn(replace(0)).await.unwrap().succeeded);
        let answer = client.txn(replace(first)).await.unwrap();
        assert!(answer.succeeded);
        let now = client.get("k/a").await.unwrap().unwrap();
        assert_eq!(
            (now.value.as_slice(), now.mod_revision, now.version),
            (&b"4"[..], answer.header.revision, 2)
        );
        assert_eq!(client.get("other").await.unwrap(), None);
        let before = client.range(Range::key("k/a").at(first)).await.unwrap();
        assert_eq!(before.kvs[0].value, b"1");
        assert_eq!(client.range(Range::key("k/a").at(1000)).await, Err(Error::FutureRevision));
        assert_eq!(client.delete("k/", prefix_end(b"k/")).await.unwrap().deleted, 3);

        let mut events = client.watch(Watch::prefix("k/", 1)).await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..7 {
            let event = events.next().await.unwrap();
            seen.push((event.kind(), String::from_utf8(event.kv.key).unwrap()));
        }
        let expected = [
            (EventKind::Put, "k/a"),
            (EventKind::Put, "k/b"),
            (EventKind::Put, "k/failed"),
            (EventKind::Put, "k/a"),
            (EventKind::Delete, "k/a"),
            (EventKind::Delete, "k/b"),
            (EventKind::Delete, "k/failed"),
        ];
        assert_eq!(seen, expected.map(|(kind, key)| (kind, key.to_owned())));
        // The same watch goes on with what comes.
        let later = client.put("k/later", "").await.unwrap().revision;
        assert_eq!(events.next().await.unwrap().kv.mod_revision, later);

        client.compact(later).await.unwrap();
        assert_eq!(client.compact(later).await, Err(Error::Compacted));
        assert_eq!(client.range(Range::key("k/a").at(first)).await, Err(Error::Compacted));
        let mut past = client.watch(Watch::prefix("k/", 1)).await.unwrap();
        assert_eq!(past.next().await, Err(Error::Compacted));
    })
    .await;
}

#[tokio::test]
async fn a_full_database_raises_an_alarm_until_it_is_disarmed() {
    with_all(async |release| {
        let mut cluster = Cluster::new(release).unwrap().with("--quota-backend-bytes=1048576");
        cluster.seed().await.unwrap();
        let client = cluster[0].client().unwrap();
        let member_id = client.status().await.unwrap().header.member_id;
        let mut last = 0;
        let full = loop {
            match client.put("a", vec![b'x'; 100_000]).await {
                Ok(header) => last = header.revision,
                Err(error) => break error,
            }
        };
        assert_eq!(full, Error::NoSpace);
        let alarm = Alarm { member_id, kind: AlarmKind::NoSpace as i32 };
        assert_eq!(client.alarms().await.unwrap(), [alarm]);
        assert!(client.status().await.unwrap().errors.iter().any(|error| error.contains("NOSPACE")));

        client.compact(last).await.unwrap();
        let before = client.status().await.unwrap().db_size;
        client.defragment().await.unwrap();
        let status = client.status().await.unwrap();
        assert!(status.db_size < before && status.db_size_in_use <= status.db_size, "{before} {status:?}");
        // Space alone does not help: somebody has to say that it is over.
        assert_eq!(client.put("a", "").await, Err(Error::NoSpace));
        client.disarm(alarm).await.unwrap();
        assert_eq!(client.alarms().await.unwrap(), []);
        client.put("a", "").await.unwrap();

        client.raise_alarm(member_id, AlarmKind::Corrupt).await.unwrap();
        assert_eq!(client.put("a", "").await, Err(Error::Corrupt));
        client.disarm(client.alarms().await.unwrap()[0]).await.unwrap();
        client.put("a", "").await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_snapshot_is_whole_and_etcds_own_tool_says_so() {
    with_all(async |release| {
        let cluster = Cluster::of(release, 1).await.unwrap();
        let client = cluster[0].client().unwrap();
        if release.version() != "3.5" {
            storage_is_of(release, &client).await;
        }
        for n in 0..40 {
            client.put(format!("k{n}"), vec![b'x'; 50_000]).await.unwrap();
        }
        let mut snapshot = client.snapshot().await.unwrap();
        let mut file = Vec::new();
        let mut parts = 0;
        while let Some(part) = snapshot.next().await.unwrap() {
            file.extend_from_slice(&part);
            parts += 1;
        }
        assert!(parts > 10 && file.len() > 2_000_000, "{parts} parts, {} bytes", file.len());
        assert_eq!(snapshot.remaining(), Some(0));
        // etcd says the version of its storage in each part since 3.6.
        assert_eq!(snapshot.version().is_empty(), release.version() == "3.5", "{:?}", snapshot.version());

        let path = cluster.folder().join("snapshot.db");
        let restore = |into: &str| {
            let mut command = Command::new(release.program("etcdutl"));
            let into = cluster.folder().join(into);
            command.args(["snapshot", "restore", "--data-dir"]).arg(into).arg(&path).output().unwrap()
        };
        file[1_000_000] ^= 1;
        std::fs::write(&path, &file).unwrap();
        assert!(!restore("damaged").status.success(), "etcdutl takes a file with a changed byte");
        file[1_000_000] ^= 1;
        std::fs::write(&path, &file).unwrap();
        let taken = restore("whole");
        assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    })
    .await;
}
