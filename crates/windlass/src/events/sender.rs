//! The task that sends events.

use std::time::Duration;

use k8s_openapi::api::events::v1 as api;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Report;
use super::correlate::{Correlator, Decision};
use crate::client;
use crate::env::Env;
use crate::metrics::{Dropped, EventMetrics};

/// As client-go: what the server does not answer is tried again for two minutes. Meanwhile others wait.
const TRIES: u32 = 12;
const BETWEEN_TRIES: Duration = Duration::from_secs(10);
/// Of one request.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Sender {
    client: kube::Client,
    env: Env,
    metrics: EventMetrics,
    correlator: Correlator,
}

impl Sender {
    pub(super) fn new(
        client: kube::Client,
        env: Env,
        metrics: EventMetrics,
        controller: &str,
        instance: &str,
    ) -> Sender {
        Sender { client, env, metrics, correlator: Correlator::new(controller, instance) }
    }

    pub(super) async fn run(mut self, mut reports: mpsc::Receiver<Report>, stop: CancellationToken) {
        let stop = stop.child_token();
        loop {
            let due = self.correlator.due(self.env.moment());
            for event in due {
                self.send(event, &stop).await;
            }
            let next_due = self.correlator.next_due();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                report = reports.recv() => match report {
                    Some(report) => self.take(report, &stop).await,
                    None => break,
                },
                () = async {
                    match next_due {
                        Some(moment) => self.env.sleep_until(moment).await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
        }
        // What was published before the end is told as well, once each: `stop` has come, or nobody is left to publish.
        stop.cancel();
        while let Ok(report) = reports.try_recv() {
            self.take(report, &stop).await;
        }
        let correlator = std::mem::replace(&mut self.correlator, Correlator::new("", ""));
        for event in correlator.untold() {
            self.send(event, &stop).await;
        }
    }

    async fn take(&mut self, report: Report, stop: &CancellationToken) {
        let (now, wall, random) = (self.env.moment(), self.env.now(), self.env.random());
        match self.correlator.observe(report, now, wall, random) {
            Decision::Send(event) => {
                if self.send(*event, stop).await {
                    self.metrics.sent();
                }
            }
            Decision::Counted => self.metrics.sent(),
            Decision::Limited => self.metrics.dropped(Dropped::RateLimit),
        }
    }

    /// Whether the server has it.
    async fn send(&self, event: api::Event, stop: &CancellationToken) -> bool {
        let mut tries = 0;
        let error = loop {
            tries += 1;
            match self.env.within(TIMEOUT, self.attempt(&event)).await {
                Some(Ok(())) => return true,
                // The namespace goes, and with it whom this is about: not worth a line of the log.
                Some(Err(error)) if is_of_an_ending_namespace(&error) => {
                    self.metrics.dropped(Dropped::Failed);
                    return false;
                }
                Some(Err(error)) if !is_transient(&error) => break error.to_string(),
                Some(Err(_)) | None if tries < TRIES && !stop.is_cancelled() => {}
                Some(Err(error)) => break error.to_string(),
                None => break "no answer".to_owned(),
            }
            let pause = self.env.jittered(BETWEEN_TRIES, 0.25);
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.env.sleep(pause) => {}
            }
        };
        self.metrics.dropped(Dropped::Failed);
        let regarding = event.regarding.unwrap_or_default();
        tracing::warn!(
            kind = regarding.kind,
            namespace = regarding.namespace,
            name = regarding.name,
            reason = event.reason,
            note = event.note,
            error,
            "an event could not be told to the cluster"
        );
        false
    }

    async fn attempt(&self, event: &api::Event) -> Result<(), kube::Error> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
        let events: Api<api::Event> = Api::namespaced(self.client.clone(), namespace);
        if event.series.is_some() {
            let name = event.metadata.name.as_deref().unwrap_or_default();
            let patch = Patch::Merge(json!({ "series": event.series }));
            match events.patch(name, &PatchParams::default(), &patch).await {
                // The first one was lost, or the server has forgotten it by now.
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
        match events.create(&PostParams::default(), event).await {
            // Only our own earlier attempt, whose answer was lost, has this name.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }
}

/// Whether the same request may do better later: the server was not reached, or says that it is busy. What our own client
/// did not send, it will not send later.
fn is_of_an_ending_namespace(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        error => client::refusal(error).is_none(),
    }
}
