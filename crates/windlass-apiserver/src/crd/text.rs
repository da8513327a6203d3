//! How Go prints values in messages, and its rules for names.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// A number as Go's `%v` prints a float64: no fraction when there is none, and an exponent from a million on.
pub(crate) fn float(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if number != 0.0 && number.is_finite() && !(1e-4..1e6).contains(&number.abs()) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').expect("`e` notation has an exponent");
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    format!("{number}")
}

/// A value as field errors print it: strings quoted, numbers plain, the rest as JSON.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::Number(number) if !number.is_i64() => float(number.as_f64().unwrap_or_default()),
        Value::Array(_) | Value::Object(_) => json(&sorted(value)),
        _ => value.to_string(),
    }
}

/// JSON as Go writes it: safe to stand in HTML.
pub(crate) fn json(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// The same value with the keys of all its objects in order, as Go marshals maps.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_1123: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

static RX_LABEL_1035: LazyLock<Regex> = LazyLock::new(|| anchored(LABEL_1035));
static RX_SUBDOMAIN: LazyLock<Regex> = LazyLock::new(|| anchored(&subdomain_pattern()));

fn anchored(pattern: &str) -> Regex {
    Regex::new(&format!("^(?:{pattern})$")).expect("a fixed pattern")
}

fn subdomain_pattern() -> String {
    format!("{LABEL_1123}(\\.{LABEL_1123})*")
}

/// What is wrong with a DNS-1035 label, comma-separated; empty if nothing is.
pub(crate) fn label_1035(name: &str) -> String {
    let mut faults = Vec::new();
    if name.len() > 63 {
        faults.push("must be no more than 63 characters".to_owned());
    }
    if !RX_LABEL_1035.is_match(name) {
        faults.push(format!(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '{LABEL_1035}')"
        ));
    }
    faults.join(",")
}

/// What is wrong with a DNS-1123 subdomain; empty if nothing is.
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 253 {
        faults.push("must be no more than 253 characters".to_owned());
    }
    if !RX_SUBDOMAIN.is_match(name) {
        let pattern = subdomain_pattern();
        faults.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{pattern}')"
        ));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_go_prints_them() {
        assert_eq!(float(1.0), "1");
        assert_eq!(float(1.5), "1.5");
        assert_eq!(float(999_999.5), "999999.5");
        assert_eq!(float(1_234_567.5), "1.2345675e+06");
        assert_eq!(float(1e21), "1e+21");
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(float), ["+Inf", "-Inf", "NaN"]);
        assert_eq!(float(1.5e-7), "1.5e-07");
        assert_eq!(float(-2.5e30), "-2.5e+30");
    }

    #[test]
    fn names() {
        assert_eq!(label_1035("my-name"), "");
        assert!(label_1035("My").starts_with("a DNS-1035 label"));
        assert!(subdomain("a.b-c.d").is_empty());
        assert_eq!(subdomain("A.b").len(), 1);
    }
}
