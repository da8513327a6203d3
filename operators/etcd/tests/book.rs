//! The chapter for those who run etcd leaves nothing out. What it shows is run by the tests of `windlass up`.

use std::path::Path;

use etcd_operator::api::EtcdCluster;
use etcd_operator::goal::RULES;
use kube::CustomResourceExt as _;

fn chapter() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/etcd.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_rule_says_what_to_do() {
    let chapter = chapter();
    for rule in &RULES {
        let row = format!("\n| `{}` |", rule.name);
        assert!(chapter.contains(&row), "{rule:?} has no row");
    }
}

#[test]
fn every_field_of_the_spec_is_told_of() {
    let chapter = chapter();
    let crd = EtcdCluster::crd();
    let schema = crd.spec.versions[0].schema.as_ref().and_then(|all| all.open_api_v3_schema.as_ref());
    let spec = &schema.unwrap().properties.as_ref().unwrap()["spec"];
    for (name, field) in spec.properties.as_ref().unwrap() {
        // Of a pod's template the fields have no rows of their own: they are Kubernetes'.
        let parts = field.properties.iter().flatten().map(|(part, _)| match name.as_str() {
            "podTemplate" => part.clone(),
            _ => format!("{name}.{part}"),
        });
        for field in [name.clone()].into_iter().filter(|_| field.properties.is_none()).chain(parts) {
            assert!(chapter.contains(&format!("`{field}`")), "{field} is not told of");
        }
    }
}
