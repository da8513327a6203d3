//! The rules that sequences are counted by: `rules.yaml`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use windlass_apiserver::codec::{self, Format};

use crate::sequence::{self, Sequence};

/// Every rule has at least so many sequences.
pub const LEAST: usize = 10;

/// Rule ids and what they say, in order of id.
///
/// # Panics
/// When the file, which is part of the program, is broken.
pub fn all() -> BTreeMap<String, String> {
    let parsed = codec::parse(include_bytes!("../rules.yaml"), Format::Yaml).expect("rules.yaml is YAML");
    let rules = parsed.value;
    let rules = rules.as_object().expect("rules.yaml is an object");
    rules.iter().map(|(id, text)| (id.clone(), text.as_str().expect("a rule is text").to_owned())).collect()
}

/// All sequences of `sequences/`: written by hand, or recorded from kubectl. In order of file.
///
/// # Errors
/// When a file is broken, names an unknown rule, or names a sequence twice.
pub fn hand_written() -> Result<Vec<Sequence>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sequences");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let rules = all();
    let mut seen = std::collections::BTreeSet::new();
    let mut out = Vec::new();
    for file in files {
        let sequences =
            sequence::read(&std::fs::read_to_string(&file)?).with_context(|| file.display().to_string())?;
        for sequence in sequences {
            if !rules.contains_key(&sequence.rule) {
                bail!("{}: no rule {}", file.display(), sequence.rule);
            }
            if !seen.insert((sequence.rule.clone(), sequence.name.clone())) {
                bail!("{}: {}/{} is there twice", file.display(), sequence.rule, sequence.name);
            }
            out.push(sequence);
        }
    }
    Ok(out)
}
