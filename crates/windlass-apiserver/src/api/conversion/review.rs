//! ConversionReviews: what a conversion webhook is asked, and what it says.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::api::webhooks::{Place, Question, Reply, Review};
use crate::field::{Errors, Path};
use crate::json::str_at;
use crate::kinds::meta;
use crate::patch::go;

/// How long a conversion may take.
const TIMEOUT_SECONDS: u64 = 30;

/// The question to a webhook, in the first of its versions that we know.
pub(super) fn question(
    hook: String,
    place: Place,
    authority: String,
    config: &Value,
    target: &str,
    objects: &[Value],
) -> Question {
    let versions = config["conversionReviewVersions"].as_array().into_iter().flatten();
    let old = versions.filter_map(Value::as_str).find(|version| matches!(*version, "v1" | "v1beta1"));
    let version = if old == Some("v1beta1") { "v1beta1" } else { "v1" };
    let mut request = json!({"desiredAPIVersion": target, "objects": objects});
    // It says to which question an answer belongs, and a watch has no random numbers.
    let digest = Sha256::digest(request.to_string());
    let hex: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    request["uid"] = json!(parts.join("-"));
    Question {
        hook,
        place,
        authority,
        timeout_seconds: TIMEOUT_SECONDS,
        review: Review::Conversion,
        version,
        request,
    }
}

/// The version and the objects that a question is about, if it is about a conversion.
pub(super) fn asked(question: &Question) -> Option<(&str, &[Value])> {
    let objects = question.request["objects"].as_array()?;
    (question.review == Review::Conversion)
        .then(|| (str_at(&question.request, &["desiredAPIVersion"]), objects.as_slice()))
}

/// What became of each object.
pub(super) fn read(question: &Question, objects: &[Value], reply: &Reply) -> Vec<Result<Value, String>> {
    let target = str_at(&question.request, &["desiredAPIVersion"]);
    let answer = reply.body.as_ref().map_err(|failure| failure.why.clone());
    let answer = answer.and_then(|body| response(question, body));
    let convert = |(at, object): (usize, &Value)| {
        let what = gvk(object);
        let converted =
            answer.as_ref().map_err(|why| format!("conversion webhook for {what} failed: {why}"))?;
        if converted.len() != objects.len() {
            let (have, want) = (converted.len(), objects.len());
            return Err(format!("conversion webhook for {what} returned {have} objects, expected {want}"));
        }
        accept(object, converted[at].clone(), target)
            .map_err(|why| format!("conversion webhook for {what} returned invalid {why}"))
    };
    objects.iter().enumerate().map(convert).collect()
}

/// `group/version, Kind=kind`
fn gvk(object: &Value) -> String {
    format!("{}, Kind={}", str_at(object, &["apiVersion"]), str_at(object, &["kind"]))
}

/// The converted objects of an answer.
fn response(question: &Question, body: &[u8]) -> Result<Vec<Value>, String> {
    let review = question.review_of(body)?;
    if question.version == "v1" {
        let want = "apiextensions.k8s.io/v1, Kind=ConversionReview";
        if gvk(&review) != want {
            return Err(format!("expected webhook response of {want}, got {}", gvk(&review)));
        }
    }
    let Some(response) = review.get("response").filter(|response| response.is_object()) else {
        return Err("no response provided".to_owned());
    };
    let (want, have) = (str_at(&question.request, &["uid"]), str_at(response, &["uid"]));
    if question.version == "v1" && want != have {
        return Err(format!("expected response.uid={want:?}, got {have:?}"));
    }
    match (str_at(response, &["result", "status"]), str_at(response, &["result", "message"])) {
        ("Success", _) => {}
        (status, "") => return Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => return Err(message.to_owned()),
    }
    Ok(response["convertedObjects"].as_array().cloned().unwrap_or_default())
}

/// A converted object, if it is still the same one. Of its metadata only labels and annotations are a webhook's to change.
fn accept(original: &Value, mut converted: Value, target: &str) -> Result<Value, String> {
    let text = |tree: &Value, path: &[&str]| str_at(tree, path).to_owned();
    let (have, kind) = (text(&converted, &["apiVersion"]), text(&converted, &["kind"]));
    let want = text(original, &["kind"]);
    if have != target {
        return Err(format!("object at index 0: invalid groupVersion (expected {target}, received {have})"));
    }
    if kind != want {
        return Err(format!("object at index 0: invalid kind (expected {want}, received {kind})"));
    }
    for (key, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (want, have) = (text(original, &["metadata", key]), text(&converted, &["metadata", key]));
        if want != have {
            return Err(format!("object: must have the same {name}: {want} != {have}"));
        }
    }
    let invalid = |why: String| format!("metadata: {why}");
    let theirs = match converted.get("metadata") {
        None => return Err(invalid("missing metadata in converted object".to_owned())),
        Some(Value::Object(map)) => map.clone(),
        Some(other) => {
            return Err(invalid(format!(
                "invalid metadata of type {} in converted object",
                go::type_of(other)
            )));
        }
    };
    let mut own = original["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match theirs.get(field).filter(|value| !value.is_null()) {
            None => drop(own.shift_remove(field)),
            Some(Value::Object(map)) => {
                changed(field, &own, map).map_err(invalid)?;
                own.insert(field.to_owned(), Value::Object(map.clone()));
            }
            Some(other) => {
                let kind = go::type_of(other);
                return Err(invalid(format!("invalid metadata.{field} of type {kind} in converted object")));
            }
        }
    }
    converted["metadata"] = Value::Object(own);
    Ok(converted)
}

/// Checks labels or annotations that are no longer what they were.
fn changed(field: &str, own: &Map<String, Value>, map: &Map<String, Value>) -> Result<(), String> {
    if let Some((key, value)) = map.iter().find(|(_, value)| !value.is_string()) {
        let kind = go::type_of(value);
        return Err(format!("metadata.{field}[{key}] must be a string, but is {kind} in converted object"));
    }
    if own.get(field).and_then(Value::as_object) == Some(map) {
        return Ok(());
    }
    let mut errors = Errors::default();
    let (metadata, path) = (json!({field: map}), Path::Root.child("metadata"));
    match field {
        "labels" => meta::labels(&metadata, field, &path, &mut errors),
        _ => meta::annotations(&metadata, &path, &mut errors),
    }
    let faults: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
    match faults.as_slice() {
        [] => Ok(()),
        [fault] => Err(fault.clone()),
        faults => Err(format!("[{}]", faults.join(", "))),
    }
}
