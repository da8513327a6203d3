//! CronJobs: a job whenever it is time.

mod missed;

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use windlass::events::{Event, reference};
use windlass_core::cron::Schedule;
use windlass_core::select::LabelSelector;
use windlass_core::{Kind, ObjectKey, owner};

use self::missed::{Due, due, next_look};
use super::job;
use crate::engine::{Controller, Delete, LookUp, Looked, Propagation, Turn, View, Wiring, Write};

/// Makes jobs by the clock.
pub(super) struct CronJobs;

const SCHEDULED_AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

impl Controller for CronJobs {
    fn name(&self) -> &'static str {
        "cronjob-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<CronJob>();
        wiring.children::<Job, CronJob>(|_| LabelSelector::nothing());
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let Some(cron) = view.get::<CronJob>(key) else { return Turn::nothing() };
        let jobs = view.children::<Job>(cron.metadata.uid.as_deref().unwrap_or_default());
        let mut pass = Pass {
            turn: Turn::default(),
            cron: &cron,
            spec: &cron.spec,
            status: cron.status.clone().unwrap_or_default(),
        };
        pass.clean_up(&jobs);
        if let Err(look_ups) = pass.take_stock(&jobs, view) {
            return Turn { look_ups, ..Turn::default() };
        }
        if cron.metadata.deletion_timestamp.is_none() {
            match view.refused().first() {
                Some(refusal) if refusal.verb == "create" => {
                    let note = format!("Error creating job: {}", refusal.message);
                    pass.tell(Event::warning("FailedCreate", "FailedCreate", note));
                }
                _ => pass.schedule(&jobs, view, now),
            }
        }
        pass.end()
    }
}

/// One look at a CronJob.
struct Pass<'a> {
    turn: Turn,
    cron: &'a CronJob,
    spec: &'a CronJobSpec,
    status: CronJobStatus,
}

