//! EndpointSlices and Endpoints.

use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::world::World;

async fn world() -> World {
    let world = World::with(["endpoints", "endpointslice"]).await;
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    Api::all(world.cluster.client()).create(&PostParams::default(), &node).await.unwrap();
    world
}

fn service(more: Value) -> Value {
    let mut spec =
        json!({"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": "web", "labels": {"team": "a"}}, "spec": spec})
}

async fn pod(world: &World, name: &str, port: i32, ip: &str, ready: bool) {
    let spec = json!({
        "nodeName": "n",
        "hostname": name,
        "subdomain": "web",
        "containers": [{"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": port}]}],
    });
    world.create::<Pod>(json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec})).await;
    status(world, name, ip, ready).await;
}

async fn status(world: &World, name: &str, ip: &str, ready: bool) {
    let ready = if ready { "True" } else { "False" };
    let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [
        {"type": "Ready", "status": ready, "lastTransitionTime": jiff::Timestamp::now().to_string()},
    ]}});
    let patch = kube::api::Patch::Merge(status);
    world.api::<Pod>().patch_status(name, &Default::default(), &patch).await.unwrap();
}

/// The slices of the Service.
fn own(slices: &[EndpointSlice]) -> Vec<EndpointSlice> {
    let name =
        |slice: &EndpointSlice| slice.metadata.labels.as_ref()?.get("kubernetes.io/service-name").cloned();
    slices.iter().filter(|slice| name(slice).as_deref() == Some("web")).cloned().collect()
}

