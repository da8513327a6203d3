//! Two JSON trees.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::links::Links;
use super::{Comparison, Difference};
use crate::answer::Transcript;

/// How much later a time may be on one side than on the other, counted from the start of the sequence.
const DRIFT_SECONDS: i64 = 30;

/// The characters of generated suffixes.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// One step of two transcripts under comparison.
pub struct Context<'a> {
    step: usize,
    reference: &'a Transcript,
    ours: &'a Transcript,
    links: &'a mut Links,
    out: &'a mut Comparison,
}

/// What the value at hand is part of.
#[derive(Clone, Copy, Default)]
struct Inside {
    status: bool,
    list: bool,
    bookmark: bool,
    cells: bool,
    version: bool,
}

impl<'a> Context<'a> {
    pub fn new(
        step: usize,
        reference: &'a Transcript,
        ours: &'a Transcript,
        links: &'a mut Links,
        out: &'a mut Comparison,
    ) -> Context<'a> {
        Context { step, reference, ours, links, out }
    }

    pub fn differ(&mut self, place: &str, reference: &str, ours: &str) {
        let difference = Difference {
            step: self.step,
            place: place.into(),
            reference: reference.into(),
            ours: ours.into(),
        };
        self.out.differences.push(difference);
    }

    fn word(&mut self, place: &str, reference: &str, ours: &str) {
        let difference = Difference {
            step: self.step,
            place: place.into(),
            reference: reference.into(),
            ours: ours.into(),
        };
        self.out.wording.push(difference);
    }

    /// A whole answer or event.
    pub fn document(&mut self, place: &str, a: &Value, b: &Value) {
        let version = a.get("gitVersion").is_some();
        self.value(place, "", a, b, Inside { version, ..Inside::default() });
    }

    fn value(&mut self, place: &str, key: &str, a: &Value, b: &Value, inside: Inside) {
        match (a, b) {
            (Value::Object(x), Value::Object(y)) => self.object(place, x, y, inside),
            (Value::Array(x), Value::Array(y)) => self.array(place, key, x, y, inside),
            (Value::String(x), Value::String(y)) => self.text(place, key, x, y, inside),
            (Value::Number(x), Value::Number(y)) if allocated_port(key, x) && allocated_port(key, y) => {
                self.links.same("port", self.step, place, &x.to_string(), &y.to_string());
            }
            _ if a == b => {}
            _ => self.differ(place, &show(a), &show(b)),
        }
    }

    fn object(&mut self, place: &str, a: &Map<String, Value>, b: &Map<String, Value>, inside: Inside) {
        let kind = a.get("kind").and_then(Value::as_str).unwrap_or_default();
        let inside = Inside {
            status: kind == "Status" || inside.status,
            list: a.contains_key("items") || a.contains_key("rows") || (inside.list && kind.is_empty()),
            bookmark: inside.bookmark || a.get("type").is_some_and(|t| t == "BOOKMARK"),
            ..inside
        };
        if let (Some(x), Some(y)) = (generated_name(a), generated_name(b)) {
            self.links.same("generated name", self.step, &format!("{place}/name"), x, y);
        }
        for (key, x) in a {
            let here = format!("{place}/{key}");
            match b.get(key).or_else(|| same_but_for_uids(key, a, b)) {
                None => self.differ(&here, &show(x), ""),
                Some(_) if key == "name" && generated_name(a).is_some() && generated_name(b).is_some() => {}
                Some(y) if inside.version && key != "gitVersion" && key != "major" && key != "minor" => {
                    if x.is_string() != y.is_string() {
                        self.differ(&here, &show(x), &show(y));
                    }
                }
                Some(y) => {
                    let list = match key.as_str() {
                        // The versions of items and events are exact again.
                        "items" | "rows" | "object" => false,
                        _ => inside.list,
                    };
                    let cells = key == "cells";
                    self.value(&here, key, x, y, Inside { list, cells, ..inside });
                }
            }
        }
        for (key, y) in b {
            if !a.contains_key(key) && same_but_for_uids(key, b, a).is_none() {
                self.differ(&format!("{place}/{key}"), "", &show(y));
            }
        }
    }

    fn array(&mut self, place: &str, key: &str, a: &[Value], b: &[Value], inside: Inside) {
        let (a, b) = match key {
            // Go reports some causes in the order of a map.
            "causes" if inside.status => {
                let keys = ["field", "reason", "message"];
                (sorted(a, &keys), sorted(b, &keys))
            }
            // Their order is that of their times, in whole seconds.
            "managedFields" => {
                let keys = ["operation", "manager", "apiVersion", "subresource"];
                (sorted(a, &keys), sorted(b, &keys))
            }
            // Two controllers of kube-apiserver write conditions of such a definition, whichever comes first.
            "conditions" if a.iter().any(|a| a["type"] == "KubernetesAPIApprovalPolicyConformant") => {
                (sorted(a, &["type"]), sorted(b, &["type"]))
            }
            // Bindings are read from a map.
            "resourceRules" | "nonResourceRules" => (by_text(a), by_text(b)),
            _ => (a.to_vec(), b.to_vec()),
        };
        if a.len() != b.len() {
            let place = format!("{place} ({} against {} items)", a.len(), b.len());
            self.differ(&place, &show(&Value::from(a)), &show(&Value::from(b)));
            return;
        }
        for (index, (x, y)) in a.iter().zip(&b).enumerate() {
            // An element keeps the name of its list: addresses in `clusterIPs`.
            self.value(&format!("{place}/{index}"), key, x, y, inside);
        }
    }

    fn text(&mut self, place: &str, key: &str, a: &str, b: &str, inside: Inside) {
        if is_uid(a) && is_uid(b) {
            return self.links.same("uid", self.step, place, a, b);
        }
        match key {
            "resourceVersion" => {
                if let (Ok(x), Ok(y)) = (a.parse(), b.parse()) {
                    return self.links.version(self.step, place, x, y, !inside.list && !inside.bookmark);
                }
            }
            "continue" => return self.token(place, a, b),
            "clusterIP" | "clusterIPs" if allocated_ip(a) && allocated_ip(b) => {
                return self.links.same("address", self.step, place, a, b);
            }
            "serverAddress" => return,
            // The name that would have been generated for an object that was refused.
            "name" if inside.status && same_but_for_suffix(a, b) => return,
            _ => {}
        }
        if a == b {
            return;
        }
        let (x, y) = (self.alias_a(a), self.alias_b(b));
        if x == y
            || (inside.cells && (self.same_age(a, b) || skeleton(a) == skeleton(b)))
            || self.same_time(a, b)
            || same_hash(a, b)
        {
            return;
        }
        // The id of a token.
        if x.starts_with("JTI=") && y.starts_with("JTI=") {
            return;
        }
        // Which of several bindings is named is chance, and so is the order of roles that are missing.
        let granted = |text: &str| text.starts_with("RBAC: allowed by ");
        if matches!(key, "reason" | "evaluationError") && missing_sorted(&x) == missing_sorted(&y) {
            return;
        }
        if inside.status && key == "message" || key == "reason" && granted(&x) && granted(&y) {
            self.word(place, &x, &y);
        } else {
            self.differ(place, &x, &y);
        }
    }

    /// Tokens of paged lists: the same but for the version in them.
    fn token(&mut self, place: &str, a: &str, b: &str) {
        match (decode_token(a), decode_token(b)) {
            (Some(x), Some(y)) => {
                for key in ["v", "start"] {
                    if x[key] != y[key] {
                        self.differ(&format!("{place} token {key}"), &show(&x[key]), &show(&y[key]));
                    }
                }
                if let (Some(va), Some(vb)) = (x["rv"].as_i64(), y["rv"].as_i64()) {
                    match (u64::try_from(va), u64::try_from(vb)) {
                        (Ok(va), Ok(vb)) => self.links.version(self.step, place, va, vb, false),
                        _ if va == vb => {}
                        _ => self.differ(&format!("{place} token rv"), &va.to_string(), &vb.to_string()),
                    }
                }
            }
            _ if a == b => {}
            _ => self.differ(place, a, b),
        }
    }

    /// Whether two times are as long after the start of their sequences, or of their servers.
    fn same_time(&self, a: &str, b: &str) -> bool {
        let (Ok(x), Ok(y)) = (a.parse::<Timestamp>(), b.parse::<Timestamp>()) else { return false };
        let drift = (x.as_second() - self.reference.started) - (y.as_second() - self.ours.started);
        let drift_of_servers = drift + self.reference.age - self.ours.age;
        a.len() == b.len() && drift.abs().min(drift_of_servers.abs()) <= DRIFT_SECONDS
    }

    /// The same of two ages.
    fn same_age(&self, a: &str, b: &str) -> bool {
        let (Some(x), Some(y)) = (age(a), age(b)) else { return false };
        let drift_of_servers = (x - self.reference.age) - (y - self.ours.age);
        (x - y).abs().min(drift_of_servers.abs()) <= DRIFT_SECONDS
    }

    /// The text with what was captured replaced by its name.
    pub fn alias_a(&self, text: &str) -> String {
        alias(text, &self.reference.captured)
    }

    /// The same for our side.
    pub fn alias_b(&self, text: &str) -> String {
        alias(text, &self.ours.captured)
    }

    /// The bytes of an answer without the values that differ between any two runs.
    pub fn skeleton_a(&self, raw: &str) -> String {
        skeleton(&self.alias_a(raw))
    }

    /// The same for our side.
    pub fn skeleton_b(&self, raw: &str) -> String {
        skeleton(&self.alias_b(raw))
    }
}

