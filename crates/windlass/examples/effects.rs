//! Effects: what has to happen outside of the API server, as data.
//!
//! ```console
//! $ cargo run -p windlass --example effects
//! ```
//!
//! A plan names effects, one of them is performed in a pass, and the next pass observes again. The finalizer is on the
//! object before the first one, and stays until the cleanup plans no more of them. A crash anywhere in between is an
//! ordinary state: whoever comes next observes what there is.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex};

use kube::api::{Api, DeleteParams, PostParams};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use windlass::core::Plan;
use windlass::jiff::Timestamp;
use windlass::{Context, Controller, Env, Operator, Planner, Settings};
use windlass_testing::TestCluster;

/// Names that should be known to a server of names.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Zone", namespaced, status = "ZoneStatus")]
pub struct ZoneSpec {
    /// The names.
    pub names: Vec<String>,
}

/// How far that has come.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct ZoneStatus {
    /// How many are known.
    pub known: usize,
}

/// Stands for the server of names. It is the operator's own state, which every pass has at hand.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<BTreeSet<String>>>);

impl Names {
    fn all(&self) -> BTreeSet<String> {
        self.0.lock().unwrap().clone()
    }
}

/// What can be done there.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Register(String),
    Forget(String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Register(name) => write!(f, "register {name}"),
            Change::Forget(name) => write!(f, "forget {name}"),
        }
    }
}

struct Registrar;

impl Planner for Registrar {
    type Object = Zone;
    type Observed = BTreeSet<String>;
    type Effect = Change;

    const FINALIZER: Option<&'static str> = Some("example.com/names");

    async fn observe(&self, ctx: &Context, _: &Zone) -> Result<BTreeSet<String>, windlass::Error> {
        Ok(ctx.state::<Names>().all())
    }

    fn plan(&self, zone: &Zone, known: &BTreeSet<String>, _: Timestamp) -> Plan<Zone, Change> {
        let wanted: BTreeSet<String> = zone.spec.names.iter().cloned().collect();
        let plan = Plan::new().status(ZoneStatus { known: known.len() });
        let plan =
            wanted.difference(known).fold(plan, |plan, name| plan.effect(Change::Register(name.clone())));
        known.difference(&wanted).fold(plan, |plan, name| plan.effect(Change::Forget(name.clone())))
    }

    fn cleanup(&self, _: &Zone, known: &BTreeSet<String>, _: Timestamp) -> Plan<Zone, Change> {
        known.iter().fold(Plan::new(), |plan, name| plan.effect(Change::Forget(name.clone())))
    }

    /// May be done again after a crash: to register a name twice does no harm.
    async fn perform(&self, ctx: &Context, _: &Zone, change: &Change) -> Result<(), windlass::Error> {
        println!("{change}");
        let names = ctx.state::<Names>();
        let mut names = names.0.lock().unwrap();
        match change {
            Change::Register(name) => names.insert(name.clone()),
            Change::Forget(name) => names.remove(name),
        };
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = TestCluster::new().await;
    let names = Names::default();
    let operator = Operator::new("registrar", "0.1.0")
        .crd::<Zone>()
        .state(names.clone())
        .controller(Controller::new(Registrar));
    let running = operator.start(cluster.client(), Settings::for_tests(Env::system())).await?;

    let zones: Api<Zone> = Api::default_namespaced(cluster.client());
    let zone =
        Zone::new("one", ZoneSpec { names: vec!["a.example.com".to_owned(), "b.example.com".to_owned()] });
    zones.create(&PostParams::default(), &zone).await?;
    let known = |zone: &Zone| zone.status.as_ref().is_some_and(|status| status.known == 2);
    cluster.wait_for("default", "one", "both names are known", known).await?;
    println!("known: {:?}", names.all());

    zones.delete("one", &DeleteParams::default()).await?;
    cluster.wait_gone::<Zone>("default", "one").await?;
    assert!(names.all().is_empty(), "the zone went after its names");
    running.stop().await?;
    Ok(())
}
