//! What a server answered, as far as it is compared.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer to one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The status code; 0 for the events of a watch that is read on.
    pub status: u16,
    /// The headers that matter, in a fixed order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
    /// The body as it came, where its bytes are compared.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub raw: String,
    /// What went wrong instead of an answer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// A body.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// None, or an empty one.
    #[default]
    None,
    /// JSON, or YAML read as a tree.
    Tree(Value),
    /// Other text.
    Text(String),
    /// Events of a watch, and whether the server ended it.
    Events(Vec<Value>, bool),
}

/// The answers to the steps of a sequence, and what is needed to read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// When the sequence started, in seconds of Unix time.
    pub started: i64,
    /// How many seconds the server had been up by then, where that is known: the objects of a new cluster are so old.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub age: i64,
    /// One per step; `None` where a step is not compared.
    pub answers: Vec<Option<Answer>>,
    /// Values taken from answers, which stand for the other side's of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captured: Vec<(String, String)>,
}

fn is_zero(age: &i64) -> bool {
    *age == 0
}

/// Headers that are compared by their values, and those of which only the presence counts.
pub const HEADERS: &[&str] =
    &["content-type", "warning", "retry-after", "allow", "location", "www-authenticate"];
/// Headers whose values differ between any two servers.
pub const PRESENT: &[&str] = &["etag"];

/// The headers that matter.
pub fn headers(all: &http::HeaderMap) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for &name in HEADERS {
        for value in all.get_all(name) {
            out.push((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        }
    }
    for &name in PRESENT {
        if all.contains_key(name) {
            out.push((name.to_owned(), "present".to_owned()));
        }
    }
    out
}