impl Pass<'_> {
    fn tell(&mut self, event: Event) {
        self.turn.event(self.cron, event);
    }

    fn is_listed(&self, uid: &str) -> bool {
        self.status.active.iter().flatten().any(|one| one.uid.as_deref() == Some(uid))
    }

    fn unlist(&mut self, uid: &str) {
        if let Some(active) = &mut self.status.active {
            active.retain(|one| one.uid.as_deref() != Some(uid));
        }
    }

    /// What has become of the jobs that were running.
    fn take_stock(&mut self, jobs: &[Arc<Job>], view: &View<'_>) -> Result<(), Vec<LookUp>> {
        for job in jobs {
            let (uid, name) = (text(&job.metadata.uid), text(&job.metadata.name));
            // One that was made in the last look is listed in this one: now it has a uid.
            if let Some(time) = self.just_made(job) {
                self.list(job, time);
            }
            let listed = self.is_listed(uid);
            let Some(finished) = job::finished(job) else {
                if !listed {
                    let note = format!("Saw a job that the controller did not create or forgot: {name}");
                    self.tell(Event::warning("UnexpectedJob", "UnexpectedJob", note));
                }
                continue;
            };
            if listed {
                self.unlist(uid);
                let note = format!("Saw completed job: {name}, condition: {}", finished.type_);
                self.tell(Event::normal("SawCompletedJob", "SawCompletedJob", note));
            }
            let completed = job.status.as_ref().and_then(|status| status.completion_time.clone());
            if finished.type_ == "Complete" && completed > self.status.last_successful_time {
                self.status.last_successful_time = completed;
            }
        }
        let known = |uid: &str| jobs.iter().any(|job| text(&job.metadata.uid) == uid);
        let mut questions = Vec::new();
        for active in self.status.active.clone().into_iter().flatten() {
            let uid = text(&active.uid);
            if known(uid) {
                continue;
            }
            let key = ObjectKey::new(active.namespace.as_deref(), text(&active.name));
            match view.looked(&Kind::of::<Job>(), &key) {
                Looked::NotYet => questions.push(LookUp::Object { kind: Kind::of::<Job>(), key }),
                Looked::There(_) => {}
                Looked::Missing => {
                    let note = format!("Active job went missing: {}", text(&active.name));
                    self.tell(Event::normal("MissingJob", "MissingJob", note));
                    self.unlist(uid);
                }
            }
        }
        if questions.is_empty() { Ok(()) } else { Err(questions) }
    }

    /// Only so many of those that have ended are kept.
    fn clean_up(&mut self, jobs: &[Arc<Job>]) {
        let limits = [
            ("Complete", self.spec.successful_jobs_history_limit),
            ("Failed", self.spec.failed_jobs_history_limit),
        ];
        for (kind, limit) in limits {
            let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
            let ended = |job: &&Arc<Job>| job::finished(job).is_some_and(|finished| finished.type_ == kind);
            let mut ended: Vec<&Arc<Job>> = jobs.iter().filter(ended).collect();
            ended.sort_by_key(|job| {
                let start = job.status.as_ref().and_then(|status| status.start_time.clone());
                (start.is_none(), start, job.metadata.name.clone())
            });
            let surplus = ended.len().saturating_sub(limit);
            for job in ended.into_iter().take(surplus) {
                self.delete(job);
            }
        }
    }

    fn delete(&mut self, job: &Job) {
        if job.metadata.deletion_timestamp.is_some() {
            return;
        }
        self.turn.writes.push(Write::Delete(Delete {
            kind: Kind::of::<Job>(),
            key: ObjectKey::of(&job.metadata),
            uid: job.metadata.uid.clone(),
            version: None,
            propagation: Some(Propagation::Background),
            grace: None,
        }));
        self.unlist(text(&job.metadata.uid));
        let note = format!("Deleted job {}", text(&job.metadata.name));
        self.tell(Event::normal("SuccessfulDelete", "SuccessfulDelete", note));
    }

    /// Makes the job whose time has come.
    fn schedule(&mut self, jobs: &[Arc<Job>], view: &View<'_>, now: Timestamp) {
        let zone = match self.spec.time_zone.as_deref().map(|name| (name, TimeZone::get(name))) {
            None => TimeZone::UTC,
            Some((_, Ok(zone))) => zone,
            Some((name, Err(_))) => {
                let note = format!("invalid timeZone: {name:?}: unknown time zone {name}");
                return self.tell(Event::warning("UnknownTimeZone", "UnknownTimeZone", note));
            }
        };
        if self.spec.suspend == Some(true) {
            return;
        }
        let text = &self.spec.schedule;
        if text.contains("TZ") {
            let note = format!(
                "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            );
            self.tell(Event::warning("UnsupportedSchedule", "UnsupportedSchedule", note));
        }
        let named = |name: Option<&str>| match name {
            Some(name) => TimeZone::get(name).map_err(|_| format!("unknown time zone {name}")),
            None => Ok(zone.clone()),
        };
        let schedule = match Schedule::parse(text, named) {
            Ok(schedule) => schedule,
            Err(error) => {
                let note = format!("unparseable schedule: {text:?} : {error}");
                return self.tell(Event::warning("UnparseableSchedule", "UnparseableSchedule", note));
            }
        };
        self.start(&schedule, &zone, jobs, view, now);
        if let Some(time) = next_look(self.cron, &self.status, &schedule, now) {
            self.turn.wake_at(time);
        }
    }

    fn start(
        &mut self,
        schedule: &Schedule,
        zone: &TimeZone,
        jobs: &[Arc<Job>],
        view: &View<'_>,
        now: Timestamp,
    ) {
        let Some(Due { time, many }) = due(self.cron, &self.status, schedule, now) else { return };
        if many {
            let note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.tell(Event::warning("TooManyMissedTimes", "TooManyMissedTimes", note));
        }
        if missed::is_too_late(self.spec, time, now) {
            let when = time.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000");
            let note = format!("Missed scheduled time to start a job: {when}");
            return self.tell(Event::warning("MissSchedule", "MissSchedule", note));
        }
        let name = self.name_at(time);
        let active = self.status.active.clone().unwrap_or_default();
        let is_done = self.status.last_schedule_time.as_ref().is_some_and(|last| last.0 == time);
        if is_done || active.iter().any(|one| text(&one.name) == name) {
            return;
        }
        let policy = self.spec.concurrency_policy.as_deref();
        if policy == Some("Forbid") && !active.is_empty() {
            let note = "Not starting job because prior execution is running and concurrency policy is Forbid";
            return self.tell(Event::normal("JobAlreadyActive", "JobAlreadyActive", note));
        }
        if policy == Some("Replace") {
            for job in
                jobs.iter().filter(|job| self.is_listed(text(&job.metadata.uid))).cloned().collect::<Vec<_>>()
            {
                self.delete(&job);
            }
        }
        let key = ObjectKey::new(self.cron.metadata.namespace.as_deref(), &name);
        // Where there is one, it is somebody else's: whoever made it keeps its own books.
        if view.get::<Job>(&key).is_none() {
            let event = Event::normal("SuccessfulCreate", "SuccessfulCreate", format!("Created job {name}"));
            self.turn.create_and_tell(&self.make(&name, time, zone), self.cron, event);
            self.turn.wake.push(ObjectKey::of(&self.cron.metadata));
        }
    }

    /// The time for which a job was made that the status does not know yet.
    fn just_made(&self, job: &Job) -> Option<Timestamp> {
        let time: Timestamp = job.metadata.annotations.as_ref()?.get(SCHEDULED_AT)?.parse().ok()?;
        let is_new = self.status.last_schedule_time.as_ref().is_none_or(|last| last.0 < time);
        (is_new && text(&job.metadata.name) == self.name_at(time)).then_some(time)
    }

    /// The name says the time: nobody makes the job of one time twice.
    fn name_at(&self, time: Timestamp) -> String {
        format!("{}-{}", text(&self.cron.metadata.name), time.as_second() / 60)
    }

    fn list(&mut self, job: &Job, time: Timestamp) {
        self.status.last_schedule_time = Some(Time(time));
        let of = reference(&Kind::of::<Job>(), &job.metadata);
        self.status.active.get_or_insert_default().push(ObjectReference { field_path: None, ..of });
    }

    fn make(&self, name: &str, time: Timestamp, zone: &TimeZone) -> Job {
        let template = &self.spec.job_template;
        let given = template.metadata.clone().unwrap_or_default();
        let mut annotations = given.annotations.unwrap_or_default();
        let at = time.to_zoned(zone.clone());
        let at = match at.offset().is_zero() {
            true => at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            false => at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        };
        annotations.insert(SCHEDULED_AT.into(), at);
        Job {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: self.cron.metadata.namespace.clone(),
                labels: given.labels,
                annotations: Some(annotations),
                owner_references: owner::reference_to(self.cron).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: template.spec.clone(),
            status: None,
        }
    }

    fn end(mut self) -> Turn {
        self.status.active = self.status.active.filter(|active| !active.is_empty());
        if self.cron.status.clone().unwrap_or_default() != self.status {
            let cron = CronJob { status: Some(self.status), ..self.cron.clone() };
            self.turn.status(&cron);
        }
        self.turn
    }
}

fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}
