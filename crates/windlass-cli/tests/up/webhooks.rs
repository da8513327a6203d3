//! A webhook in a pod, behind a Service: the server reaches it, and what it says counts.

use std::path::Path;
use std::time::Duration;

use crate::support::Folder;
use crate::{until_within, up};

/// One configuration of one hook for ConfigMaps.
fn configuration(kind: &str, path: &str, authority: &str, selector: &str) -> String {
    format!(
        r#"{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "{kind}WebhookConfiguration",
        "metadata": {{"name": "hook"}}, "webhooks": [{{"name": "{path}.hook.example",
        "clientConfig": {{"service": {{"namespace": "default", "name": "hook", "path": "/{path}"}}, "caBundle": "{authority}"}},
        "rules": [{{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}}],
        "objectSelector": {{"matchLabels": {selector}}},
        "sideEffects": "None", "admissionReviewVersions": ["v1beta1"], "timeoutSeconds": 5}}]}}"#
    )
}

#[test]
fn a_webhook_in_a_pod_is_asked() {
    let folder = Folder::new("webhooks");
    let made = rcgen::generate_simple_self_signed(["hook.default.svc".to_owned()]).unwrap();
    std::fs::write(folder.path().join("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    let cluster = up(&[], folder.path());
    cluster.kubectl("create secret tls hook --cert tls.crt --key tls.key");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/up/data/webhook.yaml");
    cluster.kubectl(&format!("apply -f {}", manifest.display()));
    cluster.kubectl("wait pod hook --for=condition=Ready --timeout=60s");
    let authority = cluster.kubectl("get secret hook -o jsonpath={.data.tls\\\\.crt}");
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    write("mutating.json", configuration("Mutating", "label", &authority, "{}"));
    // What the first one adds, the second one sees.
    write(
        "validating.json",
        configuration("Validating", "refuse", &authority, r#"{"hooked": "yes", "refuse": "me"}"#),
    );
    // The Service may take a moment to know its pod.
    until_within(Duration::from_secs(30), "the Service has an endpoint", || {
        cluster.kubectl("get endpoints hook -o jsonpath={.subsets[*].addresses[*].ip}").contains('.')
    });
    cluster.kubectl("apply -f mutating.json -f validating.json");

    assert_eq!(cluster.kubectl("create configmap first"), "configmap/first created\n");
    assert_eq!(cluster.kubectl("get configmap first -o jsonpath={.metadata.labels}"), r#"{"hooked":"yes"}"#);
    write(
        "refused.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: second, labels: {refuse: me}}}".to_owned(),
    );
    // The patch sets all labels: the one that the second hook asks for is gone.
    cluster.kubectl("create -f refused.yaml");
    cluster.kubectl("delete mutatingwebhookconfiguration hook");
    write("validating.json", configuration("Validating", "refuse", &authority, r#"{"refuse": "me"}"#));
    cluster.kubectl("apply -f validating.json");
    cluster.kubectl("delete configmap second");
    let (done, said) = cluster.try_kubectl("create -f refused.yaml");
    let refusal = "admission webhook \"refuse.hook.example\" denied the request: not on my watch";
    assert!(!done && said.contains(refusal), "{said}");

    cluster.kubectl("delete pod hook");
    let (done, said) = cluster.try_kubectl("create -f refused.yaml");
    let failure = "failed calling webhook \"refuse.hook.example\": failed to call webhook: Post \
                   \"https://hook.default.svc:443/refuse?timeout=5s\": ";
    assert!(!done && said.contains(failure), "{said}");
    assert_eq!(cluster.kubectl("create configmap third"), "configmap/third created\n");
}
