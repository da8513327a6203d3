//! Differences that are meant: `docs/api-differences.md`.
//!
//! An entry is a heading `### id: title`, prose that gives the reason, and a list of patterns, in which `*` stands
//! for anything: `- rules:`, `- place:`, `- reference:`, `- ours:`, each followed by a pattern in backticks.

use anyhow::{Result, bail};

use crate::compare::Difference;

/// There are never more.
pub const MOST: usize = 20;

/// One entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The id.
    pub id: String,
    rules: String,
    place: String,
    reference: String,
    ours: String,
}

/// Reads the document.
///
/// # Errors
/// When an entry has no rules or no place, or there are too many.
pub fn read(document: &str) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in document.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            let id = heading.split(':').next().unwrap_or_default().trim().to_owned();
            entries.push(Entry { id, reference: "*".into(), ours: "*".into(), ..Entry::default() });
        } else if let (Some(entry), Some((key, pattern))) = (entries.last_mut(), pattern(line)) {
            match key {
                "rules" => entry.rules = pattern.into(),
                "place" => entry.place = pattern.into(),
                "reference" => entry.reference = pattern.into(),
                "ours" => entry.ours = pattern.into(),
                other => bail!("{}: an entry knows no `{other}`", entry.id),
            }
        }
    }
    if entries.len() > MOST {
        bail!("{} differences are explained, and there may be {MOST}", entries.len());
    }
    if let Some(entry) = entries.iter().find(|entry| entry.rules.is_empty() || entry.place.is_empty()) {
        bail!("{} names no rules or no place", entry.id);
    }
    Ok(entries)
}

fn pattern(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.strip_prefix("- ")?.split_once(": `")?;
    Some((key, rest.strip_suffix('`')?))
}

/// The entry that explains a difference.
pub fn explain<'a>(entries: &'a [Entry], rule: &str, difference: &Difference) -> Option<&'a Entry> {
    entries.iter().find(|entry| {
        matches(&entry.rules, rule)
            && matches(&entry.place, &difference.place)
            && matches(&entry.reference, &difference.reference)
            && matches(&entry.ours, &difference.ours)
    })
}

/// Whether the text is of the pattern, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(tail, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_match_by_pattern() {
        let text = "# T\n\n### d1: protobuf answers\nBecause.\n- rules: `negotiate.*`\n- place: `header content-type`\n- reference: `*protobuf*`\n";
        let entries = read(text).unwrap();
        let mut difference = Difference {
            step: 0,
            place: "header content-type".into(),
            reference: "application/vnd.kubernetes.protobuf".into(),
            ours: "application/json".into(),
        };
        assert_eq!(explain(&entries, "negotiate.accept", &difference).unwrap().id, "d1");
        assert_eq!(explain(&entries, "list.basic", &difference), None);
        difference.reference = "application/json".into();
        assert_eq!(explain(&entries, "negotiate.accept", &difference), None);
    }

    #[test]
    fn an_entry_without_a_place_or_one_too_many_is_refused() {
        assert!(read("### d1: x\n- rules: `a`\n").is_err());
        let many: String = (0..=MOST).map(|i| format!("### d{i}: x\n- rules: `a`\n- place: `b`\n")).collect();
        assert!(read(&many).is_err());
    }

    #[test]
    fn the_document_of_the_project_can_be_read() {
        read(include_str!("../../docs/api-differences.md")).unwrap();
    }
}
