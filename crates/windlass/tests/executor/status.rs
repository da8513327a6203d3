//! The status is last, true, and written on change only.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass::core::{Outcome, Plan};
use windlass::executor::{Parent, STALLED};

use crate::world::{Widget, WidgetPlan, WidgetStatus, World, map, phase, plan};

async fn live(world: &World) -> Value {
    json!(world.api::<Widget>().get("one").await.unwrap().status)
}

async fn by_hand(world: &World, status: Value) {
    let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({"status": status}));
    world.api::<Widget>().patch_status("one", &params, &patch).await.unwrap();
    world.caught_up().await;
}

#[tokio::test]
async fn a_status_is_written_once() {
    let world = World::new().await;
    let plan: WidgetPlan = Plan::new().status(phase("Up"));
    let report = world.pass(&plan).await;
    assert_eq!(report.writes, ["apply status of Widget.test.example.com default/one"]);
    assert_eq!(report.outcome, Outcome::AwaitChange, "a status is nothing to look at again");
    assert_eq!(live(&world).await["phase"], "Up");
    for _ in 0..3 {
        let (_, mutations) = world.mutations_of(world.pass(&plan)).await;
        assert_eq!(mutations, [""; 0]);
    }
}

#[tokio::test]
async fn a_field_that_left_the_status_goes() {
    let world = World::new().await;
    let noted = WidgetStatus { note: Some("soon".to_owned()), ..phase("Up") };
    world.settle(&Plan::new().status(noted)).await;
    assert_eq!(live(&world).await["note"], "soon");
    world.settle(&Plan::new().status(phase("Up"))).await;
    assert_eq!(live(&world).await.get("note"), None);
}

#[tokio::test]
async fn a_status_that_was_edited_by_hand_is_healed() {
    let world = World::new().await;
    let plan: WidgetPlan = Plan::new().status(phase("Up"));
    world.settle(&plan).await;
    by_hand(&world, json!({"phase": "Down"})).await;
    world.settle(&plan).await;
    assert_eq!(live(&world).await["phase"], "Up");
    // What others add is theirs: it costs one apply, which changes nothing.
    by_hand(&world, json!({"note": "theirs"})).await;
    let (_, mutations) = world.mutations_of(world.settle(&plan)).await;
    assert!(mutations.len() <= 1, "{mutations:?}");
    assert_eq!(live(&world).await["note"], "theirs");
    // Or they take the whole of it away.
    by_hand(&world, Value::Null).await;
    world.settle(&plan).await;
    assert_eq!(live(&world).await["phase"], "Up");
}

#[tokio::test]
async fn the_status_of_an_old_view_is_not_written() {
    let mut world = World::new().await;
    world.stop_watching();
    let patch = Patch::Merge(json!({"spec": {"size": 2}}));
    world.api::<Widget>().patch("one", &PatchParams::default(), &patch).await.unwrap();
    let report = world.pass(&Plan::new().status(phase("Up"))).await;
    assert!(
        report.conflicted && report.failures.is_empty() && matches!(report.outcome, Outcome::After(_)),
        "{report:?}"
    );
    assert_eq!(live(&world).await, Value::Null);
}

#[tokio::test]
async fn an_old_view_that_stays_old_is_looked_at_less_and_less_often() {
    let mut world = World::new().await;
    world.stop_watching();
    let parent = world.parent();
    world.edit_unseen("one", json!({"spec": {"size": 2}})).await;
    let plan: WidgetPlan = Plan::new().status(phase("Up"));
    let mut delays = Vec::new();
    for _ in 0..20 {
        let Outcome::After(delay) = world.pass_for(&parent, &plan).await.outcome else {
            panic!("no conflict")
        };
        delays.push(delay);
    }
    assert!(delays[0] < Duration::from_millis(10) && delays[19] >= Duration::from_secs(30), "{delays:?}");
    // One pass that finds the world as it was looked at ends it.
    let live = world.api::<Widget>().get("one").await.unwrap();
    let current = Parent::new(windlass::core::Kind::of::<Widget>(), &live);
    assert_eq!(world.pass_for(&current, &plan).await.outcome, Outcome::AwaitChange);
    let Outcome::After(delay) = world.pass_for(&parent, &plan).await.outcome else { panic!("no conflict") };
    assert!(delay < Duration::from_millis(10), "{delay:?}");
}

