//! The cluster's DNS on the objects of an API server.

use std::net::Ipv4Addr;
use std::sync::Arc;

use windlass::Env;
use windlass::cache::Cache;
use windlass_node::network::dns::{Cached, Code, Data, Kind, answer};
use windlass_testing::TestCluster;

const OBJECTS: &str = "
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, ports: [{name: sql, port: 5432}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-x, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: sql, port: 5432}]
endpoints: [{addresses: [10.244.0.7], hostname: db-0}]
";

fn ask(known: &Cached, name: &str, kind: Kind) -> (Code, Vec<Data>) {
    let labels: Vec<_> = name.split('.').map(str::to_owned).collect();
    let reply = answer(&labels, kind, known);
    (reply.code, reply.answers.into_iter().map(|record| record.data).collect())
}

#[tokio::test]
async fn names_follow_the_objects() {
    let cluster = TestCluster::new().await;
    let (cache, env) = (Cache::new("test"), Env::system());
    let known = Cached::declare(&cache);
    let watching = cache.start(cluster.client(), &env, Arc::new(()));
    cache.synced().await;
    assert!(known.is_synced());

    let api = (Code::Ok, vec![Data::A(Ipv4Addr::new(10, 0, 0, 1))]);
    assert_eq!(ask(&known, "kubernetes.default.svc.cluster.local", Kind::A), api);
    assert_eq!(ask(&known, "db-0.db.default.svc.cluster.local", Kind::A), (Code::NoSuchName, vec![]));

    cluster.apply_yaml(OBJECTS).await.unwrap();
    let pod = (Code::Ok, vec![Data::A(Ipv4Addr::new(10, 244, 0, 7))]);
    let mut waited = 0;
    while ask(&known, "db-0.db.default.svc.cluster.local", Kind::A) != pod {
        assert!(waited < 500, "{:?}", ask(&known, "db-0.db.default.svc.cluster.local", Kind::A));
        waited += 1;
        env.sleep(std::time::Duration::from_millis(10)).await;
    }
    let name = Data::Ptr("db-0.db.default.svc.cluster.local".into());
    assert_eq!(ask(&known, "7.0.244.10.in-addr.arpa", Kind::Ptr), (Code::Ok, vec![name]));
    assert_eq!(ask(&known, "10-244-0-7.default.pod.cluster.local", Kind::A), pod);
    assert_eq!(ask(&known, "10-244-0-7.nowhere.pod.cluster.local", Kind::A).0, Code::NoSuchName);
    drop(watching);
}
