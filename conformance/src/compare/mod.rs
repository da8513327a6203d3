//! Two transcripts of the same sequence: what differs, beyond what differs between any two runs.
//!
//! Not compared: uids and resourceVersions by value (but by which are the same and which came first), times by
//! value (but by how long after the start), suffixes of generated names, allocated addresses and ports, the
//! wording of messages (kept apart, see [`Comparison::wording`]).

mod links;
mod tree;

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::answer::{Answer, Body, Transcript};
use links::Links;
use tree::Context;

/// Something that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The step, counted from 0.
    pub step: usize,
    /// Where: `status`, `header warning`, `/spec/replicas`, `event 2 /type`.
    pub place: String,
    /// What the reference has there; empty when it has nothing.
    pub reference: String,
    /// What we have there.
    pub ours: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "step {} {}", self.step, self.place)?;
        writeln!(f, "  reference: {}", self.reference)?;
        write!(f, "  ours:      {}", self.ours)
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// What differs.
    pub differences: Vec<Difference>,
    /// Messages that say the same in other words.
    pub wording: Vec<Difference>,
}

/// Rules of which the words count as well: what CEL says of a rule is all that its author has, and what validation says
/// of an object is what kubectl prints.
const WORDED: [&str; 3] = ["crd.rules", "crd.evaluation", "builtin.validation."];

impl Comparison {
    /// Counts the words of causes as differences, where a rule is about them. What a generated parser would have liked to
    /// see in the place of a wrong word is not worth the same words.
    #[must_use]
    pub fn about(mut self, rule: &str) -> Comparison {
        if WORDED.iter().any(|worded| rule.starts_with(worded)) {
            let words = self.wording.iter().filter(|word| word.place.contains("/causes/"));
            let is_syntax = |text: &str| text.contains("Syntax error: ");
            let words = words.filter(|word| !(is_syntax(&word.reference) && is_syntax(&word.ours)));
            let words = words.filter(|word| unnumbered(&word.reference) != unnumbered(&word.ours));
            let words = words.filter(|word| likened(&word.reference) != likened(&word.ours));
            self.differences.extend(words.cloned());
        }
        if rule == "builtin.validation.services" {
            // What was given back may be given again, or not.
            self.differences.retain(|difference| !difference.place.contains("that stood elsewhere"));
        }
        self
    }
}

/// A text in which the ids and addresses that a server draws are one, and lists and maps that are empty are none: Go tells these apart
/// where it prints a value, and nowhere else.
fn likened(text: &str) -> String {
    static ID: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("a pattern of ours")
    });
    static ADDRESS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("10\\.0\\.0\\.[0-9]+").expect("a pattern of ours"));
    let text = ID.replace_all(text, "UID");
    ADDRESS.replace_all(&text, "ADDRESS").replace("[]", "null").replace("{}", "null")
}

