//! Replays what a real kube-apiserver answered to definitions and custom objects (`tools/crd/record.py`).

use serde_json::{Value, json};
use windlass_apiserver::crd::{self, Definition};
use windlass_apiserver::field::Errors;
use windlass_apiserver::kinds::Noted;

fn recorded(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/crd/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The causes of a refusal, sorted as the recording is.
fn causes(errors: &Errors) -> Vec<(String, String, String)> {
    let mut causes: Vec<_> = errors
        .0
        .iter()
        .map(|error| (error.field.clone(), error.reason.as_str().to_owned(), error.message.clone()))
        .collect();
    causes.sort();
    causes
}

fn recorded_causes(answer: &Value) -> Vec<(String, String, String)> {
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let list = answer["causes"].as_array().into_iter().flatten();
    let mut causes: Vec<_> =
        list.map(|cause| (text(cause, "field"), text(cause, "reason"), text(cause, "message"))).collect();
    causes.sort();
    causes
}

/// Go writes a float without a fraction as an integer; here the codec does that.
fn as_go_writes(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15);
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
            whole.map_or(Value::Number(number), |whole| Value::from(whole as i64))
        }
        Value::Array(list) => list.into_iter().map(as_go_writes).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, as_go_writes(value))).collect(),
        other => other,
    }
}

/// What differs between the recorded answer and ours: reasons and fields always count.
struct Report {
    faults: Vec<String>,
    causes: usize,
    messages: usize,
}

impl Report {
    fn new() -> Report {
        Report { faults: Vec::new(), causes: 0, messages: 0 }
    }

    fn compare(&mut self, name: &str, answer: &Value, errors: &Errors) {
        let (ours, theirs) = (causes(errors), recorded_causes(answer));
        let refused = answer["code"].as_u64() >= Some(300);
        if refused == errors.is_empty() {
            self.faults.push(format!("{name}: we say {ours:?}, the real server {answer}"));
            return;
        }
        let key = |cause: &(String, String, String)| (cause.0.clone(), cause.1.clone());
        let (our_keys, their_keys): (Vec<_>, Vec<_>) =
            (ours.iter().map(key).collect(), theirs.iter().map(key).collect());
        if our_keys != their_keys {
            self.faults.push(format!("{name}:\n  ours   {ours:?}\n  theirs {theirs:?}"));
            return;
        }
        self.causes += theirs.len();
        let same = ours.iter().zip(&theirs).filter(|(a, b)| a.2 == b.2).count();
        self.messages += same;
        if std::env::var_os("CRD_MESSAGES").is_some() && same != ours.len() {
            for (a, b) in ours.iter().zip(&theirs).filter(|(a, b)| a.2 != b.2) {
                eprintln!("{name}: {}\n  ours   {}\n  theirs {}", a.0, a.2, b.2);
            }
        }
    }

    fn equal(&mut self, name: &str, what: &str, ours: &Value, theirs: &Value) {
        if ours != theirs {
            self.faults.push(format!("{name}: {what}\n  ours   {ours}\n  theirs {theirs}"));
        }
    }

    /// At most `other_words` messages may say the same in other words.
    #[track_caller]
    fn finish(self, other_words: usize) {
        assert!(self.faults.is_empty(), "{} differ:\n{}", self.faults.len(), self.faults.join("\n"));
        let differ = self.causes - self.messages;
        assert!(
            differ <= other_words,
            "{differ} of {} messages differ: run with CRD_MESSAGES=1",
            self.causes
        );
    }
}

#[test]
fn definitions_are_answered_as_by_the_real_server() {
    let mut report = Report::new();
    for case in recorded("definitions.json") {
        let name = case["name"].as_str().unwrap_or_default();
        let mut errors = Errors::default();
        let mut crd = case.get("update").unwrap_or(&case["crd"]).clone();
        let noted = Noted { empty_roots: crd::empty_roots(&crd), ..Noted::default() };
        crd::default_definition(&mut crd);
        match case.get("old") {
            Some(old) => {
                crd::prepare_update(&mut crd, old);
                crd::validate_update(&crd, old, noted, &mut errors);
            }
            None => {
                crd::prepare_create(&mut crd);
                crd::validate_create(&crd, noted, &mut errors);
            }
        }
        let answer = &case["answer"];
        report.compare(name, answer, &errors);
        if !errors.is_empty() {
            continue;
        }
        report.equal(name, "spec", &crd["spec"], &answer["spec"]);
        report.equal(name, "stored", &crd["status"]["storedVersions"], &answer["status"]["storedVersions"]);
        if let Some(theirs) = answer.get("warnings") {
            let mut warnings = crd::warnings(&crd, None);
            warnings.sort();
            report.equal(name, "warnings", &json!(warnings), theirs);
        }
        Definition::compile(&crd).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    }
    report.finish(10);
}

#[test]
fn objects_are_answered_as_by_the_real_server() {
    let mut report = Report::new();
    for case in recorded("objects.json") {
        let definition = Definition::compile(&case["crd"]).expect("a definition that the real server took");
        let version = definition.served("v1").expect("version v1");
        for step in case["steps"].as_array().expect("steps") {
            let name = format!("{} {}", case["name"].as_str().unwrap_or_default(), step["object"]);
            let (mut object, answer) = (step["object"].clone(), &step["answer"]);
            let old = step.get("old");
            let (mut unknown, mut errors) = (Vec::new(), Errors::default());
            if let Some(why) = version.malformed(&object) {
                let message =
                    format!("{0} in version \"v1\" cannot be handled as a {0}: {why}", definition.names.kind);
                report.equal(&name, "malformed", &json!(message), &answer["message"]);
                continue;
            }
            version.prune(&mut object, &mut unknown);
            version.default(&mut object);
            match old {
                Some(old) if step["status"] == true => {
                    let mut updated = old.clone();
                    updated["status"] = object["status"].clone();
                    object = updated;
                    version.validate_status_form(&object, old, &mut errors);
                }
                _ => {
                    if version.has_status {
                        object.as_object_mut().expect("an object").shift_remove("status");
                    }
                    version.validate_form(&object, old, &mut errors);
                }
            }
            version.validate_rules(&object, old, &mut errors);
            report.compare(&name, answer, &errors);
            if !errors.is_empty() {
                continue;
            }
            object.as_object_mut().expect("an object").shift_remove("metadata");
            report.equal(&name, "object", &as_go_writes(object), &answer["object"]);
            // The recording is sorted; in which order they come is compared by `make conformance`.
            let mut warnings: Vec<String> =
                unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
            warnings.sort();
            report.equal(&name, "unknown fields", &json!(warnings), &answer["warnings"]);
        }
    }
    report.finish(0);
}
