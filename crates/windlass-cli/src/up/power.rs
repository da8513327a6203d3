//! Nodes that are cut off or switched off, for those who try what happens then: an annotation of the Node says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use tokio::sync::mpsc;
use windlass::Env;
use windlass::cache::{Delta, Informer, Subscriber};

use super::member::Member;

/// The annotation of a Node.
pub const ANNOTATION: &str = "windlass.dev/node";

/// What is done to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Power {
    /// Nothing.
    #[default]
    On,
    /// Its pods run on, and reach each other; nobody reaches it, and it reaches nobody.
    CutOff,
    /// It has no power: nothing of it runs.
    Off,
}

impl Power {
    /// What an annotation says.
    pub fn parse(text: Option<&str>) -> Power {
        match text {
            Some("cut-off") => Power::CutOff,
            Some("off") => Power::Off,
            _ => Power::On,
        }
    }

    /// What the annotation has to say for it.
    pub fn text(self) -> Option<&'static str> {
        match self {
            Power::On => None,
            Power::CutOff => Some("cut-off"),
            Power::Off => Some("off"),
        }
    }
}

struct Teller(mpsc::UnboundedSender<(String, Power)>);

impl Subscriber<Node> for Teller {
    fn changed(&self, delta: &Delta<Node>) {
        let said = delta.new.as_ref().and_then(|node| node.metadata.annotations.as_ref()?.get(ANNOTATION));
        // Nobody hears it when the nodes have ended.
        let _ = self.0.send((delta.key.name().to_owned(), Power::parse(said.map(String::as_str))));
    }
}

/// When something that failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Does to nodes what their annotations say.
pub async fn follow(nodes: Informer<Node>, members: Vec<Arc<Member>>, env: Env) {
    let (teller, mut told) = mpsc::unbounded_channel();
    nodes.subscribe(Arc::new(Teller(teller)));
    let mut is: BTreeMap<String, Power> = BTreeMap::new();
    while let Some((name, power)) = told.recv().await {
        let Some(member) = members.iter().find(|member| member.name() == name) else { continue };
        if is.get(&name).copied().unwrap_or_default() == power {
            continue;
        }
        tracing::info!(node = name, ?power, "a node is switched");
        while let Err(error) = member.switch(power).await {
            tracing::warn!(node = name, error = %with_causes(&error), "a node cannot be switched");
            env.sleep(AGAIN).await;
        }
        is.insert(name, power);
    }
}

/// An error with its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_says_what_is_done_to_a_node() {
        for power in [Power::On, Power::CutOff, Power::Off] {
            assert_eq!(Power::parse(power.text()), power);
        }
        assert_eq!(Power::parse(Some("something else")), Power::On);
    }
}
