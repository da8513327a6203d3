//! The loop that asks for the lease and keeps it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Resource as _};
use tokio_util::sync::CancellationToken;
use windlass_core::Moment;

use super::record::{self, Observed};
use super::{Lost, Settings, State};
use crate::env::Env;
use crate::events::{Event, Recorder};
use crate::metrics::ElectionMetrics;

pub(super) struct Elector {
    leases: Api<Lease>,
    settings: Settings,
    env: Env,
    metrics: ElectionMetrics,
    recorder: Recorder,
    state: Arc<State>,
    /// As it was last read or written: what the next update is based on.
    lease: Option<Lease>,
    observed: Option<Observed>,
    reported: Option<String>,
    /// Whether the last request failed, so that the log tells of it once.
    failing: bool,
}

/// Why a renewal did not work out.
enum Failed {
    Taken(String),
    For(kube::Error),
}

impl Elector {
    pub(super) fn new(
        client: kube::Client,
        settings: Settings,
        env: Env,
        metrics: ElectionMetrics,
        recorder: Recorder,
        state: Arc<State>,
    ) -> Elector {
        let leases = Api::namespaced(client, &settings.namespace);
        Elector {
            leases,
            settings,
            env,
            metrics,
            recorder,
            state,
            lease: None,
            observed: None,
            reported: None,
            failing: false,
        }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) -> Result<(), Lost> {
        let Some(renewed) = self.acquire(&stop).await else { return Ok(()) };
        self.state.lead_until(renewed + self.settings.renew_deadline);
        self.metrics.leading(true);
        self.tell("Acquire", "became leader");
        tracing::info!(lease = self.settings.name, identity = self.settings.identity, "this process leads");
        self.state.led.cancel();
        let kept = self.keep(renewed, &stop).await;
        self.state.given_back.store(kept.is_ok(), Ordering::SeqCst);
        // Whatever comes now, no write does.
        self.state.lead_until(Moment::START);
        self.metrics.leading(false);
        match &kept {
            Ok(()) => {
                self.release().await;
                self.tell("Lose", "stopped leading");
            }
            // The cluster is told by who leads now.
            Err(lost) => tracing::error!(
                lease = self.settings.name,
                identity = self.settings.identity,
                error = %lost,
                "this process no longer leads"
            ),
        }
        kept
    }