/// A text without the number that kube-apiserver puts behind the name of a type, another one each time.
fn unnumbered(text: &str) -> String {
    let mut parts = text.split("selfType");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "selfType" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Compares our transcript with the reference's.
pub fn compare(reference: &Transcript, ours: &Transcript) -> Comparison {
    let mut out = Comparison::default();
    let mut links = Links::default();
    for (step, (a, b)) in reference.answers.iter().zip(&ours.answers).enumerate() {
        let (Some(a), Some(b)) = (a, b) else { continue };
        let mut context = Context::new(step, reference, ours, &mut links, &mut out);
        answers(&mut context, a, b);
    }
    links.check(&mut out.differences);
    out
}

fn answers(context: &mut Context<'_>, a: &Answer, b: &Answer) {
    if a.error.is_empty() != b.error.is_empty() {
        context.differ("transport", &a.error, &b.error);
    }
    if a.status != b.status {
        context.differ("status", &status(a), &status(b));
    }
    let mut names: Vec<&str> = a.headers.iter().chain(&b.headers).map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let values = |answer: &Answer| {
            let values: Vec<_> =
                answer.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect();
            values.join(" | ")
        };
        let (va, vb) = (context.alias_a(&values(a)), context.alias_b(&values(b)));
        if va != vb {
            context.differ(&format!("header {name}"), &va, &vb);
        }
    }
    match (&a.body, &b.body) {
        (Body::Tree(ta), Body::Tree(tb)) if a.status == b.status => context.document("", ta, tb),
        // The difference of the status says it all; two unlike trees would only repeat it.
        (Body::Tree(_), Body::Tree(_)) => {}
        (Body::Text(ta), Body::Text(tb)) if ta != tb => context.differ("body", ta, tb),
        (Body::Events(ea, ended_a), Body::Events(eb, ended_b)) => {
            events(context, ea, eb);
            if ended_a != ended_b {
                context.differ("end of the stream", &ended_a.to_string(), &ended_b.to_string());
            }
        }
        (a, b) if std::mem::discriminant(a) != std::mem::discriminant(b) => {
            context.differ("body", &short(a), &short(b));
        }
        _ => {}
    }
    // Several causes may come from one Go map, and then in any order: two real servers differ in their bytes.
    let ordered = causes(&a.body) < 2 && causes(&b.body) < 2;
    if ordered && (!a.raw.is_empty() || !b.raw.is_empty()) {
        let (ra, rb) = (context.skeleton_a(&a.raw), context.skeleton_b(&b.raw));
        if ra != rb {
            let at = ra.bytes().zip(rb.bytes()).take_while(|(a, b)| a == b).count();
            context.differ(&format!("bytes from {at}"), &around(&ra, at), &around(&rb, at));
        }
    }
}

/// How many causes a refusal names.
fn causes(body: &Body) -> usize {
    let Body::Tree(tree) = body else { return 0 };
    tree["details"]["causes"].as_array().map_or(0, Vec::len)
}

fn events(context: &mut Context<'_>, a: &[Value], b: &[Value]) {
    let (a, b) = (one_bookmark(a), one_bookmark(b));
    let (a, b) = (a.as_slice(), b.as_slice());
    if a.len() != b.len() {
        context.differ("events", &names(a), &names(b));
        return;
    }
    for (index, (ea, eb)) in a.iter().zip(b).enumerate() {
        if ea["type"] != eb["type"] {
            context.differ("events", &names(a), &names(b));
            return;
        }
        context.document(&format!("event {index} "), ea, eb);
    }
}

/// Near the end of a watch the real server sends one bookmark or two, as its timers fall, and perhaps none when it
/// has just sent the one that ends the initial events: of several in a row, that one counts, else the last.
fn one_bookmark(events: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let initial = |event: &Value| event.to_string().contains("k8s.io/initial-events-end");
    for event in events {
        match out.last_mut() {
            Some(last) if last["type"] == "BOOKMARK" && event["type"] == "BOOKMARK" => {
                if !initial(last) {
                    *last = event.clone();
                }
            }
            _ => out.push(event.clone()),
        }
    }
    out
}

fn names(events: &[Value]) -> String {
    let one = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or("?");
        match event["object"]["metadata"]["name"].as_str() {
            Some(name) => format!("{kind} {name}"),
            None => format!("{kind} {}", event["object"]["kind"].as_str().unwrap_or("?")),
        }
    };
    events.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn status(answer: &Answer) -> String {
    match &answer.body {
        Body::Tree(tree) if tree["kind"] == "Status" => {
            format!("{} {} {}", answer.status, tree["reason"].as_str().unwrap_or("-"), tree["message"])
        }
        _ => format!("{} {}", answer.status, answer.error),
    }
}

fn short(body: &Body) -> String {
    let text = match body {
        Body::None => "nothing".into(),
        Body::Tree(tree) => tree.to_string(),
        Body::Text(text) => format!("text {text}"),
        Body::Events(events, _) => names(events),
    };
    text.chars().take(200).collect()
}

fn around(text: &str, at: usize) -> String {
    text.chars().skip(at.saturating_sub(40)).take(120).collect()
}

#[cfg(test)]
mod tests;
