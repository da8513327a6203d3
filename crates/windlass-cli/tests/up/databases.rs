//! Databases as pods: PostgreSQL and etcd answer, and keep their data over the end of a pod and of the cluster.

use std::path::Path;
use std::time::Duration;

use windlass_testing::up::Cluster;

use crate::support::{Folder, windlass};
use crate::{until_within, up};

/// A manifest of these tests.
fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/up/data").join(name).display().to_string()
}

fn psql(cluster: &Cluster, command: &str) -> String {
    let asked =
        format!("exec -i postgres-0 -- psql -U postgres -v ON_ERROR_STOP=1 -At shop <<< \"{command}\"");
    cluster.kubectl(&asked)
}

fn etcdctl(cluster: &Cluster, member: usize, command: &str) -> String {
    cluster.kubectl(&format!("exec etcd-{member} -- etcdctl {command}"))
}

#[test]
fn postgres_and_etcd_keep_what_they_were_told() {
    let folder = Folder::new("databases");
    let [postgres, etcd] = ["postgres.yaml", "etcd.yaml"].map(data);
    let cluster = up(&["--apply", &postgres, &etcd], folder.path());
    for ready in ["statefulset/postgres: 1 of 1 ready", "statefulset/etcd: 3 of 3 ready"] {
        let hint = "`tools/setup postgres etcd-3.6` brings the images";
        assert!(cluster.said.contains(ready), "{hint}: {}\n{}", cluster.said, cluster.kubectl("get pods"));
    }
    psql(&cluster, "CREATE TABLE orders (id int); INSERT INTO orders SELECT generate_series(1, 1000)");
    let over_the_network =
        "exec etcd-0 -- bash -c 'exec 3<>/dev/tcp/postgres-0.postgres/5432 && echo reached'";
    assert_eq!(cluster.kubectl(over_the_network), "reached\n");
    etcdctl(&cluster, 0, "put order 1000");
    assert_eq!(etcdctl(&cluster, 2, "get order --print-value-only"), "1000\n");

    cluster.kubectl("delete pod postgres-0 etcd-1");
    cluster.kubectl("rollout status statefulset/postgres statefulset/etcd --timeout=60s");
    there(&cluster);

    // One who stays connected does not keep it from ending well.
    let stays = "exec \"$KUBECTL\" exec postgres-0 -- psql -U postgres shop -c 'SELECT pg_sleep(600)'";
    let mut stays = cluster.command(stays).spawn().unwrap();
    until_within(Duration::from_secs(30), "somebody is connected", || {
        psql(&cluster, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)'") == "1\n"
    });
    let down = windlass(&["down", "--data-dir", "data"], folder.path()).output().unwrap();
    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    assert!(!stays.wait().unwrap().success(), "it was told that the server ends");
    let cluster = up(&[], folder.path());
    cluster.kubectl("wait pod --all --for=condition=Ready --timeout=60s");
    there(&cluster);
    let log = cluster.kubectl("logs postgres-0");
    assert!(log.contains("database system was shut down at"), "it had the time to end well: {log}");
    assert_eq!(cluster.end("-KILL").code(), None);
}

fn there(cluster: &Cluster) {
    assert_eq!(psql(cluster, "SELECT count(*) FROM orders"), "1000\n");
    for member in 0..3 {
        assert_eq!(etcdctl(cluster, member, "get order --print-value-only"), "1000\n", "etcd-{member}");
    }
}
