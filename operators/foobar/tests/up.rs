//! As it is shipped: a pod of a cluster, with what `manifests` prints, under a ServiceAccount of its own.

use windlass_testing::up::{Cluster, Folder, program};

const FOOBAR: &str =
    "{apiVersion: test.example.com/v1, kind: FooBar, metadata: {name: one}, spec: {target: sky}}";

#[test]
fn runs_as_a_pod() {
    let folder = Folder::new("foobar-up");
    let windlass = program("windlass-cli", "windlass");
    let cluster = Cluster::up(&windlass, &["--operators", "foobar"], folder.path());
    let pods = cluster.kubectl("get pods -n windlass-system");
    assert!(pods.contains("foobar-operator-") && pods.contains("1/1"), "{pods}");
    let account = "get pods -n windlass-system -o jsonpath={.items[*].spec.serviceAccountName}";
    assert_eq!(cluster.kubectl(account), "foobar-operator");

    std::fs::write(folder.path().join("one.yaml"), FOOBAR).unwrap();
    cluster.kubectl("apply -f one.yaml");
    cluster.kubectl("wait foobar/one --for=condition=Ready --timeout=60s");
    assert_eq!(cluster.kubectl("get configmap one-foobar -o jsonpath={.data.target}"), "sky");
    assert_eq!(cluster.end("-INT").code(), Some(0));
}
