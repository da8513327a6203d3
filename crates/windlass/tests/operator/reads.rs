//! What a pass can read: typed, metadata only, dynamic, by index; and what it is told where nobody declared that.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::{CustomResourceExt as _, ResourceExt as _};
use serde_json::json;
use windlass::cache::{Declared, Index, Scope};
use windlass::core::select::LabelSelector;
use windlass::core::{Kind, ObjectKey, Outcome};
use windlass::events::{Event, reference};
use windlass::{Controller, Error, Operator};
use windlass_testing::TestCluster;

use crate::support::{Log, config_map, start, until, until_told};
use crate::widget::{Widget, apply};

type Said = Arc<Mutex<Vec<String>>>;

/// Widgets, as one who has no Rust type for them knows them.
fn widgets() -> Kind {
    let resource = ApiResource {
        group: "test.example.com".into(),
        version: "v1".into(),
        api_version: "test.example.com/v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
    };
    Kind { resource, namespaced: true }
}

async fn cluster() -> TestCluster {
    let cluster = TestCluster::new().await;
    cluster.apply_yaml(&serde_json::to_string(&Widget::crd()).unwrap()).await.unwrap();
    config_map(&cluster, "one", "1").await;
    apply(&cluster, "default", "w", json!({"size": 3})).await;
    let secret =
        "{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {of: one}}, stringData: {k: hidden}}";
    cluster.apply_yaml(secret).await.unwrap();
    cluster
}

