//! The rules of the repository, as code that a test runs on it (`tests/repository.rs`).
//!
//! source files, `cargo metadata` → a checker per rule → findings, each with its place, the rule and the reason
//!
//! - [`arrows`]: which crate may depend on which.
//! - [`purity`]: what the core reaches for: no clock, no socket, no thread, no randomness, no files.
//! - [`files`]: what holds for every file: no registry host names, no file that has outgrown its concept.
//! - [`papers`]: the Chinese README shows the same commands as the English one.
//!
//! The checkers are pure and are tested beside their code with samples that must be found and samples that must not.

pub mod arrows;
pub mod files;
pub mod papers;
pub mod purity;
pub mod repository;
pub mod source;

use std::fmt;

/// One breach of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where: a path from the root of the repository, with `:line` where there is one.
    pub place: String,
    /// What was found and which rule speaks against it.
    pub rule: String,
    /// Why the rule is there, or what to do instead.
    pub reason: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n    {}", self.place, self.rule, self.reason)
    }
}

/// Fails with all findings, one below the other, so that one run shows all there is to mend.
///
/// # Panics
/// When there is any finding.
pub fn assert_none(findings: &[Finding]) {
    let text: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(findings.is_empty(), "{} finding(s):\n{}\n", findings.len(), text.join("\n"));
}
