//! What installs the operator is accepted by the server.

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use windlass_apiserver::codec::{self, Format};

use super::{missing, text};
use crate::operators::scene::{SOON, Scene};

/// Every document, in every way to ask for them.
pub fn check(scene: &Scene<'_>) -> Result<String> {
    let namespace = scene.namespace.as_str();
    let label = ["label", "namespace", namespace, "pod-security.kubernetes.io/warn=restricted"];
    scene.kubectl.run(&label)?;
    control(scene)?;
    let mut count = 0;
    for args in [
        &["manifests"][..],
        &["manifests", "-n", namespace],
        &["manifests", "-n", namespace, "--namespaced"],
        &["manifests", "--namespaced"],
        &["manifests", "-n", namespace, "--replicas", "2", "--image", "registry.example/foobar:1"],
    ] {
        let printed = scene.print(args)?;
        let documents = documents(&printed)?;
        for kind in ["CustomResourceDefinition", "ServiceAccount", "Deployment", "Service"] {
            ensure!(documents.iter().any(|one| one["kind"] == kind), "{args:?} prints no {kind}:\n{printed}");
        }
        let wide = documents.iter().any(|one| one["kind"] == "ClusterRole");
        ensure!(wide != args.contains(&"--namespaced"), "{args:?} prints another role:\n{printed}");
        accepted(scene, &printed, documents.len()).with_context(|| format!("{args:?}"))?;
        count += documents.len();
    }
    round_trip(scene)?;
    Ok(format!("{count} documents accepted, no warning"))
}

/// The server takes the documents, all of them, and warns of nothing.
fn accepted(scene: &Scene<'_>, printed: &str, count: usize) -> Result<()> {
    let args = ["apply", "--server-side", "--dry-run=server", "-f", "-"];
    let answer = scene.kubectl.anywhere(&args, printed)?;
    ensure!(answer.status.success(), "refused: {}{}", answer.out, answer.err);
    ensure!(answer.err.is_empty(), "warned: {}", answer.err);
    let taken = answer.out.lines().filter(|line| line.contains("serverside-applied")).count();
    ensure!(taken == count, "{taken} of {count} documents were taken:\n{}", answer.out);
    Ok(())
}

/// The server warns of a Deployment that says nothing of its security: silence means something.
fn control(scene: &Scene<'_>) -> Result<()> {
    let args = ["create", "deployment", "careless", "--image=x", "--dry-run=server"];
    let answer = scene.kubectl.try_run(&args, "")?;
    ensure!(answer.status.success(), "{}", answer.err);
    let warned = answer.err.contains("would violate PodSecurity");
    ensure!(warned, "a careless Deployment: {}", answer.err);
    Ok(())
}

/// The stored definition says what the printed one says, and applying it again changes nothing.
fn round_trip(scene: &Scene<'_>) -> Result<()> {
    let printed = documents(&scene.print(&["manifests"])?)?;
    for crd in printed.iter().filter(|one| one["kind"] == "CustomResourceDefinition") {
        let name = text(crd, "/metadata/name")?;
        let apply = || {
            let args =
                ["apply", "--server-side", "--field-manager=foobar-operator", "--force-conflicts", "-f", "-"];
            scene.kubectl.anywhere(&args, &crd.to_string())?;
            scene.kubectl.get("crd", name)?.with_context(|| format!("no {name}"))
        };
        let stored = scene.until("the definition is established", SOON, || {
            let stored = apply()?;
            let is = stored["status"]["conditions"].to_string().contains("Established");
            Ok(if is { Ok(stored) } else { Err(stored.to_string()) })
        })?;
        if let Some(lost) = missing(&crd["spec"], &stored["spec"], "spec") {
            bail!("{name}: {lost}");
        }
        let again = apply()?;
        ensure!(
            again["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"],
            "applied again, {name} changed"
        );
    }
    Ok(())
}

/// The documents of a YAML text.
pub(super) fn documents(text: &str) -> Result<Vec<Value>> {
    let parts = text.split("\n---\n").map(|part| part.trim_start_matches("---\n"));
    parts
        .filter(|part| !part.trim().is_empty())
        .map(|part| {
            let tree =
                codec::parse(part.as_bytes(), Format::Yaml).map_err(|error| anyhow!("{error:?}\n{part}"))?;
            Ok(tree.value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_has_documents() {
        let found = documents("---\na: 1\n---\nb: {c: ---}\n").unwrap();
        assert_eq!(found, [json!({"a": 1}), json!({"b": {"c": "---"}})]);
    }
}
