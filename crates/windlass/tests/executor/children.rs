//! Children become and stay what the plan says.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use windlass::core::{Action, Child, Kind, ObjectKey, Outcome, Plan};
use windlass::executor::Failure;

use crate::world::{WidgetPlan, World, child, map, plan};

#[tokio::test]
async fn a_world_as_planned_is_not_written_to() {
    let world = World::new().await;
    let plan = plan([map("a", json!({"k": "1"})), map("b", json!({"k": "2"}))]);
    let report = world.pass(&plan).await;
    assert_eq!(report.outcome, Outcome::Again, "what came of the writes has to be looked at");
    assert_eq!(report.writes, ["apply ConfigMap default/a", "apply ConfigMap default/b"]);
    for _ in 0..3 {
        let (report, mutations) = world.mutations_of(world.pass(&plan)).await;
        assert_eq!(report.outcome, Outcome::AwaitChange);
        assert_eq!(mutations, [""; 0]);
    }
    // Also not by a process that has just started, and sees the objects as the server tells them.
    let world = World::after(&world).await;
    let (_, mutations) = world.mutations_of(world.pass(&plan)).await;
    assert_eq!(mutations, [""; 0]);
}

#[tokio::test]
async fn children_belong_to_their_parent() {
    let world = World::new().await;
    world.settle(&plan([map("a", json!({}))])).await;
    let owners = world.map("a").await.unwrap().owner_references().to_vec();
    let owner = owners.first().expect("it has an owner");
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("Widget", "one"));
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
    assert_eq!(Some(&owner.uid), world.widget().metadata.uid.as_ref());
}

#[tokio::test]
async fn a_field_that_left_the_plan_goes() {
    let world = World::new().await;
    world.settle(&plan([map("a", json!({"stays": "1", "leaves": "2"}))])).await;
    world.edit::<ConfigMap>("a", json!({"data": {"others": "3"}})).await;
    world.settle(&plan([map("a", json!({"stays": "1"}))])).await;
    assert_eq!(world.data("a").await, json!({"stays": "1", "others": "3"}));
}

#[tokio::test]
async fn what_others_change_is_healed_and_what_they_add_stays() {
    let world = World::new().await;
    let plan = plan([map("a", json!({"k": "1"}))]);
    world.settle(&plan).await;
    world.edit::<ConfigMap>("a", json!({"data": {"k": "theirs", "new": "theirs"}})).await;
    world.settle(&plan).await;
    assert_eq!(world.data("a").await, json!({"k": "1", "new": "theirs"}));
    // A change of what is theirs is none of our business.
    world.edit::<ConfigMap>("a", json!({"data": {"new": "changed"}})).await;
    let (_, mutations) = world.mutations_of(world.pass(&plan)).await;
    assert_eq!(mutations, [""; 0]);
    // The reference to the owner is ours, and so is the child without it.
    world.edit::<ConfigMap>("a", json!({"metadata": {"ownerReferences": null}})).await;
    world.settle(&plan).await;
    assert_eq!(world.map("a").await.unwrap().owner_references().len(), 1);
}

#[tokio::test]
async fn a_child_that_was_deleted_comes_back() {
    let world = World::new().await;
    let plan = plan([map("a", json!({"k": "1"}))]);
    world.settle(&plan).await;
    world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
    world.caught_up().await;
    world.settle(&plan).await;
    assert_eq!(world.data("a").await, json!({"k": "1"}));
}

#[tokio::test]
async fn a_child_that_is_going_is_waited_for() {
    let world = World::new().await;
    let plan = plan([map("a", json!({"k": "1"}))]);
    world.settle(&plan).await;
    world
        .edit::<ConfigMap>("a", json!({"metadata": {"finalizers": ["example.com/hold"]}, "data": {"k": "2"}}))
        .await;
    world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
    world.caught_up().await;
    let (report, mutations) = world.mutations_of(world.pass(&plan)).await;
    assert_eq!((report.outcome, mutations), (Outcome::AwaitChange, vec![]));
    world.edit::<ConfigMap>("a", json!({"metadata": {"finalizers": null}})).await;
    world.settle(&plan).await;
    assert_eq!(world.data("a").await, json!({"k": "1"}));
}

