//! An operator as it usually is: a kind, a plan for its objects, and children that follow it.
//!
//! ```console
//! $ cargo run -p windlass --example planner
//! ```
//!
//! It runs on a server in this process. As a program of its own, `main` would be `operator().main()`.

use std::collections::BTreeMap;
use std::error::Error;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, Patch, PatchParams};
use kube::{CustomResource, KubeSchema, ResourceExt as _};
use serde::{Deserialize, Serialize};
use windlass::core::Plan;
use windlass::core::plan::NoEffect;
use windlass::jiff::Timestamp;
use windlass::{Context, Controller, Env, Operator, Planner, Settings};
use windlass_testing::TestCluster;

/// Somebody who has to be greeted.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Guest", namespaced, status = "GuestStatus")]
pub struct GuestSpec {
    /// How they like to be called.
    pub name: String,
}

/// How far that has come.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct GuestStatus {
    /// What was said.
    pub greeting: Option<String>,
}

/// The operator's knowledge: what a guest needs.
struct Host;

impl Planner for Host {
    type Object = Guest;
    type Observed = ();
    type Effect = NoEffect;

    /// Nothing beside the guest has to be known.
    async fn observe(&self, _: &Context, _: &Guest) -> Result<(), windlass::Error> {
        Ok(())
    }

    /// Says what should be. The executor finds out what differs from that, and writes only this.
    fn plan(&self, guest: &Guest, (): &(), _: Timestamp) -> Plan<Guest> {
        let greeting = format!("hello {}", guest.spec.name);
        let card = ConfigMap {
            metadata: ObjectMeta {
                name: Some(format!("{}-card", guest.name_any())),
                namespace: guest.namespace(),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([("greeting".to_owned(), greeting.clone())])),
            ..ConfigMap::default()
        };
        Plan::new().apply(card).status(GuestStatus { greeting: Some(greeting) })
    }
}

fn operator() -> Operator {
    Operator::new("host", "0.1.0").crd::<Guest>().controller(Controller::new(Host).owns::<ConfigMap>())
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = TestCluster::new().await;
    let running = operator().start(cluster.client(), Settings::for_tests(Env::system())).await?;

    let guests: Api<Guest> = Api::default_namespaced(cluster.client());
    for name in ["Ada", "Grace"] {
        let guest = Guest::new("one", GuestSpec { name: name.to_owned() });
        guests.patch("one", &PatchParams::apply("me").force(), &Patch::Apply(&guest)).await?;
        let says = |card: &ConfigMap| {
            card.data.as_ref().is_some_and(|data| data["greeting"] == format!("hello {name}"))
        };
        cluster.wait_for("default", "one-card", "the card greets them", says).await?;
        println!("the card greets {name}");
    }
    running.stop().await?;
    Ok(())
}
