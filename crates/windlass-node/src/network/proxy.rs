//! Keeps the rules of every network as the Services and their endpoints are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use windlass::Env;
use windlass::cache::{Delta, Subscriber};

use super::dns::Cached;
use super::fabric::Network;
use super::ruleset::{Place, ruleset};
use super::script::node_net;
use super::services::fronts;

/// How long more changes are waited for before rules are made of them: a rollout changes endpoints by the dozen.
const REST: Duration = Duration::from_millis(50);

/// After rules that were refused.
const RETRY: Duration = Duration::from_secs(2);

/// Wakes someone when anything of a kind changes.
#[derive(Debug, Default)]
pub(super) struct Wake(Notify);

impl Wake {
    pub(super) fn of(known: &Cached) -> Arc<Wake> {
        let wake = Arc::new(Wake::default());
        known.services.subscribe(wake.clone());
        known.slices.subscribe(wake.clone());
        wake
    }

    pub(super) async fn changed(&self) {
        self.0.notified().await;
    }

    fn again(&self) {
        self.0.notify_one();
    }
}

impl<K> Subscriber<K> for Wake {
    fn changed(&self, _: &Delta<K>) {
        self.again();
    }
}

/// Runs until it is dropped.
///
/// # Guarantees
/// A network has rules once everything that there is, is known: never those of half of the Services.
pub async fn run(network: Network, known: Cached, env: Env) {
    let wake = Wake::of(&known);
    let mut applied: BTreeMap<String, String> = BTreeMap::new();
    known.services.listed().await;
    known.slices.listed().await;
    wake.again();
    loop {
        wake.changed().await;
        let (services, slices) = (known.services.list(None), known.slices.list(None));
        let fronts = fronts(services.iter().map(|one| &**one), slices.iter().map(|one| &**one));
        let of_nodes = network
            .nodes()
            .iter()
            .map(|(name, addresses)| (node_net(name), Place::Node { name, addresses: *addresses }));
        let mut refused = false;
        for (net, place) in of_nodes.chain([(String::new(), Place::Fabric)]) {
            let text = ruleset(&fronts, place);
            if applied.get(&net) == Some(&text) {
                continue;
            }
            match network.rules(&net, text.clone()).await {
                Ok(()) => {
                    applied.insert(net, text);
                }
                Err(error) => {
                    tracing::warn!(net, error = %error, "the rules of Services were refused");
                    refused = true;
                }
            }
        }
        if refused {
            env.sleep(RETRY).await;
            wake.again();
        } else {
            env.sleep(REST).await;
        }
    }
}