#[tokio::test]
async fn what_is_not_ours_is_not_taken_over() {
    let world = World::new().await;
    let foreign = |name: &str, owners: Value| -> ConfigMap {
        serde_json::from_value(
            json!({"metadata": {"name": name, "ownerReferences": owners}, "data": {"x": "theirs"}}),
        )
        .unwrap()
    };
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "7", "controller": true}]);
    for object in [foreign("loose", json!([])), foreign("controlled", owner)] {
        world.api::<ConfigMap>().create(&PostParams::default(), &object).await.unwrap();
    }
    world.caught_up().await;
    let wanted = ["loose", "controlled", "free"].map(|name| map(name, json!({"y": "ours"})));
    let report = world.pass(&plan(wanted)).await;
    let failures: Vec<_> = report.failures.iter().map(ToString::to_string).collect();
    assert_eq!(
        failures,
        [
            "cannot apply ConfigMap default/loose: there is one that this operator did not make",
            "cannot apply ConfigMap default/controlled: there is one that Deployment web with UID 7 controls",
        ]
    );
    assert_eq!(world.data("loose").await, json!({"x": "theirs"}));
    assert_eq!(world.data("controlled").await, json!({"x": "theirs"}));
    assert_eq!(world.data("free").await, json!({"y": "ours"}), "the others go on");
}

#[tokio::test]
async fn what_is_not_ours_is_not_taken_over_on_the_word_of_an_old_view() {
    let mut world = World::new().await;
    world.stop_watching();
    let theirs: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"x": "theirs"}})).unwrap();
    world.api::<ConfigMap>().create(&PostParams::default(), &theirs).await.unwrap();
    // No field of theirs is in our way: an apply would be taken, and would make the object ours.
    let report = world.pass(&plan([map("a", json!({"y": "ours"}))])).await;
    assert!(matches!(&report.failures[..], [Failure::Foreign { .. }]), "{report:?}");
    assert_eq!(world.data("a").await, json!({"x": "theirs"}));
}

#[tokio::test]
async fn a_child_that_the_cache_has_not_seen_is_not_made_twice() {
    let mut world = World::new().await;
    let plan = plan([map("a", json!({"k": "1"}))]);
    // Somebody like us made it, and then crashed.
    let before = World::after(&world).await;
    world.stop_watching();
    before.settle(&plan).await;
    let uid = world.map("a").await.unwrap().uid();
    let report = world.pass(&plan).await;
    assert!(report.failures.is_empty(), "{report:?}");
    let (_, mutations) = world.mutations_of(world.pass(&plan)).await;
    assert_eq!(mutations, [""; 0], "it is known from here on");
    assert_eq!(world.map("a").await.unwrap().uid(), uid);
}

#[tokio::test]
async fn the_successor_of_a_child_is_not_updated() {
    let mut world = World::new().await;
    world.settle(&plan([map("a", json!({"k": "1"}))])).await;
    world.stop_watching();
    world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
    let theirs: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"k": "theirs"}})).unwrap();
    world.api::<ConfigMap>().create(&PostParams::default(), &theirs).await.unwrap();
    let report = world.pass(&plan([map("a", json!({"k": "2"}))])).await;
    assert!(report.conflicted && report.failures.is_empty(), "{report:?}");
    assert_eq!(world.data("a").await, json!({"k": "theirs"}));
}

#[tokio::test]
async fn one_child_that_is_refused_leaves_the_others_alone() {
    let world = World::new().await;
    let bad = map("bad", json!({"not a key!": "x"}));
    let report = world.pass(&plan([bad, map("good", json!({"k": "1"}))])).await;
    assert_eq!(report.failures.len(), 1);
    assert!(report.failures[0].is_lasting());
    assert_eq!(report.failures[0].to_string(), "cannot apply ConfigMap default/bad: invalid");
    assert_eq!(world.data("good").await, json!({"k": "1"}));
}

#[tokio::test]
async fn a_child_that_the_plan_has_twice_is_applied_once() {
    let world = World::new().await;
    let report = world.pass(&plan([map("a", json!({"k": "1"})), map("a", json!({"k": "2"}))])).await;
    assert_eq!(report.failures[0].to_string(), "cannot apply ConfigMap default/a: the plan has it twice");
    assert_eq!(world.data("a").await, json!({"k": "1"}));
}

#[tokio::test]
async fn a_child_can_be_replaced_in_one_pass() {
    let world = World::new().await;
    let fixed = |value: &str| child::<ConfigMap>("a", json!({"data": {"k": value}, "immutable": true}));
    world.settle(&plan([fixed("1")])).await;
    let report = world.pass(&plan([fixed("2")])).await;
    assert!(report.failures[0].is_lasting(), "{report:?}");
    let old = world.map("a").await.unwrap();
    let mut replace: WidgetPlan = Plan::new().delete(&old, "its data cannot change");
    replace.actions.extend(plan([fixed("2")]).actions);
    let report = world.pass(&replace).await;
    assert!(report.failures.is_empty() && !report.conflicted, "{report:?}");
    assert_eq!(world.data("a").await, json!({"k": "2"}));
    // A delete of what is gone is done, and nothing to look at again.
    let gone: WidgetPlan = Plan::new().delete(&old, "its data cannot change");
    let world = World::with_owned(&world, false).await;
    world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
    world.caught_up().await;
    let report = world.pass(&gone).await;
    assert_eq!((report.writes.len(), report.failures.len(), report.outcome), (0, 0, Outcome::AwaitChange));
}