#[tokio::test]
async fn what_cannot_be_done_shows_as_a_condition() {
    let world = World::new().await;
    let terminal: WidgetPlan = Plan::new().status(phase("Down")).terminal("TooLarge", "9 is more than 3");
    let report = world.settle(&terminal).await;
    assert!(matches!(report.outcome, Outcome::Terminal(_)));
    let status = live(&world).await;
    assert_eq!(status["phase"], "Down");
    let condition = &status["conditions"][0];
    assert_eq!(
        *condition,
        json!({
            "type": STALLED, "status": "True", "reason": "TooLarge", "message": "9 is more than 3",
            "observedGeneration": 1, "lastTransitionTime": condition["lastTransitionTime"],
        })
    );
    // The time stays while it stays so, and it goes when it is no longer so.
    world.edit::<Widget>("one", json!({"spec": {"size": 8}})).await;
    let terminal: WidgetPlan = Plan::new().status(phase("Down")).terminal("TooLarge", "8 is more than 3");
    world.settle(&terminal).await;
    let after = live(&world).await;
    assert_eq!(after["conditions"][0]["message"], "8 is more than 3");
    assert_eq!(after["conditions"][0]["observedGeneration"], 2);
    assert_eq!(after["conditions"][0]["lastTransitionTime"], condition["lastTransitionTime"]);
    world.settle(&Plan::new().status(phase("Up"))).await;
    assert_eq!(live(&world).await, json!({"phase": "Up"}));
}

#[tokio::test]
async fn a_child_that_is_refused_for_good_shows_as_a_condition() {
    let world = World::new().await;
    let theirs: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    world.api::<ConfigMap>().create(&PostParams::default(), &theirs).await.unwrap();
    world.caught_up().await;
    // Also where the plan says nothing of the status, which keeps what it has.
    by_hand(&world, json!({"note": "theirs"})).await;
    let wanted = plan([map("a", json!({}))]);
    world.pass(&wanted).await;
    let (_, mutations) = world.mutations_of(world.pass(&wanted)).await;
    assert_eq!(mutations, [""; 0]);
    let status = live(&world).await;
    assert_eq!(status["note"], "theirs");
    assert_eq!(status["conditions"][0]["reason"], "ChildNotOwned");
    world.settle(&plan([map("b", json!({}))])).await;
    assert_eq!(live(&world).await["conditions"], Value::Null);
}

#[tokio::test]
async fn a_status_without_conditions_is_written_without_one() {
    let world = World::new().await;
    let mut crd = json!(<Widget as kube::CustomResourceExt>::crd());
    crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties")
        .and_then(Value::as_object_mut)
        .expect("the status has a schema")
        .remove("conditions");
    world.cluster.apply_yaml(&crd.to_string()).await.unwrap();
    let terminal: WidgetPlan = Plan::new().status(phase("Down")).terminal("TooLarge", "9 is more than 3");
    let report = world.pass(&terminal).await;
    assert!(report.failures.is_empty(), "{report:?}");
    assert_eq!(live(&world).await, json!({"phase": "Down"}));
    let (_, mutations) = world.mutations_of(world.pass(&terminal)).await;
    assert_eq!(mutations, [""; 0]);
}

#[tokio::test]
async fn a_kind_without_a_status_shows_nothing_and_fails_nothing() {
    let world = World::new().await;
    let mut crd = json!(<Widget as kube::CustomResourceExt>::crd());
    crd["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources");
    let params = PatchParams { field_manager: Some("test".to_owned()), ..PatchParams::default() };
    let crds: kube::Api<kube::core::DynamicObject> = kube::Api::all_with(
        world.cluster.client(),
        &windlass::core::Kind::of::<CustomResourceDefinition>().resource,
    );
    let remove = Patch::Merge(json!({"spec": {"versions": crd["spec"]["versions"]}}));
    crds.patch("widgets.test.example.com", &params, &remove).await.unwrap();
    let report = world.pass(&Plan::new().terminal("TooLarge", "9 is more than 3")).await;
    assert!(report.failures.is_empty(), "{report:?}");
    let (_, mutations) =
        world.mutations_of(world.pass(&Plan::new().terminal("TooLarge", "9 is more than 3"))).await;
    assert_eq!(mutations, [""; 0]);
}