    /// Until this process has the lease, or is told to stop. Gives the start of the request that took it.
    async fn acquire(&mut self, stop: &CancellationToken) -> Option<Moment> {
        loop {
            let found = tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                found = self.env.within(self.request_time(), self.leases.get_opt(&self.settings.name)) => found,
            };
            match found {
                Some(Ok(lease)) => {
                    self.observe(lease);
                    // A taking that was sent is waited for: left alone, it might hold the lease for nobody.
                    if self.is_free()
                        && let Some(start) = self.take().await
                    {
                        return Some(start);
                    }
                }
                Some(Err(error)) => self.note("the lease could not be read", &error),
                None => self.note("the lease could not be read", &"no answer"),
            }
            let pause = self.until_next_look();
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                () = self.env.sleep(pause) => {}
            }
        }
    }

    /// Renews the lease until this process is told to stop, or has lost it.
    async fn keep(&mut self, mut renewed: Moment, stop: &CancellationToken) -> Result<(), Lost> {
        let mut last_error = None;
        loop {
            let deadline = renewed + self.settings.renew_deadline;
            // What failed is tried again sooner: the deadline does not wait.
            let pause =
                if self.failing { self.settings.retry_period / 2 } else { self.settings.retry_period };
            let pause = pause.min(deadline - self.env.moment());
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = self.env.sleep(pause) => {}
            }
            // Asked of the clock and not of the timer: the process may have been stopped for long.
            let start = self.env.moment();
            let left = deadline - start;
            if left.is_zero() {
                let within = self.settings.renew_deadline;
                return Err(Lost::Deadline { within, source: last_error });
            }
            let env = self.env.clone();
            match env.within(self.request_time().min(left), self.renew()).await {
                Some(Ok(())) => {
                    renewed = start;
                    last_error = None;
                    self.state.lead_until(renewed + self.settings.renew_deadline);
                }
                Some(Err(Failed::Taken(by))) => return Err(Lost::Taken { by }),
                Some(Err(Failed::For(error))) => {
                    self.note("the lease could not be renewed", &error);
                    last_error = Some(error);
                }
                None => self.note("the lease could not be renewed", &"no answer"),
            }
        }
    }

    async fn renew(&mut self) -> Result<(), Failed> {
        if let Some(lease) = self.lease.clone() {
            match self.update(lease).await {
                Ok(()) => return Ok(()),
                Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {}
                Err(error) => return Err(Failed::For(error)),
            }
        }
        // Somebody wrote to the lease: our own renewal whose answer was lost, a person, or the next holder.
        self.metrics.slow_path();
        let lease = self.leases.get_opt(&self.settings.name).await.map_err(Failed::For)?;
        self.observe(lease);
        match (self.observed.as_ref().and_then(Observed::holder), self.lease.clone()) {
            (Some(holder), _) if holder != self.settings.identity => Err(Failed::Taken(holder.to_owned())),
            (_, Some(lease)) => self.update(lease).await.map_err(Failed::For),
            (_, None) => self.create().await.map_err(Failed::For),
        }
    }

    /// Takes the lease, if nobody is faster. Gives the start of the request.
    async fn take(&mut self) -> Option<Moment> {
        let start = self.env.moment();
        let env = self.env.clone();
        let taken = match self.lease.clone() {
            Some(lease) => env.within(self.request_time(), self.update(lease)).await,
            None => env.within(self.request_time(), self.create()).await,
        };
        match taken {
            Some(Ok(())) => return Some(start),
            // Another one was faster.
            Some(Err(kube::Error::Api(status))) if status.is_conflict() || status.is_already_exists() => {}
            Some(Err(error)) => self.note("the lease could not be taken", &error),
            None => self.note("the lease could not be taken", &"no answer"),
        }
        None
    }

    /// Gives the lease back, so that the next need not wait for it to expire. If it cannot be, it expires.
    async fn release(&mut self) {
        let Some(mut lease) = self.lease.clone() else { return };
        lease.spec = Some(record::released(&lease.spec.unwrap_or_default(), self.env.now()));
        let (name, env) = (self.settings.name.clone(), self.env.clone());
        let (leases, params) = (self.leases.clone(), PostParams::default());
        match env.within(self.request_time(), leases.replace(&name, &params, &lease)).await {
            Some(Ok(_)) => tracing::info!(lease = name, "the lease was given back"),
            Some(Err(error)) => self.note("the lease could not be given back", &error),
            None => self.note("the lease could not be given back", &"no answer"),
        }
    }

    /// Guarded by the resourceVersion that is in the lease.
    async fn update(&mut self, mut lease: Lease) -> Result<(), kube::Error> {
        let Settings { identity, lease_duration, .. } = &self.settings;
        let spec = lease.spec.take().unwrap_or_default();
        lease.spec = Some(record::held(&spec, identity, *lease_duration, self.env.now()));
        let written = self.leases.replace(&self.settings.name, &PostParams::default(), &lease).await?;
        self.observe(Some(written));
        Ok(())
    }

    async fn create(&mut self) -> Result<(), kube::Error> {
        let Settings { name, namespace, identity, lease_duration, .. } = &self.settings;
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(record::first(identity, *lease_duration, self.env.now())),
        };
        let written = self.leases.create(&PostParams::default(), &lease).await?;
        self.observe(Some(written));
        Ok(())
    }

    fn observe(&mut self, lease: Option<Lease>) {
        if std::mem::replace(&mut self.failing, false) {
            tracing::info!(lease = self.settings.name, "leader election works again");
        }
        let spec: Option<LeaseSpec> = lease.as_ref().map(|lease| lease.spec.clone().unwrap_or_default());
        self.lease = lease;
        // A lease that is gone is as good as its last record: its holder may not know yet.
        let Some(spec) = spec else { return };
        let observed = record::observe(self.observed.take(), spec, self.env.moment());
        let holder = observed.holder().map(str::to_owned);
        if holder != self.reported && holder.as_deref() != Some(&self.settings.identity) {
            tracing::info!(
                lease = self.settings.name,
                leader = holder,
                "another process leads, this one stands by"
            );
        }
        self.reported = holder;
        self.observed = Some(observed);
    }

    /// Whether this process may take the lease now.
    fn is_free(&self) -> bool {
        let Some(observed) = &self.observed else { return true };
        match observed.holder() {
            None => true,
            // Our own taking, whose answer was lost.
            Some(holder) if holder == self.settings.identity => true,
            Some(_) => observed.expires() <= self.env.moment(),
        }
    }

    /// A record that is seen late is believed for longer, so standbys look more often than the holder renews: with 15 and
    /// 2 seconds, one of them leads 16.5 seconds after the holder's last renewal, and often sooner.
    fn until_next_look(&self) -> Duration {
        let pause = self.env.jittered(self.settings.retry_period / 2, 0.5);
        match &self.observed {
            Some(observed) if observed.holder().is_some() => {
                let left = observed.expires() - self.env.moment();
                if left.is_zero() { pause } else { pause.min(left) }
            }
            _ => pause,
        }
    }

    /// A request that hangs must leave time for another one before the deadline.
    fn request_time(&self) -> Duration {
        self.settings.renew_deadline / 2
    }

    fn tell(&self, action: &str, what: &str) {
        let mut regarding: ObjectReference =
            self.lease.as_ref().map(|lease| lease.object_ref(&())).unwrap_or_default();
        regarding.name.get_or_insert_with(|| self.settings.name.clone());
        regarding.namespace.get_or_insert_with(|| self.settings.namespace.clone());
        let note = format!("{} {what}", self.settings.identity);
        self.recorder.publish(&regarding, Event::normal("LeaderElection", action, note));
    }

    /// A request failed. The log tells of the first of many.
    fn note(&mut self, what: &'static str, error: &dyn fmt::Display) {
        if std::mem::replace(&mut self.failing, true) {
            tracing::debug!(lease = self.settings.name, what, %error, "leader election still fails");
        } else {
            tracing::warn!(lease = self.settings.name, what, %error, "leader election fails");
        }
    }
}

impl fmt::Debug for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elector").field("settings", &self.settings).finish_non_exhaustive()
    }
}