#[tokio::test]
async fn values_in_the_servers_own_spelling_do_not_loop() {
    let world = World::new().await;
    let wanted = |cpu: &str| {
        let container = json!({
            "name": "c", "image": "i", "env": [], "resources": {"requests": {"cpu": cpu}, "limits": {"memory": "1024Mi"}},
        });
        let spec = json!({
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}, "annotations": {}}, "spec": {"containers": [container]}},
        });
        plan([child::<Deployment>("web", json!({"spec": spec}))])
    };
    let (_, mutations) = world.mutations_of(world.settle(&wanted("1000m"))).await;
    assert_eq!(
        mutations,
        ["patch deployments web 201", "patch deployments web 200"],
        "the second changes nothing"
    );
    // Another label is no reason to try again; another value is.
    world.edit::<Deployment>("web", json!({"metadata": {"labels": {"others": "x"}}})).await;
    let (_, mutations) = world.mutations_of(world.pass(&wanted("1000m"))).await;
    assert_eq!(mutations, [""; 0]);
    world.settle(&wanted("2000m")).await;
    let patch = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "7"}}}]}}}});
    world.edit::<Deployment>("web", patch).await;
    world.settle(&wanted("2000m")).await;
    let live = world.api::<Deployment>().get("web").await.unwrap();
    let container = json!(live.spec.unwrap().template.spec.unwrap().containers[0]);
    assert_eq!(container["resources"], json!({"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}));
}

#[tokio::test]
async fn the_texts_of_a_secret_are_healed_too() {
    let world = World::new().await;
    let plan = plan([child::<Secret>(
        "s",
        json!({"stringData": {"password": "hunter2"}, "data": {"user": "bWU="}}),
    )]);
    world.settle(&plan).await;
    let (_, mutations) = world.mutations_of(world.pass(&plan)).await;
    assert_eq!(mutations, [""; 0]);
    world.edit::<Secret>("s", json!({"stringData": {"password": "theirs"}})).await;
    world.settle(&plan).await;
    let data = json!(world.api::<Secret>().get("s").await.unwrap().data);
    assert_eq!(data, json!({"password": "aHVudGVyMg==", "user": "bWU="}));
}

#[tokio::test]
async fn a_child_without_a_namespace_is_in_that_of_its_parent() {
    let world = World::new().await;
    let mut child = map("a", json!({"k": "1"}));
    child.key = ObjectKey::cluster("a");
    child.object["metadata"].as_object_mut().unwrap().remove("namespace");
    world.settle(&plan([child])).await;
    assert_eq!(world.data("a").await, json!({"k": "1"}));
}

#[tokio::test]
async fn a_child_of_the_cluster_has_no_owner_in_a_namespace() {
    let world = World::new().await;
    let role = |verb: &str| {
        let object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}],
        });
        plan([Child { kind: Kind::of::<ClusterRole>(), key: ObjectKey::cluster("reader"), object }])
    };
    world.settle(&role("get")).await;
    world.settle(&role("list")).await;
    let roles: kube::Api<ClusterRole> = kube::Api::all(world.cluster.client());
    let live = roles.get("reader").await.unwrap();
    assert_eq!(live.owner_references().len(), 0, "the garbage collector would delete it");
    assert_eq!(live.rules.unwrap()[0].verbs, ["list"]);
    // One that somebody else made is theirs.
    let theirs = json!({"metadata": {"name": "theirs"}, "rules": []});
    roles.create(&PostParams::default(), &serde_json::from_value(theirs).unwrap()).await.unwrap();
    let mut taking = role("get");
    let Action::Apply(child) = &mut taking.actions[0] else { unreachable!() };
    child.key = ObjectKey::cluster("theirs");
    child.object["metadata"]["name"] = "theirs".into();
    let report = world.pass(&taking).await;
    assert!(matches!(&report.failures[..], [Failure::Foreign { .. }]), "{report:?}");
}

#[tokio::test]
async fn every_write_is_a_named_crash_point() {
    let world = World::with(|executor| executor.finalizer(crate::world::FINALIZER)).await;
    let plan = plan([map("a", json!({"k": "1"}))])
        .effect(crate::world::Ring("bell"))
        .status(crate::world::phase("Up"));
    world.pass(&plan).await;
    let passed = world.crash_points.lock().unwrap().clone();
    assert_eq!(passed, ["set finalizers Widget", "apply ConfigMap", "effect", "apply status Widget"]);
}
