//! Selectors, revisions, tokens and options that make no sense.

use super::{Asked, JSON, MAPS};

const BAD: (u16, &str) = (400, "BadRequest");
const INVALID: (u16, &str) = (422, "Invalid");
const LIST: (u16, &str) = (200, "ConfigMapList");

fn get(parameter: &str, values: &[(&str, (u16, &str))]) {
    let mut asked = Asked::new();
    for (value, want) in values {
        asked.ask("GET", &format!("{MAPS}?{parameter}{value}"), "", "", *want);
    }
    asked.finish();
}

#[test]
fn label_selectors() {
    let long = "x".repeat(64);
    let long_value = format!("a={long}");
    get(
        "labelSelector=",
        &[
            ("a=", LIST),
            ("a==b=c", BAD),
            ("a+in", BAD),
            ("a+in+(", BAD),
            ("a+in+(b", BAD),
            ("a+in+()", LIST),
            ("(", BAD),
            ("a,,b", BAD),
            ("=a", BAD),
            ("!", BAD),
            ("!!a", BAD),
            ("a%3Ex", BAD),
            ("a%3E", BAD),
            ("a%3C-1", BAD),
            ("a%3E99999999999999999999", BAD),
            ("%00", LIST),
            ("a%ff", BAD),
            ("-a", BAD),
            ("a/b/c", BAD),
            ("a+notin", BAD),
            ("a+in+(b+c)", BAD),
            ("a+b", BAD),
            ("%C3%A9", BAD),
            (&long, BAD),
            (&long_value, BAD),
            // A parameter that does not decode is one that was not given.
            ("%zz", LIST),
        ],
    );
}

#[test]
fn field_selectors() {
    get(
        "fieldSelector=",
        &[
            ("a=b", BAD),
            ("metadata.name", BAD),
            ("=", LIST),
            ("metadata.name=", LIST),
            ("metadata.name=a=b", BAD),
            ("metadata.name===b", BAD),
            ("metadata.name=a%5C", BAD),
            ("metadata.name!=", LIST),
            ("metadata.name=a,", LIST),
            ("metadata.name%3Ea", BAD),
            ("spec.x=1", BAD),
            (",", LIST),
        ],
    );
}

#[test]
fn revisions_and_limits() {
    let future = (504, "Timeout");
    get(
        "",
        &[
            ("resourceVersion=x", BAD),
            ("resourceVersion=-1", BAD),
            ("resourceVersion=1.5", BAD),
            ("resourceVersion=99999999999999999999", BAD),
            ("resourceVersion=18446744073709551615", future),
            ("resourceVersion=9223372036854775807", future),
            ("resourceVersion=1&resourceVersionMatch=Nope", INVALID),
            ("resourceVersionMatch=Exact", INVALID),
            ("resourceVersion=0&resourceVersionMatch=Exact", INVALID),
            ("limit=x", BAD),
            ("limit=-1", LIST),
            ("limit=99999999999999999999", BAD),
            ("timeoutSeconds=x", BAD),
            ("pretty=x", LIST),
            ("allowWatchBookmarks=x", LIST),
            ("sendInitialEvents=true", INVALID),
            ("%zz=1", LIST),
            (";", LIST),
            ("a&&&=", LIST),
            ("labelSelector=a&labelSelector=b", LIST),
        ],
    );
}

#[test]
fn continue_tokens() {
    get(
        "continue=",
        &[
            ("x", BAD),
            ("%00", BAD),
            // {}
            ("e30", BAD),
            // {"v":"meta.k8s.io/v1"}
            ("eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", BAD),
            // {"v":"meta.k8s.io/v1","rv":1,"start":"../x"}
            ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi94In0", BAD),
            // {"v":"meta.k8s.io/v1","rv":999999999999,"start":"a"}
            ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTk5OTk5OTk5OTk5LCJzdGFydCI6ImEifQ", (504, "Timeout")),
            ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTk5OTk5OTk5OTk5LCJzdGFydCI6ImEifQ&resourceVersion=5", BAD),
        ],
    );
}

#[test]
fn watches() {
    get(
        "watch=1&",
        &[
            ("resourceVersion=x", (500, "Status")),
            ("timeoutSeconds=x", BAD),
            ("sendInitialEvents=x", INVALID),
            ("timeoutSeconds=1&continue=x", INVALID),
        ],
    );
}

#[test]
fn write_options() {
    let mut asked = Asked::new();
    let body = r#"{"metadata":{"name":"z"}}"#;
    let long = format!("fieldManager={}", "m".repeat(129));
    for (query, want) in [
        ("dryRun=x", INVALID),
        ("dryRun=", INVALID),
        ("dryRun=All&dryRun=All", (201, "ConfigMap")),
        ("fieldValidation=x", INVALID),
        ("fieldManager=%00", INVALID),
        (&long, INVALID),
    ] {
        asked.ask("POST", &format!("{MAPS}?{query}"), JSON, body, want);
    }
    for (query, want) in [
        ("gracePeriodSeconds=x", BAD),
        ("propagationPolicy=x", INVALID),
        ("orphanDependents=true&propagationPolicy=Orphan", INVALID),
        ("gracePeriodSeconds=-1&dryRun=All", (200, "Status")),
    ] {
        asked.ask("DELETE", &format!("{MAPS}/a?{query}"), "", "", want);
    }
    asked.finish();
}
