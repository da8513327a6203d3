//! Kinds that have no Rust type: controlled, watched and read as dynamic objects.
//!
//! ```console
//! $ cargo run -p windlass --example dynamic
//! ```

use std::error::Error;
use std::sync::Arc;

use kube::ResourceExt as _;
use windlass::core::{Kind, ObjectKey, Outcome};
use windlass::events::{Event, reference};
use windlass::kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use windlass::{Controller, Env, Operator, Settings};
use windlass_testing::TestCluster;

const DEFINITIONS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Boat, plural: boats, singular: boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {harbour: {type: string}}}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: harbours.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Harbour, plural: harbours, singular: harbour}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {berths: {type: integer}}}}}}
---
{apiVersion: example.com/v1, kind: Harbour, metadata: {name: piraeus}, spec: {berths: 3}}
---
{apiVersion: example.com/v1, kind: Boat, metadata: {name: argo}, spec: {harbour: piraeus}}
";

fn kind(name: &str) -> Kind {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", name));
    Kind { resource, namespaced: true }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = TestCluster::new().await;
    cluster.apply_yaml(DEFINITIONS).await?;
    let (seen, mut looks) = tokio::sync::mpsc::channel(10);
    let controller = Controller::dynamic(kind("Boat"), move |ctx, boat: Arc<DynamicObject>| {
        let seen = seen.clone();
        async move {
            let name = boat.data["spec"]["harbour"].as_str().unwrap_or_default();
            let harbour = ObjectKey::new(boat.namespace().as_deref(), name);
            let harbour = ctx.cache().get_of::<DynamicObject>(&kind("Harbour"), &harbour)?;
            let berths = harbour.map(|harbour| harbour.data["spec"]["berths"].clone()).unwrap_or_default();
            let note = format!("{} lies in {name}, which has {berths} berths", boat.name_any());
            let about = reference(&kind("Boat"), &boat.metadata);
            ctx.recorder().publish(&about, Event::normal("Moored", "Look", note.clone()));
            seen.send(note).await?;
            Ok(Outcome::AwaitChange)
        }
    });
    let operator = Operator::new("port", "0.1.0").controller(controller.reads_dynamic(kind("Harbour")));
    let running = operator.start(cluster.client(), Settings::for_tests(Env::system())).await?;
    let note = looks.recv().await.ok_or("the operator has ended")?;
    println!("{note}");
    assert_eq!(note, "argo lies in piraeus, which has 3 berths");
    running.stop().await?;
    Ok(())
}
