//! What `windlass_core::diff` says of an object is what a server-side apply then does: on generated objects of several
//! kinds, with one change after another, by us and by others.

#[path = "diff/generate.rs"]
mod generate;

use http::Request;
use serde_json::{Value, json};
use windlass_core::Random;
use windlass_core::diff::{Change, Difference, differences, without_nulls};
use windlass_testing::TestCluster;

const SEEDS: u64 = 150;
const CHANGES: usize = 8;

#[tokio::test]
async fn what_differs_is_what_an_apply_would_change() {
    let base = TestCluster::new().await;
    base.apply_yaml(generate::THINGS).await.expect("the definition is valid");
    let mut told = Told::default();
    for seed in 0..SEEDS {
        life_of_an_object(&Server { cluster: base.fork() }, seed, &mut told).await;
    }
    // The generator must not have lost its variety: each of these has to have happened often.
    assert!(told.same > 100 && told.changed > 500 && told.refused < told.changed / 2, "{told:?}");
}

#[derive(Debug, Default)]
struct Told {
    same: usize,
    changed: usize,
    refused: usize,
}

/// Applies an object, then changes what is desired or what is there, one thing at a time.
async fn life_of_an_object(server: &Server, seed: u64, told: &mut Told) {
    let mut random = Random::from_seed(seed);
    let (path, mut desired) = generate::object(&mut random);
    let mut live = match server.apply("windlass", &path, &desired).await {
        Ok(live) => live,
        Err(refused) => panic!("seed {seed}: {desired}: {refused}"),
    };
    // What differed, and what was ours, when an apply changed nothing: the same again needs no apply.
    let mut settled = None;
    let mut left = difference(&desired, &live);
    let mut is_disturbed = false;
    for round in 0..CHANGES {
        let next = if generate::one_in(&mut random, 4) {
            live = server.disturb(&mut random, &path, &live, &desired).await.unwrap_or(live);
            is_disturbed = true;
            desired.clone()
        } else if generate::one_in(&mut random, 4) {
            desired.clone()
        } else {
            generate::change(&mut random, &desired)
        };
        let found = difference(&next, &live);
        let Ok(after) = server.apply("windlass", &path, &next).await else {
            told.refused += 1;
            continue;
        };
        let about = |what: &str| {
            format!(
                "seed {seed}, change {round}: {what}\nfound: {found:?}\nnext: {next}\nlive: {live}\nafter: {after}"
            )
        };
        let is_written = after["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"];
        let is_changed = ours(&after) != ours(&live);
        if found.is_empty() {
            told.same += 1;
            assert!(!is_changed, "{}", about("nothing was said to differ, and the apply changed it"));
            // An empty value is one that the server leaves out, so it looks new each time: by force it is taken from
            // a second owner, whose note is all that changes.
            assert!(
                !is_written || has_empty(&next),
                "{}",
                about("nothing was said to differ, and something did")
            );
        } else if is_changed {
            told.changed += 1;
            let is_settled = settled == Some((next.clone(), found.clone(), applied(&live).cloned()));
            assert!(!is_settled, "{}", about("a memory of what is left would have hidden a change"));
        }
        if !is_disturbed && meaning(&next) != meaning(&desired) {
            assert_ne!(found, left, "{}", about("a change of what is desired was not seen"));
        }

        left = difference(&next, &after);
        assert!(left.iter().all(is_normalised), "{}", about(&format!("{left:?} is left after an apply")));
        settled = (!is_written).then(|| (next.clone(), left.clone(), applied(&after).cloned()));
        (live, desired, is_disturbed) = (after, next, false);
    }
}

fn difference(desired: &Value, live: &Value) -> Vec<Difference> {
    differences(desired, live, applied(live))
}

/// The fields that we applied.
fn applied(live: &Value) -> Option<&Value> {
    let entries = live["metadata"]["managedFields"].as_array()?;
    let ours = entries.iter().find(|entry| entry["manager"] == "windlass" && entry["operation"] == "Apply");
    ours.map(|entry| &entry["fieldsV1"])
}

/// An object without what the server notes of others.
fn ours(live: &Value) -> Value {
    let mut ours = live.clone();
    ours["metadata"]["resourceVersion"] = Value::Null;
    ours["metadata"]["managedFields"] = applied(live).cloned().unwrap_or_default();
    ours
}

fn has_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty() || members.values().any(has_empty),
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
        _ => false,
    }
}

/// What may be left after an apply: quantities in the server's own spelling; empty lists, which nobody owns where the items
/// are told apart by key; and empty objects that others have filled.
fn is_normalised(left: &Difference) -> bool {
    match &left.change {
        Change::Set { to, .. } => {
            *to == json!([]) || meaning(to) == json!({}) || left.path.contains(".resources.")
        }
        Change::Own => true,
        _ => false,
    }
}

/// An object as the server would read it: without nulls.
fn meaning(desired: &Value) -> Value {
    let mut meaning = desired.clone();
    without_nulls(&mut meaning);
    meaning
}

struct Server {
    cluster: TestCluster,
}

impl Server {
    /// Applies by force.
    async fn apply(&self, manager: &str, path: &str, object: &Value) -> Result<Value, kube::Error> {
        let uri = format!("{path}?fieldManager={manager}&force=true");
        self.patch(&uri, "application/apply-patch+yaml", &meaning(object)).await
    }

    /// What others do to an object: add fields of their own, overwrite ours, take ours away, be a second owner.
    async fn disturb(&self, random: &mut Random, path: &str, live: &Value, desired: &Value) -> Option<Value> {
        let uri = format!("{path}?fieldManager=other");
        match random.next() % 4 {
            0 => {
                let value = format!("v{}", random.next() % 3);
                let patch =
                    json!({"metadata": {"labels": {"others": value}, "annotations": {"others": value}}});
                self.patch(&uri, "application/merge-patch+json", &patch).await.ok()
            }
            1 => {
                let mut other = generate::change(random, desired);
                other["metadata"]["resourceVersion"] = Value::Null;
                self.apply("other", path, &other).await.ok()
            }
            2 => self.apply("other", path, desired).await.ok(),
            _ => {
                let mut other = generate::change(random, live);
                other["metadata"].as_object_mut().expect("metadata").remove("managedFields");
                let put = Request::put(uri).header("content-type", "application/json");
                self.cluster
                    .client()
                    .request(put.body(other.to_string().into_bytes()).expect("a request"))
                    .await
                    .ok()
            }
        }
    }

    async fn patch(&self, uri: &str, content_type: &str, body: &Value) -> Result<Value, kube::Error> {
        let request = Request::patch(uri).header("content-type", content_type);
        let request = request.body(body.to_string().into_bytes()).expect("a request");
        self.cluster.client().request(request).await
    }
}
