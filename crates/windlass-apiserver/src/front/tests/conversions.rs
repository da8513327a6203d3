//! Conversion webhooks at the end of a real socket: `v1` has a host and a port, `v2`, which is stored, one address.

use std::pin::Pin;

use futures_util::StreamExt as _;
use serde_json::json;

use super::webhooks::{Hook, configure, send};
use super::*;

/// What a webhook at this path makes of a review.
pub(super) fn converted(path: &str, review: &Value) -> Value {
    let request = &review["request"];
    let target = &request["desiredAPIVersion"];
    let mut objects = request["objects"].as_array().unwrap().clone();
    for object in &mut objects {
        object["apiVersion"] = target.clone();
        let spec = object["spec"].clone();
        object["spec"] = match spec["address"].as_str().and_then(|address| address.split_once(':')) {
            Some((host, port)) => json!({"host": host, "port": port}),
            None => {
                let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
                json!({"address": format!("{}:{}", text("host"), text("port"))})
            }
        };
        object["metadata"]["labels"] = json!({"seen-by": "webhook"});
        object["metadata"]["finalizers"] = json!(["example.com/not-its-own"]);
        if path == "/adds" {
            object["spec"]["made"] = json!("up");
        }
        if path == "/renames" {
            object["metadata"]["name"] = json!("other");
        }
    }
    if path == "/forgets" {
        objects.pop();
    }
    let mut response =
        json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects});
    match path {
        "/refuses" => response["result"] = json!({"status": "Failed", "message": "not today"}),
        "/mistakes" => response["uid"] = json!("another"),
        _ => {}
    }
    json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response})
}

const THINGS: [&str; 2] = ["v1", "v2"];

fn things(version: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/things")
}

/// A definition whose versions are converted at a path; `v2` is stored, and served if so told.
fn definition(hook: &Hook, path: &str, serves_stored: bool) -> Value {
    let version = |name: &str, served: bool, fields: &[&str]| {
        let spec: serde_json::Map<_, _> =
            fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
        json!({
            "name": name, "served": served, "storage": name == "v2",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": spec},
            }}},
            "selectableFields": [{"jsonPath": format!(".spec.{}", fields[0])}],
            "additionalPrinterColumns": [{"name": "First", "type": "string", "jsonPath": format!(".spec.{}", fields[0])}],
        })
    };
    let url = format!("https://127.0.0.1:{}{path}", hook.port);
    json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [version("v1", true, &["host", "port"]), version("v2", serves_stored, &["address"])],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": url, "caBundle": hook.authority},
            }},
        },
    })
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async fn serving(hook: &Hook, path: &str, serves_stored: bool) -> ApiServer {
    let server = server();
    let (code, said, _) = send(&server, "POST", DEFINITIONS, definition(hook, path, serves_stored)).await;
    assert_eq!(code, 201, "{said}");
    server
}