/// Runs a function once on the ConfigMap `one`, with a controller that declares something.
async fn once<F>(declare: impl FnOnce(Controller<ConfigMap>) -> Controller<ConfigMap>, read: F) -> Vec<String>
where
    F: Fn(&windlass::Context) -> Result<Vec<String>, Error> + Send + Sync + 'static,
{
    let cluster = cluster().await;
    let said = Said::default();
    let controller = {
        let said = said.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            if ctx.key().name() == "one" {
                let lines = read(&ctx).unwrap_or_else(|error| vec![error.to_string()]);
                said.lock().unwrap().extend(lines);
            }
            async { Ok(Outcome::AwaitChange) }
        })
    };
    let operator = Operator::new("test-operator", "0.0.0").controller(declare(controller));
    let running = start(&cluster, operator).await;
    until(|| !said.lock().unwrap().is_empty()).await;
    running.stop().await.unwrap();
    said.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_read_and_costs_no_data() {
    let read = |ctx: &windlass::Context| {
        let secret = ctx.get::<PartialObjectMeta<Secret>>(&ObjectKey::namespaced("default", "s"))?;
        Ok(secret.into_iter().map(|one| serde_json::to_string(&*one).unwrap()).collect())
    };
    let said = once(Controller::reads_metadata::<Secret>, read).await;
    assert!(said[0].contains("\"of\":\"one\"") && !said[0].contains("data\":{\"k"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_type_is_read_through_the_cache() {
    let read = |ctx: &windlass::Context| {
        let all = ctx.cache().list_of::<DynamicObject>(&widgets(), Some("default"))?;
        let one = ctx.cache().get_of::<DynamicObject>(&widgets(), &ObjectKey::namespaced("default", "w"))?;
        Ok(all
            .into_iter()
            .chain(one)
            .map(|one| format!("{} {}", one.name_any(), one.data["spec"]["size"]))
            .collect())
    };
    let said = once(|controller| controller.reads_dynamic(widgets()), read).await;
    assert_eq!(said, ["w 3", "w 3"]);
}

#[tokio::test(start_paused = true)]
async fn an_index_finds_what_it_should() {
    let by_label =
        || Index::new("of", |secret: &Secret| secret.labels().get("of").cloned().into_iter().collect());
    let read = |ctx: &windlass::Context| {
        let found = ctx.by_index::<Secret>("of", ctx.key().name())?;
        let none = ctx.by_index::<Secret>("of", "nobody")?;
        let missing = ctx.by_index::<Secret>("by", "one").unwrap_err();
        let found = found.into_iter().chain(none).map(|secret| secret.name_any());
        Ok(found.chain([missing.to_string()]).collect())
    };
    let declared = move || Declared::<Secret>::typed().scope(Scope::Watched).index(by_label());
    let said = once(move |controller| controller.reads_with(declared()), read).await;
    assert_eq!(said, ["s", "Secret has no index \"by\": add it where the kind is declared"]);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_declared_is_an_error_that_names_a_line_that_exists() {
    let read = |ctx: &windlass::Context| {
        let key = ObjectKey::namespaced("default", "s");
        let typed = ctx.get::<Secret>(&key).unwrap_err();
        let metadata = ctx.get::<PartialObjectMeta<Secret>>(&key).unwrap_err();
        let dynamic = ctx.cache().get_of::<DynamicObject>(&widgets(), &key).unwrap_err();
        Ok([typed, metadata, dynamic].map(|error| error.to_string()).to_vec())
    };
    let said = once(|controller| controller, read).await;
    let lines = [".reads::<Secret>()", ".reads_metadata::<Secret>()", ".reads_dynamic(kind)"];
    for (said, line) in said.iter().zip(lines) {
        assert!(said.contains(&format!("add `{line}` to the controller")), "{said}");
    }
    // The lines, as they would be added.
    let add = |controller: Controller<ConfigMap>| {
        controller.reads::<Secret>().reads_metadata::<Secret>().reads_dynamic(widgets())
    };
    let read = |ctx: &windlass::Context| {
        let key = ObjectKey::namespaced("default", "s");
        let typed = ctx.get::<Secret>(&key)?.is_some();
        let metadata = ctx.get::<PartialObjectMeta<Secret>>(&key)?.is_some();
        let dynamic = ctx.cache().list_of::<DynamicObject>(&widgets(), None)?.len();
        Ok(vec![format!("{typed} {metadata} {dynamic}")])
    };
    assert_eq!(once(add, read).await, ["true true 1"]);
}

#[tokio::test(start_paused = true)]
async fn reading_watches_nothing_that_was_not_declared() {
    let cluster = cluster().await;
    let log = Log::default();
    let controller = {
        let log = log.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            log.note(ctx.key());
            assert!(ctx.list::<Secret>(None).is_err());
            async { Ok(Outcome::AwaitChange) }
        })
    };
    let running = start(&cluster, Operator::new("test-operator", "0.0.0").controller(controller)).await;
    until(|| log.count("default/one") == 1).await;
    running.stop().await.unwrap();
    assert_eq!(cluster.count("list", "secrets") + cluster.count("watch", "secrets"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_a_kind_without_a_type_works_and_tells() {
    let cluster = cluster().await;
    let controller = Controller::dynamic(widgets(), |ctx, widget: Arc<DynamicObject>| async move {
        let note = format!("its size is {}", widget.data["spec"]["size"]);
        ctx.recorder().publish(&reference(&widgets(), &widget.metadata), Event::normal("Seen", "Look", note));
        Ok(Outcome::AwaitChange)
    });
    let running = start(&cluster, Operator::new("test-operator", "0.0.0").controller(controller)).await;
    until_told(&cluster, |event| event.note.as_deref() == Some("its size is 3")).await;
    apply(&cluster, "default", "w", json!({"size": 4})).await;
    until_told(&cluster, |event| event.note.as_deref() == Some("its size is 4")).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn controllers_of_one_kind_share_one_watch_and_one_that_selects_has_its_own() {
    let cluster = cluster().await;
    let (all, some) = (Log::default(), Log::default());
    let noting = |log: &Log, name: &str| {
        let log = log.clone();
        let controller = Controller::raw(move |ctx, map: Arc<ConfigMap>| {
            log.note(ctx.key());
            assert!(map.metadata.managed_fields.is_none(), "nobody reads these");
            async { Ok(Outcome::AwaitChange) }
        });
        controller.named(name)
    };
    let labels = || LabelSelector::parse("colour=red").unwrap();
    let operator = Operator::new("test-operator", "0.0.0")
        .controller(noting(&all, "first"))
        .controller(noting(&all, "second"))
        .controller(noting(&some, "red").declared(|maps| maps.labels(labels())));
    let running = start(&cluster, operator).await;
    let red = "{apiVersion: v1, kind: ConfigMap, metadata: {name: red, labels: {colour: red}}}";
    cluster.apply_yaml(red).await.unwrap();
    until(|| all.count("default/one") == 2 && all.count("default/red") == 2).await;
    until(|| some.count("default/red") == 1).await;
    assert_eq!(some.count("default/one"), 0);
    assert_eq!(cluster.count("watch", "configmaps"), 2, "one of all, one of the red ones");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_transform_changes_what_is_kept() {
    let read = |ctx: &windlass::Context| {
        let secret = ctx.get::<Secret>(&ObjectKey::namespaced("default", "s"))?;
        Ok(secret.map(|secret| format!("{:?} {:?}", secret.name_any(), secret.data)).into_iter().collect())
    };
    let without_data = || Declared::<Secret>::typed().transform(|secret| secret.data = None);
    let said = once(move |controller| controller.reads_with(without_data()), read).await;
    assert_eq!(said, ["\"s\" None"]);
}
