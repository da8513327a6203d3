//! Patches that are garbage, too long, or take from the object what makes it one.

use super::{Asked, MAPS};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

const BAD: (u16, &str) = (400, "BadRequest");
const INVALID: (u16, &str) = (422, "Invalid");
const DONE: (u16, &str) = (200, "ConfigMap");

#[test]
fn json_patches() {
    let mut asked = Asked::new();
    let path = format!("{MAPS}/a");
    for (body, want) in [
        (&b"\xde\xad"[..], BAD),
        (b"", BAD),
        (b"{}", BAD),
        (b"[1]", BAD),
        (b"null", DONE),
        (br#"[{"op":"nope","path":"/a"}]"#, INVALID),
        (br#"[{"path":"/a"}]"#, INVALID),
        (br#"[{"op":"remove"}]"#, INVALID),
        (br#"[{"op":"remove","path":""}]"#, INVALID),
        (br#"[{"op":"replace","path":"","value":1}]"#, INVALID),
        (br#"[{"op":"replace","path":"","value":null}]"#, INVALID),
        (br#"[{"op":"replace","path":"","value":[]}]"#, INVALID),
        (br#"[{"op":"replace","path":"","value":{}}]"#, BAD),
        (br#"[{"op":"replace","path":"/metadata","value":null}]"#, BAD),
        (br#"[{"op":"replace","path":"/metadata","value":"x"}]"#, INVALID),
        (br#"[{"op":"replace","path":"/metadata","value":[]}]"#, INVALID),
        (br#"[{"op":"replace","path":"/kind","value":"Pod"}]"#, INVALID),
        (br#"[{"op":"remove","path":"/kind"}]"#, DONE),
        (br#"[{"op":"replace","path":"/metadata/uid","value":"x"}]"#, INVALID),
        (br#"[{"op":"replace","path":"/metadata/name","value":"x"}]"#, BAD),
        (br#"[{"op":"replace","path":"/metadata/namespace","value":"x"}]"#, BAD),
        (br#"[{"op":"replace","path":"/metadata/resourceVersion","value":"x"}]"#, (500, "Status")),
        (
            br#"[{"op":"add","path":"/metadata/finalizers","value":[]},
                {"op":"add","path":"/metadata/finalizers/99999999999999999999","value":"x"}]"#,
            INVALID,
        ),
    ] {
        asked.ask("PATCH", &path, JSON_PATCH, body, want);
    }
    asked.ask("PATCH", &path, "", "{}", (415, "UnsupportedMediaType"));
    asked.ask("PATCH", &path, "text/plain", "{}", (415, "UnsupportedMediaType"));
    asked.finish();
}

#[test]
fn ten_thousand_operations_and_one_more() {
    let mut asked = Asked::new();
    let path = format!("{MAPS}/a?dryRun=All");
    let many = |n: usize| format!("[{}]", vec![r#"{"op":"add","path":"/data/a","value":"1"}"#; n].join(","));
    asked.ask("PATCH", &path, JSON_PATCH, many(10_000), DONE);
    asked.ask("PATCH", &path, JSON_PATCH, many(10_001), (413, "RequestEntityTooLarge"));
    asked.finish();
}

#[test]
fn merge_patches() {
    let mut asked = Asked::new();
    let path = format!("{MAPS}/a");
    for (body, want) in [
        (&b"\xde"[..], BAD),
        (b"null", BAD),
        (b"[]", BAD),
        (b"1", BAD),
        (br#"{"metadata":null}"#, BAD),
        (br#"{"metadata":1}"#, INVALID),
    ] {
        asked.ask("PATCH", &path, MERGE, body, want);
    }
    asked.finish();
}

#[test]
fn strategic_patches() {
    let mut asked = Asked::new();
    let path = format!("{MAPS}/a");
    for (body, want) in [
        (&b"\xde"[..], BAD),
        (b"null", DONE),
        (b"[]", BAD),
        (br#"{"$patch":"nope"}"#, (500, "Status")),
        (br#"{"$patch":"replace"}"#, BAD),
        (br#"{"$patch":"delete"}"#, BAD),
        (br#"{"metadata":1}"#, INVALID),
        (br#"{"metadata":null}"#, BAD),
        (br#"{"metadata":{"finalizers":1}}"#, INVALID),
    ] {
        asked.ask("PATCH", &path, STRATEGIC, body, want);
    }
    asked.finish();
}

#[test]
fn applied_configurations() {
    let mut asked = Asked::new();
    let path = format!("{MAPS}/a?fieldManager=m");
    for (body, want) in [
        (&b"\xde"[..], BAD),
        (b"", BAD),
        (b"null", BAD),
        (b"[]", BAD),
        (b"{}", BAD),
        (br#"{"apiVersion":"v1","kind":"Pod"}"#, BAD),
        (br#"{"apiVersion":"v1","kind":1}"#, BAD),
        (br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":1}"#, (500, "Status")),
        (br#"{"apiVersion":"v1","kind":"ConfigMap","x":1}"#, (500, "Status")),
        (br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{}]}}"#, BAD),
    ] {
        asked.ask("PATCH", &path, APPLY, body, want);
    }
    let config = r#"{"apiVersion":"v1","kind":"ConfigMap"}"#;
    for manager in ["", "?fieldManager=%00", &format!("?fieldManager={}", "m".repeat(129))] {
        asked.ask("PATCH", &format!("{MAPS}/a{manager}"), APPLY, config, INVALID);
    }
    asked.finish();
}

#[test]
fn deep_patches() {
    let mut asked = Asked::new();
    let path = format!("{MAPS}/a");
    let object = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    for media in [MERGE, STRATEGIC] {
        asked.ask("PATCH", &path, media, object.clone(), BAD);
    }
    asked.ask("PATCH", &format!("{path}?fieldManager=m"), APPLY, object, BAD);
    let value = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    asked.ask(
        "PATCH",
        &path,
        JSON_PATCH,
        format!(r#"[{{"op":"add","path":"/data/a","value":{value}}}]"#),
        BAD,
    );
    asked.finish();
}