fn thing(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

async fn get(server: &ApiServer, path: &str) -> Value {
    let (code, said, _) = send(server, "GET", path, Value::Null).await;
    assert_eq!(code, 200, "{path}: {said}");
    said
}

#[tokio::test]
async fn each_version_is_read_and_written_as_the_webhook_converts_it() {
    let hook = Hook::start().await;
    let server = serving(&hook, "/convert", true).await;
    let [v1, v2] = THINGS.map(things);
    let (code, made, _) =
        send(&server, "POST", &v1, thing("v1", "a", json!({"host": "h", "port": "1"}))).await;
    assert_eq!((code, &made["spec"]), (201, &json!({"host": "h", "port": "1"})), "{made}");
    assert_eq!(get(&server, &format!("{v2}/a")).await["spec"], json!({"address": "h:1"}));
    let read = get(&server, &format!("{v1}/a")).await;
    assert_eq!(read["spec"], made["spec"]);
    assert_eq!(read["apiVersion"], "example.com/v1");
    assert_eq!(
        read["metadata"]["labels"],
        json!({"seen-by": "webhook"}),
        "labels are the webhook's to change"
    );
    assert_eq!(read["metadata"].get("finalizers"), None, "the rest of the metadata is not");

    // One question for a whole list, and one for each selector's list.
    send(&server, "POST", &v2, thing("v2", "b", json!({"address": "i:2"}))).await;
    hook.asked();
    let hosts = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["spec"]["host"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(hosts(&get(&server, &v1).await), ["h", "i"]);
    assert_eq!(hook.asked().len(), 1);
    assert_eq!(hosts(&get(&server, &format!("{v1}?fieldSelector=spec.host%3Di")).await), ["i"]);

    // A write in either version; what is only read and written back is not converted back.
    let patch = json!({"spec": {"port": "9"}});
    let (code, said, _) = send(&server, "PATCH", &format!("{v1}/b"), patch).await;
    assert_eq!((code, &said["spec"]["port"]), (200, &json!("9")), "{said}");
    assert_eq!(get(&server, &format!("{v2}/b")).await["spec"]["address"], "i:9");
    hook.asked();
    let marked = json!({"metadata": {"finalizers": ["example.com/waits"]}});
    assert_eq!(send(&server, "PATCH", &format!("{v1}/b"), marked).await.0, 200);
    assert_eq!(hook.asked().len(), 1);
    let (code, said, _) = send(&server, "DELETE", &format!("{v1}/b"), Value::Null).await;
    assert_eq!((code, &said["spec"]), (200, &json!({"host": "i", "port": "9"})), "{said}");
    assert!(said["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(get(&server, &format!("{v2}/b")).await["spec"]["address"], "i:9");
}

/// The next events of a watch: their types and hosts.
async fn events(body: &mut Pin<Box<Body>>, count: usize) -> Vec<(String, Value)> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let frame = std::future::poll_fn(|context| http_body::Body::poll_frame(body.as_mut(), context));
        let frame = tokio::time::timeout(Duration::from_secs(10), frame).await.expect("an event").unwrap();
        let bytes = frame.unwrap().into_data().unwrap();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event: Value = serde_json::from_slice(line).unwrap();
            let object = &event["object"];
            let shown =
                if object["kind"] == "Thing" { object["spec"]["host"].clone() } else { object.clone() };
            seen.push((event["type"].as_str().unwrap().to_owned(), shown));
        }
    }
    seen
}

async fn watch(server: &ApiServer, path: &str) -> Pin<Box<Body>> {
    let request = request("GET", path, String::new()).map(|_| Bytes::new());
    Box::pin(server.call(request, crate::api::User::admin()).await.into_body())
}

#[tokio::test]
async fn a_watch_shows_what_the_webhook_makes_of_its_objects() {
    let hook = Hook::start().await;
    let server = serving(&hook, "/convert", true).await;
    let [v1, v2] = THINGS.map(things);
    // More than are converted at a time.
    futures_util::stream::iter(0..150)
        .for_each(|at| {
            let (server, v2) = (server.clone(), v2.clone());
            async move {
                let one = thing("v2", &format!("t{at:03}"), json!({"address": format!("h{at}:1")}));
                assert_eq!(send(&server, "POST", &v2, one).await.0, 201);
            }
        })
        .await;
    let mut body = watch(&server, &format!("{v1}?watch=1")).await;
    let seen = events(&mut body, 150).await;
    assert_eq!(seen.len(), 150);
    for (at, event) in seen.iter().enumerate() {
        assert_eq!(*event, ("ADDED".to_owned(), json!(format!("h{at}"))));
    }
    send(&server, "PATCH", &format!("{v2}/t000"), json!({"spec": {"address": "x:1"}})).await;
    send(&server, "DELETE", &format!("{v2}/t001"), Value::Null).await;
    let seen = events(&mut body, 2).await;
    assert_eq!(seen, [("MODIFIED".to_owned(), json!("x")), ("DELETED".to_owned(), json!("h1"))]);
}

/// The words are kube-apiserver's.
#[tokio::test]
async fn a_webhook_that_fails_is_told_and_nothing_is_written() {
    let hook = Hook::start().await;
    let cases = [
        ("/refuses", "conversion webhook for example.com/v1, Kind=Thing failed: not today"),
        ("/mistakes", "conversion webhook for example.com/v1, Kind=Thing failed: expected response.uid="),
        ("/forgets", "conversion webhook for example.com/v1, Kind=Thing returned 0 objects, expected 1"),
        (
            "/renames",
            "conversion webhook for example.com/v1, Kind=Thing returned invalid object: must have the same name: a != other",
        ),
    ];
    for (path, message) in cases {
        let server = server();
        let mut definition = definition(&hook, path, true);
        for version in definition["spec"]["versions"].as_array_mut().unwrap() {
            version.as_object_mut().unwrap().remove("selectableFields");
        }
        assert_eq!(send(&server, "POST", DEFINITIONS, definition).await.0, 201);
        let [v1, v2] = THINGS.map(things);
        let one = thing("v1", "a", json!({"host": "h", "port": "1"}));
        let (code, said, _) = send(&server, "POST", &v1, one).await;
        assert_eq!(code, 500, "{said}");
        assert!(said["message"].as_str().unwrap().starts_with(message), "{said}");
        assert_eq!(get(&server, &v2).await["items"], json!([]));

        // What is there can be read as it is stored, and goes with its definition, whoever converts it.
        assert_eq!(send(&server, "POST", &v2, thing("v2", "a", json!({"address": "h:1"}))).await.0, 201);
        assert_eq!(send(&server, "GET", &format!("{v1}/a"), Value::Null).await.0, 500);
        assert_eq!(send(&server, "GET", &v1, Value::Null).await.0, 500);
        let seen = events(&mut watch(&server, &format!("{v1}?watch=1")).await, 1).await;
        assert_eq!((seen[0].0.as_str(), &seen[0].1["code"]), ("ERROR", &json!(500)));
        let path = format!("{DEFINITIONS}/things.example.com");
        assert_eq!(send(&server, "DELETE", &path, Value::Null).await.0, 200);
        assert_eq!(send(&server, "GET", &path, Value::Null).await.0, 404);
    }
}

/// It was taken for a version that is not there.
#[tokio::test]
async fn the_stored_version_need_not_be_served() {
    let hook = Hook::start().await;
    let server = serving(&hook, "/convert", false).await;
    let v1 = things("v1");
    let one = thing("v1", "a", json!({"host": "h", "port": "1"}));
    let (code, made, _) = send(&server, "POST", &v1, one).await;
    assert_eq!((code, &made["spec"]["host"]), (201, &json!("h")), "{made}");
    assert_eq!(get(&server, &format!("{v1}/a")).await["spec"], json!({"host": "h", "port": "1"}));
}

#[tokio::test]
async fn hooks_see_all_that_the_webhook_makes_in_whichever_version() {
    let hook = Hook::start().await;
    let server = serving(&hook, "/adds", true).await;
    let sees = |version: &str| {
        let rule = json!({"apiGroups": ["example.com"], "apiVersions": [version], "operations": ["*"], "resources": ["*"]});
        json!({"rules": [rule]})
    };
    configure(&server, "Mutating", &hook, &[("/label", sees("v2")), ("/own", sees("v1"))]).await;
    let v1 = things("v1");
    let shown = |field: &str| -> Vec<(String, Value)> {
        let seen = std::mem::take(&mut *hook.seen.lock().unwrap());
        let reviews = seen.into_iter().filter(|(path, _)| path != "/adds");
        reviews.map(|(path, asked)| (path, asked[field]["spec"].clone())).collect()
    };
    let seen = |path: &str, spec: Value| (path.to_owned(), spec);
    let (own, other) =
        (json!({"host": "h", "port": "1", "made": "up"}), json!({"address": "h:1", "made": "up"}));

    // What one of them changed in another version is converted back for the next one, and not pruned before.
    let spec = json!({"host": "h", "port": "1"});
    let (code, made, _) = send(&server, "POST", &v1, thing("v1", "a", spec.clone())).await;
    assert_eq!((code, &made["spec"]), (201, &spec), "{made}");
    assert_eq!(shown("object"), [seen("/label", other.clone()), seen("/own", own)]);

    // The converter is asked about what it has just made of the stored object, too.
    configure(&server, "Mutating", &hook, &[("/other", sees("v2")), ("/own", sees("v1"))]).await;
    let (code, said, _) = send(&server, "DELETE", &format!("{v1}/a"), Value::Null).await;
    assert_eq!(code, 200, "{said}");
    assert_eq!(shown("oldObject"), [seen("/other", other), seen("/own", spec)]);
}