fn alias(text: &str, captured: &[(String, String)]) -> String {
    let mut out = text.to_owned();
    for (name, value) in captured {
        // Short values, such as small versions, also stand where they mean something else.
        if value.len() >= 5 {
            out = out.replace(value.as_str(), &format!("{{{name}}}"));
        }
    }
    out
}

fn skeleton(raw: &str) -> String {
    use std::sync::OnceLock;
    static PATTERNS: OnceLock<Vec<(regex::Regex, &str)>> = OnceLock::new();
    let patterns = PATTERNS.get_or_init(|| {
        [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "<microtime>"),
            (r#"("resourceVersion":\s*)"\d+""#, "$1\"<version>\""),
            (r#"("continue":\s*)"[^"]+""#, "$1\"<token>\""),
            (r"resourceVersion: .\d+.", "resourceVersion: <version>"),
            (r"\b10\.0\.0\.\d+\b", "<address>"),
            (r"127\.0\.0\.1:\d+", "<server>"),
            // Ports of nodes, which are drawn, as services show them in tables and as they are written.
            (r":3\d{4}/(TCP|UDP|SCTP)\b", ":<port>/$1"),
            (r#"("(?:nodePort|healthCheckNodePort)":\s*)3\d{4}\b"#, "$1<port>"),
        ]
        .into_iter()
        .map(|(pattern, with)| (regex::Regex::new(pattern).expect("a pattern"), with))
        .collect()
    });
    patterns
        .iter()
        .fold(raw.to_owned(), |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}

fn generated_name(metadata: &Map<String, Value>) -> Option<&str> {
    let base = metadata.get("generateName")?.as_str()?;
    let name = metadata.get("name")?.as_str()?;
    let suffix = name.strip_prefix(&base[..base.len().min(58)])?;
    let random = suffix.len() == 5 && suffix.bytes().all(|b| SUFFIX.contains(&b));
    random.then_some(name)
}

fn same_but_for_suffix(a: &str, b: &str) -> bool {
    let cut = |text: &str| {
        let (base, suffix) = text.split_at_checked(text.len().checked_sub(5)?)?;
        suffix.bytes().all(|b| SUFFIX.contains(&b)).then(|| base.to_owned())
    };
    cut(a).is_some() && cut(a) == cut(b)
}

/// The value in `there` whose key is that of `here` with another uid in it: `k:{"uid":"…"}`.
fn same_but_for_uids<'a>(
    key: &str,
    here: &Map<String, Value>,
    there: &'a Map<String, Value>,
) -> Option<&'a Value> {
    let plain = skeleton(key);
    if plain == key {
        return None;
    }
    let (_, value) =
        there.iter().find(|(other, _)| !here.contains_key(*other) && skeleton(other) == plain)?;
    Some(value)
}

fn is_uid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

fn allocated_ip(text: &str) -> bool {
    text.starts_with("10.0.0.")
}

fn allocated_port(key: &str, number: &serde_json::Number) -> bool {
    matches!(key, "nodePort" | "healthCheckNodePort")
        && number.as_u64().is_some_and(|n| (30_000..32_768).contains(&n))
}

/// The seconds of an age as tables show it: `5s`, `2m11s`, `3h`.
fn age(text: &str) -> Option<i64> {
    let mut seconds = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: i64 = rest[..digits].parse().ok()?;
        let unit = match rest[digits..].chars().next()? {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return None,
        };
        seconds += number.checked_mul(unit)?;
        rest = &rest[digits + 1..];
    }
    (!text.is_empty()).then_some(seconds)
}

/// Paths of OpenAPI documents, which carry a hash of the content.
fn same_hash(a: &str, b: &str) -> bool {
    match (a.split_once("?hash="), b.split_once("?hash=")) {
        (Some((x, hash_a)), Some((y, hash_b))) => x == y && hash_a.len() == hash_b.len(),
        _ => false,
    }
}

fn decode_token(token: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).ok()?).ok()
}

fn sorted(list: &[Value], keys: &[&str]) -> Vec<Value> {
    let mut list = list.to_vec();
    list.sort_by_key(|item| keys.iter().map(|key| item[key].to_string()).collect::<Vec<_>>());
    list
}

fn by_text(list: &[Value]) -> Vec<Value> {
    let mut list = list.to_vec();
    list.sort_by_key(Value::to_string);
    list
}

/// A list of errors in brackets, in order.
fn missing_sorted(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split([',', '[', ']']).map(str::trim).collect();
    words.sort_unstable();
    words
}

fn show(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 400 { text } else { text.chars().take(400).collect::<String>() + " …" }
}
