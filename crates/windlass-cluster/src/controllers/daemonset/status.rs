//! What a DaemonSet says of itself.

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};

use super::Step;
use super::place::{Place, is_updated, place};
use super::rollout::min_ready;
use crate::controllers::{nodes, pods};

impl Step<'_> {
    /// Writes the status if it has changed, and looks again when a pod has been ready for long enough.
    pub(super) fn settle(&mut self) {
        let before = self.set.status.clone().unwrap_or_default();
        let mut status = DaemonSetStatus {
            desired_number_scheduled: 0,
            current_number_scheduled: 0,
            number_misscheduled: 0,
            number_ready: 0,
            updated_number_scheduled: None,
            number_available: None,
            number_unavailable: None,
            observed_generation: self.set.metadata.generation,
            ..before
        };
        let (mut updated, mut available) = (0, 0);
        for node in &self.nodes {
            let pod = self.pods.get(nodes::name(node)).and_then(|pods| pods.first());
            match (place(self.set, node), pod) {
                (Place::Wanted, pod) => {
                    status.desired_number_scheduled += 1;
                    let Some(pod) = pod else { continue };
                    status.current_number_scheduled += 1;
                    updated += i32::from(is_updated(self.set, pod, self.hash));
                    status.number_ready += i32::from(pods::is_ready(pod));
                    if pods::is_available(pod, min_ready(self.set), self.now) {
                        available += 1;
                    } else if let Some(time) = pods::available_at(pod, min_ready(self.set)) {
                        self.turn.wake_at(time);
                    }
                }
                (_, Some(_)) => status.number_misscheduled += 1,
                (_, None) => {}
            }
        }
        // A count of zero is left out, as the server leaves it out.
        let some = |count: i32| Some(count).filter(|count| *count != 0);
        status.updated_number_scheduled = some(updated);
        status.number_available = some(available);
        status.number_unavailable = some(status.desired_number_scheduled - available);
        if self.set.status.as_ref() != Some(&status) {
            self.turn.status(&DaemonSet { status: Some(status), ..self.set.clone() });
        }
    }
}