/// The addresses of all slices, with ready, serving and terminating in one word each.
fn held(slices: &[EndpointSlice]) -> Vec<String> {
    let mut all: Vec<String> = own(slices)
        .iter()
        .flat_map(|slice| slice.endpoints.iter().flatten())
        .map(|endpoint| {
            let is = endpoint.conditions.clone().unwrap_or_default();
            let sign = |yes: Option<bool>, letter: &str| {
                if yes == Some(true) { letter.to_owned() } else { "-".into() }
            };
            format!(
                "{} {}{}{}",
                endpoint.addresses[0],
                sign(is.ready, "r"),
                sign(is.serving, "s"),
                sign(is.terminating, "t")
            )
        })
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn pods_come_turn_and_go() {
    let world = world().await;
    world.create::<Service>(service(json!({}))).await;
    let slices = world.until_all::<EndpointSlice>("a place is kept", |slices| own(slices).len() == 1).await;
    let slices = own(&slices);
    let labels = slices[0].metadata.labels.clone().unwrap();
    assert_eq!(labels["kubernetes.io/service-name"], "web");
    assert_eq!(labels["endpointslice.kubernetes.io/managed-by"], "endpointslice-controller.k8s.io");
    assert_eq!(labels["team"], "a");
    world.until::<Endpoints>("web", "there", |endpoints| endpoints.subsets.is_none()).await;

    pod(&world, "a", 8080, "10.1.0.1", true).await;
    pod(&world, "b", 8080, "10.1.0.2", false).await;
    let both = |slices: &[EndpointSlice]| held(slices) == ["10.1.0.1 rs-", "10.1.0.2 ---"];
    let slices = own(&world.until_all("both", both).await);
    assert_eq!(slices.len(), 1, "the slice that kept the place is used");
    let port = slices[0].ports.as_ref().unwrap()[0].clone();
    assert_eq!((port.name.as_deref(), port.port), (Some("http"), Some(8080)));
    let endpoints = slices[0].endpoints.as_ref().unwrap();
    assert!(endpoints.iter().any(|endpoint| endpoint.hostname.as_deref() == Some("a")));
    world
        .until::<Endpoints>("web", "one of each", |endpoints| {
            let subset =
                endpoints.subsets.as_ref().and_then(|subsets| subsets.first()).cloned().unwrap_or_default();
            subset.addresses.map(|all| all.len()) == Some(1)
                && subset.not_ready_addresses.map(|all| all.len()) == Some(1)
        })
        .await;

    status(&world, "b", "10.1.0.2", true).await;
    world
        .until_all("both ready", |slices: &[EndpointSlice]| held(slices) == ["10.1.0.1 rs-", "10.1.0.2 rs-"])
        .await;
    world.api::<Pod>().delete("a", &DeleteParams::default()).await.unwrap();
    world
        .until_all("one leaves", |slices: &[EndpointSlice]| held(slices) == ["10.1.0.1 -st", "10.1.0.2 rs-"])
        .await;
    world.api::<Pod>().delete("a", &DeleteParams::default().grace_period(0)).await.unwrap();
    world.until_all("one is left", |slices: &[EndpointSlice]| held(slices) == ["10.1.0.2 rs-"]).await;
    world.api::<Service>().delete("web", &DeleteParams::default()).await.unwrap();
    world
        .until_all::<Endpoints>("no Endpoints", |all| {
            all.iter().all(|one| one.metadata.name.as_deref() != Some("web"))
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn a_named_port_may_be_another_on_each_pod() {
    let world = world().await;
    world.create::<Service>(service(json!({"clusterIP": "None"}))).await;
    pod(&world, "a", 8080, "10.1.0.1", true).await;
    pod(&world, "b", 9090, "10.1.0.2", true).await;
    let slices = world
        .until_all::<EndpointSlice>("two slices", |all| held(all).len() == 2 && own(all).len() == 2)
        .await;
    for slice in own(&slices) {
        assert!(slice.metadata.labels.unwrap().contains_key("service.kubernetes.io/headless"));
    }
    world.stop().await;
}

#[tokio::test]
async fn a_hundred_pods_fill_a_slice() {
    let world = world().await;
    for at in 0..120 {
        pod(&world, &format!("p-{at:03}"), 80, &format!("10.1.0.{}", at + 1), true).await;
    }
    world.create::<Service>(service(json!({}))).await;
    let slices = world.until_all::<EndpointSlice>("all", |all| held(all).len() == 120).await;
    let slices = own(&slices);
    let mut sizes: Vec<usize> = slices.iter().map(|slice| slice.endpoints.as_ref().unwrap().len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [20, 100]);
    // Others stay where they are when one goes.
    let full = slices.iter().find(|slice| slice.endpoints.as_ref().unwrap().len() == 100).unwrap();
    let small = slices.iter().find(|slice| slice.endpoints.as_ref().unwrap().len() == 20).unwrap();
    let first = small.endpoints.as_ref().unwrap()[0].target_ref.as_ref().unwrap().name.clone().unwrap();
    world.api::<Pod>().delete(&first, &DeleteParams::default().grace_period(0)).await.unwrap();
    let slices = world.until_all::<EndpointSlice>("one less", |all| held(all).len() == 119).await;
    let after = slices.iter().find(|slice| slice.metadata.name == full.metadata.name).unwrap();
    assert_eq!(after.metadata.resource_version, full.metadata.resource_version);
    world.stop().await;
}

#[tokio::test]
async fn what_has_no_selector_is_left_alone() {
    let world = world().await;
    world.create::<Service>(json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})).await;
    let own = json!({"metadata": {"name": "web"}, "subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 80}]}]});
    let made: Endpoints = world.create(own).await;
    world
        .create::<Service>(
            json!({"metadata": {"name": "other"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}),
        )
        .await;
    world.until::<Endpoints>("other", "kept", |_| true).await;
    let now = world
        .list::<Endpoints>()
        .into_iter()
        .find(|one| one.metadata.name.as_deref() == Some("web"))
        .unwrap();
    assert_eq!(now.metadata.resource_version, made.metadata.resource_version);
    let services: Vec<String> = world
        .list::<EndpointSlice>()
        .iter()
        .filter_map(|slice| slice.metadata.labels.as_ref()?.get("kubernetes.io/service-name").cloned())
        .filter(|name| name != "kubernetes")
        .collect();
    assert_eq!(services, ["other"]);
    world.stop().await;
}
