//! What the real controllers left, as data: `controllers/recorded/GROUP/SCENARIO.json`, an object a line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::normal::Picture;
use super::scenario::{self, Scenario};

/// Whose end states are recorded.
pub const REFERENCE: &str = "kube-controller-manager v1.36.4";

/// What the real controllers left.
#[derive(Clone, Debug, Deserialize)]
pub struct Recording {
    /// Whose it is.
    pub reference: String,
    /// By the name of the moment.
    pub pictures: BTreeMap<String, Picture>,
}

fn file(scenario: &Scenario) -> PathBuf {
    scenario::folder().join("recorded").join(&scenario.group).join(format!("{}.json", scenario.name))
}

/// Writes what came of a scenario.
///
/// # Errors
/// When the file cannot be written.
pub fn write(scenario: &Scenario, pictures: &BTreeMap<String, Picture>) -> Result<()> {
    write_to(&file(scenario), REFERENCE, pictures)
}

/// Writes pictures to a file, an object a line.
///
/// # Errors
/// When the file cannot be written.
pub fn write_to(file: &Path, reference: &str, pictures: &BTreeMap<String, Picture>) -> Result<()> {
    let mut text = format!("{{\"reference\": {reference:?}, \"pictures\": {{\n");
    for (index, (name, picture)) in pictures.iter().enumerate() {
        let comma = if index == 0 { "" } else { ",\n" };
        write!(text, "{comma}{}: {{", serde_json::to_string(name)?)?;
        for (index, (name, object)) in picture.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(text, "{comma}\n {}: {object}", serde_json::to_string(name)?)?;
        }
        text.push_str("\n}");
    }
    text.push_str("\n}}\n");
    fs::create_dir_all(file.parent().context("the folder of a group")?)?;
    fs::write(file, text).with_context(|| file.display().to_string())
}

/// What was recorded of a scenario.
///
/// # Errors
/// When nothing was, or it is broken.
pub fn read(scenario: &Scenario) -> Result<Recording> {
    read_from(&file(scenario))
}

/// What was recorded in a file.
///
/// # Errors
/// When nothing was, or it is broken.
pub fn read_from(file: &Path) -> Result<Recording> {
    let text = fs::read_to_string(file).with_context(|| format!("{} was not recorded", file.display()))?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}
