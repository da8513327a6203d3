//! Our own writes: there at once, and no reason to wake up.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass::cache::Declared;
use windlass::core::select::LabelSelector;
use windlass::core::{Kind, Origin};
use windlass_testing::TestCluster;

use crate::faults::Faults;
use crate::support::{MANAGER, Running, cluster, config_map, key, settle, until};

fn us() -> Origin {
    Origin { controller: "test".into(), key: key("parent") }
}

/// Applies as the operator would, and gives back the server's answer.
async fn apply(cluster: &TestCluster, name: &str, value: &str) -> Value {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"is": value}});
    let params = PatchParams::apply(MANAGER).force();
    let answer = api.patch(name, &params, &Patch::Apply(map)).await.unwrap();
    serde_json::to_value(answer).unwrap()
}

fn absorb(running: &Running, answer: &Value) {
    running.cache.absorb(&Kind::of::<ConfigMap>(), answer, Some(&us()));
}

fn value(running: &Running, name: &str) -> Option<String> {
    let map = running.cache.get::<ConfigMap>(&key(name)).unwrap()?;
    Some(map.data.as_ref()?["is"].clone())
}

#[tokio::test(start_paused = true)]
async fn the_answer_comes_first() {
    let cluster = cluster().await;
    let running = Running::all(&cluster).await;
    for round in ["1", "2", "3"] {
        let answer = apply(&cluster, "child", round).await;
        assert_ne!(value(&running, "child").as_deref(), Some(round), "the event is not here yet");
        absorb(&running, &answer);
        assert_eq!(value(&running, "child").as_deref(), Some(round), "what we wrote is what we read");
    }
    settle().await;
    assert_eq!(running.notes.take(), ["+child by us", "~child by us", "~child by us"]);
    config_map(&cluster, "child", "theirs").await;
    settle().await;
    assert_eq!(running.notes.take(), ["~child"], "others are heard");
}

#[tokio::test(start_paused = true)]
async fn the_event_comes_first() {
    let cluster = cluster().await;
    let running = Running::all(&cluster).await;
    let answer = apply(&cluster, "child", "1").await;
    settle().await;
    assert_eq!(running.notes.take(), ["+child"]);
    absorb(&running, &answer);
    assert_eq!(running.notes.take(), ["own child"], "what was told is taken back");

    // In the same second, so that the times that the server notes say nothing.
    let answer = apply(&cluster, "child", "2").await;
    settle().await;
    absorb(&running, &answer);
    assert_eq!(running.notes.take(), ["~child", "own child"]);

    // A write that changes nothing has no event, and takes nothing back.
    config_map(&cluster, "other", "x").await;
    let answer = apply(&cluster, "child", "2").await;
    settle().await;
    absorb(&running, &answer);
    assert_eq!(running.notes.take(), ["+other"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_between_our_write_and_what_we_knew_wakes_us() {
    let cluster = cluster().await;
    config_map(&cluster, "child", "0").await;
    let running = Running::all(&cluster).await;
    running.notes.take();
    running.faults.hold();
    let labels = json!({"metadata": {"labels": {"by": "them"}}});
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    api.patch("child", &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    let answer = apply(&cluster, "child", "1").await;
    absorb(&running, &answer);
    settle().await;
    assert_eq!(running.notes.take(), ["~child by us"]);
    running.faults.release();
    settle().await;
    assert_eq!(running.notes.take(), ["~child"], "theirs is told late, and ours is not told twice");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_ours_is_there_at_once() {
    let cluster = cluster().await;
    config_map(&cluster, "child", "0").await;
    config_map(&cluster, "other", "0").await;
    let running = Running::all(&cluster).await;
    running.notes.take();
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let uid = |name: &str| running.informer.get(&key(name)).unwrap().metadata.uid.clone().unwrap();
    let (child, other) = (uid("child"), uid("other"));

    api.delete("child", &Default::default()).await.unwrap();
    running.cache.removed(&Kind::of::<ConfigMap>(), &key("child"), &child, Some(&us()));
    assert_eq!(value(&running, "child"), None);
    settle().await;
    assert_eq!(running.notes.take(), ["-child by us"]);

    api.delete("other", &Default::default()).await.unwrap();
    settle().await;
    running.cache.removed(&Kind::of::<ConfigMap>(), &key("other"), &other, Some(&us()));
    assert_eq!(running.notes.take(), ["-other", "own other"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_selected_is_not_absorbed() {
    let cluster = cluster().await;
    let declared = Declared::typed().labels(LabelSelector::parse("app=web").unwrap());
    let running = Running::new(&cluster, Faults::default(), declared);
    running.informer.synced().await;
    let answer = apply(&cluster, "child", "1").await;
    absorb(&running, &answer);
    let mut elsewhere = answer.clone();
    elsewhere["metadata"]["labels"] = json!({"app": "web"});
    elsewhere["metadata"]["name"] = json!("selected");
    elsewhere["metadata"]["uid"] = json!("another");
    absorb(&running, &elsewhere);
    assert_eq!(running.names(), ["selected"]);
}

#[tokio::test(start_paused = true)]
async fn of_owned_kinds_our_set_is_kept_and_children_are_found() {
    let cluster = cluster().await;
    config_map(&cluster, "theirs", "x").await;
    let running = Running::new(&cluster, Faults::default(), Declared::typed().owned());
    running.informer.synced().await;
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let owner = running.informer.get(&key("theirs")).unwrap().metadata.uid.clone().unwrap();
    let child = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "child", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": owner, "controller": true},
        ]},
        "data": {"is": "1"},
    });
    api.patch("child", &PatchParams::apply(MANAGER).force(), &Patch::Apply(child)).await.unwrap();
    until("the child", || running.informer.get(&key("child")).is_some()).await;

    let kind = Kind::of::<ConfigMap>();
    let set = running.cache.managed(&kind, &key("child")).unwrap().unwrap();
    assert_eq!(set["f:data"], json!({"f:is": {}}));
    assert_eq!(
        running.cache.managed(&kind, &key("theirs")).unwrap(),
        None,
        "others' sets are nobody's business"
    );
    let children = running.cache.children_of(&kind, &owner).unwrap();
    assert_eq!(children.iter().map(|child| child.key.clone()).collect::<Vec<_>>(), [key("child")]);
    assert_eq!(children[0].controller.as_ref().unwrap().uid, owner);
    let (value, its_set) = running.cache.value(&kind, &key("child")).unwrap().unwrap();
    assert_eq!((&value["kind"], &value["data"]["is"]), (&json!("ConfigMap"), &json!("1")));
    assert_eq!(its_set, Some(set));
    api.delete("child", &Default::default()).await.unwrap();
    until("it is gone", || running.informer.children_of(&owner).is_empty()).await;
}
