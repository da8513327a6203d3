//! Custom kinds that others have published: their definitions, their samples, and samples with something wrong in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use windlass_apiserver::codec::{self, Format};

use super::module;
use crate::generate::mutate;
use crate::rng::Rng;
use crate::sequence::{Sequence, Step};

/// Modules, where their definitions are, and where to look for samples.
const MODULES: [(&str, &str, &str); 2] = [
    ("github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds", "test/fixtures"),
    (
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd-full",
        "example",
    ),
];
/// How many wrong objects are made of each sample.
const HARMED: usize = 12;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What is published.
pub struct Sources {
    definitions: Vec<Value>,
    samples: Vec<Value>,
}

/// Reads what the modules carry.
///
/// # Errors
/// They cannot be brought, or read.
pub fn sources() -> Result<Sources> {
    let mut sources = Sources { definitions: Vec::new(), samples: Vec::new() };
    for (name, definitions, samples) in MODULES {
        let folder = module(name)?;
        for file in files(&folder.join(definitions))? {
            let all = documents(&file)?.into_iter();
            sources.definitions.extend(all.filter(|tree| tree["kind"] == "CustomResourceDefinition"));
        }
        let groups: Vec<String> =
            sources.definitions.iter().map(|tree| text(&tree["spec"]["group"])).collect();
        for file in files(&folder.join(samples))? {
            let group =
                |tree: &Value| text(&tree["apiVersion"]).split('/').next().unwrap_or_default().to_owned();
            let of_theirs = |tree: &Value| groups.contains(&group(tree));
            sources.samples.extend(documents(&file)?.into_iter().filter(of_theirs));
        }
    }
    Ok(sources)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The YAML files in a folder and below, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            out.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}

fn documents(file: &Path) -> Result<Vec<Value>> {
    let whole = fs::read_to_string(file)?;
    let parts = whole.split("\n---").filter(|part| part.lines().any(|line| line.contains(':')));
    // A template is no document yet.
    Ok(parts.filter_map(|part| codec::parse(part.as_bytes(), Format::Yaml).ok()).map(|it| it.value).collect())
}

impl Sources {
    /// One sequence a definition.
    pub fn definitions(&self) -> Vec<Sequence> {
        let sequence = |tree: &Value| {
            let name = text(&tree["metadata"]["name"]);
            let is_there = Step::new("GET", format!("{DEFINITIONS}/{name}"));
            let steps = vec![Step::with("POST", DEFINITIONS, tree.clone()), is_there.until(200).quiet()];
            Sequence { rule: "published.definitions".to_owned(), name, generated: false, steps }
        };
        self.definitions.iter().map(sequence).collect()
    }
}

/// Samples as they are, and with something wrong in them.
pub fn objects(sources: &Sources, seed: u64) -> Vec<Sequence> {
    let mut kinds = BTreeMap::new();
    for definition in &sources.definitions {
        let spec = &definition["spec"];
        kinds.insert((text(&spec["group"]), text(&spec["names"]["kind"])), spec);
    }
    let mut out = Vec::new();
    for (at, sample) in sources.samples.iter().enumerate() {
        let version = text(&sample["apiVersion"]);
        let group = version.split('/').next().unwrap_or_default().to_owned();
        let Some(spec) = kinds.get(&(group, text(&sample["kind"]))) else { continue };
        let plural = text(&spec["names"]["plural"]);
        let path = match spec["scope"] == "Namespaced" {
            true => format!("/apis/{version}/namespaces/{{ns}}/{plural}"),
            false => format!("/apis/{version}/{plural}"),
        };
        let mut sample = sample.clone();
        let name = format!("{}-{{id}}", text(&sample["metadata"]["name"]));
        sample["metadata"]["name"] = json!(name);
        sample["metadata"].as_object_mut().expect("an object").remove("namespace");
        let served = || Step::new("GET", path.clone()).until(200).quiet();
        let sequence = |name: String, steps: Vec<Step>| Sequence {
            rule: "published.objects".to_owned(),
            name: format!("{} {at} {name}", text(&sample["kind"])),
            generated: false,
            steps,
        };
        let one = format!("{path}/{name}");
        out.push(sequence(
            "as it is".to_owned(),
            vec![
                served(),
                Step::with("POST", path.clone(), sample.clone()),
                Step::new("GET", one.clone()),
                Step::patch("merge", one.clone(), json!({"metadata": {"labels": {"a": "b"}}})),
                Step::new("GET", one.clone())
                    .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),
                Step::patch("merge", one.clone(), json!({"spec": null})),
                Step::new("DELETE", one),
            ],
        ));
        let mut rng = Rng::part(seed, "published", at);
        let wrong = (0..HARMED).map(|_| {
            let mut tree = sample.clone();
            mutate::harm(&mut rng, &mut tree);
            Step::with("POST", format!("{path}?dryRun=All&fieldValidation=Strict"), tree)
        });
        let steps = std::iter::once(served()).chain(wrong).collect();
        out.push(sequence(format!("with harm, seed {seed}"), steps));
    }
    out
}
