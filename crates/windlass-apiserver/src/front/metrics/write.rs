//! All that is counted, as Prometheus reads it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::text::{Histogram, Text, quoted};
use super::{Hook, Labels, Metrics, Questions, lock, process};
use crate::api::Server;
use crate::api::registry::Resource;

impl Metrics {
    /// All of it. What is counted meanwhile waits for no more than copies.
    pub fn render(&self, server: &Server, now: Timestamp) -> String {
        let mut text = Text::new();
        self.write_requests(&mut text);
        self.write_going(&mut text);
        self.write_hooks(&mut text);
        text.begin(
            "apiserver_current_inflight_requests",
            "gauge",
            "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
        );
        let mut inflight = *lock(&self.inflight);
        for (kind, inflight) in ["mutating", "readOnly"].into_iter().zip(&mut inflight) {
            text.value(&format!("request_kind=\"{kind}\""), inflight.at(now).before);
        }
        write_objects(&mut text, server);
        write_build(&mut text, server);
        process::write(&mut text);
        text.out
    }

    fn write_requests(&self, text: &mut Text) {
        let requests = lock(&self.requests).clone();
        text.begin(
            "apiserver_request_total",
            "counter",
            "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
        );
        for (labels, requests) in &requests {
            for ((dry_run, code), count) in &requests.codes {
                text.value(&format!("code=\"{code}\",{}", with_dry_run(labels, dry_run)), count);
            }
        }
        text.begin(
            "apiserver_request_duration_seconds",
            "histogram",
            "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.",
        );
        for (labels, requests) in &requests {
            for (dry_run, seconds) in &requests.seconds {
                text.histogram(&with_dry_run(labels, dry_run), seconds);
            }
        }
        text.begin(
            "apiserver_request_sli_duration_seconds",
            "histogram",
            "[ALPHA] Response latency distribution (not counting webhook duration and priority & fairness queue wait times) in seconds for each verb, group, version, resource, subresource, scope and component.",
        );
        for (labels, requests) in &requests {
            text.histogram(&whole(labels), &requests.sli_seconds);
        }
        text.begin(
            "apiserver_response_sizes",
            "histogram",
            "[STABLE] Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.",
        );
        for (labels, requests) in &requests {
            text.histogram(&whole(labels), &requests.bytes);
        }
        text.begin(
            "apiserver_request_aborts_total",
            "counter",
            "[ALPHA] Number of requests which apiserver aborted possibly due to a timeout, for each group, version, verb, resource, subresource and scope",
        );
        for (labels, requests) in requests.iter().filter(|(_, requests)| requests.aborts > 0) {
            text.value(&without_component(labels), requests.aborts);
        }
    }

    fn write_going(&self, text: &mut Text) {
        text.begin(
            "apiserver_longrunning_requests",
            "gauge",
            "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.",
        );
        for (labels, count) in &*lock(&self.going) {
            text.value(&whole(labels), count);
        }
        let events: Vec<(String, Histogram)> = lock(&self.events)
            .iter()
            .map(|([group, version, resource], events)| {
                let labels = format!("group=\"{group}\",resource=\"{resource}\",version=\"{version}\"");
                (labels, lock(events).clone())
            })
            .collect();
        text.begin(
            "apiserver_watch_events_total",
            "counter",
            "[ALPHA] Number of events sent in watch clients",
        );
        for (labels, events) in &events {
            text.value(labels, events.count);
        }
        text.begin(
            "apiserver_watch_events_sizes",
            "histogram",
            "[ALPHA] Watch event size distribution in bytes",
        );
        for (labels, events) in &events {
            text.histogram(labels, events);
        }
    }

    fn write_hooks(&self, text: &mut Text) {
        let hooks: BTreeMap<Hook, Questions> = lock(&self.hooks).clone();
        let of = |(name, step, operation): &Hook| {
            (
                format!("name={}", quoted(name)),
                format!("operation=\"{operation}\""),
                format!("type=\"{step}\""),
            )
        };
        text.begin(
            "apiserver_admission_webhook_admission_duration_seconds",
            "histogram",
            "[STABLE] Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
        );
        for (hook, questions) in &hooks {
            let (name, operation, step) = of(hook);
            for (rejected, seconds) in [false, true].into_iter().zip(&questions.seconds) {
                text.histogram(&format!("{name},{operation},rejected=\"{rejected}\",{step}"), seconds);
            }
        }
        text.begin(
            "apiserver_admission_webhook_fail_open_count",
            "counter",
            "[ALPHA] Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).",
        );
        let mut failed_open: BTreeMap<String, u64> = BTreeMap::new();
        for (hook, questions) in hooks.iter().filter(|(_, questions)| questions.failed_open > 0) {
            let (name, _, step) = of(hook);
            *failed_open.entry(format!("{name},{step}")).or_default() += questions.failed_open;
        }
        for (labels, count) in &failed_open {
            text.value(labels, count);
        }
        text.begin(
            "apiserver_admission_webhook_rejection_count",
            "counter",
            "[ALPHA] Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
        );
        for (hook, questions) in &hooks {
            let (name, operation, step) = of(hook);
            for ((why, code), count) in &questions.rejections {
                let labels =
                    format!("error_type=\"{why}\",{name},{operation},rejection_code=\"{code}\",{step}");
                text.value(&labels, count);
            }
        }
        text.begin(
            "apiserver_admission_webhook_request_total",
            "counter",
            "[ALPHA] Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
        );
        for (hook, questions) in &hooks {
            let (name, operation, step) = of(hook);
            for ((code, rejected), count) in &questions.answers {
                text.value(
                    &format!("code=\"{code}\",{name},{operation},rejected=\"{rejected}\",{step}"),
                    count,
                );
            }
        }
    }
}

/// The labels of a request, in the order of their names.
fn whole(labels: &Labels) -> String {
    format!("component=\"{}\",{}", labels.component, without_component(labels))
}

fn with_dry_run(labels: &Labels, dry_run: &str) -> String {
    let component = labels.component;
    format!("component=\"{component}\",dry_run=\"{dry_run}\",{}", without_component(labels))
}

fn without_component(labels: &Labels) -> String {
    let Labels { verb, group, version, resource, subresource, scope, .. } = labels;
    format!(
        "group=\"{group}\",resource=\"{resource}\",scope=\"{scope}\",subresource=\"{subresource}\",verb=\"{verb}\",version=\"{version}\""
    )
}

/// How many objects there are.
fn write_objects(text: &mut Text, server: &Server) {
    let mut counts = BTreeMap::new();
    // What can be listed but not made is not stored.
    let is_stored =
        |resource: &&std::sync::Arc<Resource>| resource.has_verb("list") && resource.has_verb("create");
    for resource in server.registry().all().filter(is_stored) {
        let (group, plural) = (resource.storage.group(), resource.storage.resource());
        counts.insert((group.to_owned(), plural.to_owned()), server.store().list(&resource.storage).len());
    }
    text.begin(
        "apiserver_resource_objects",
        "gauge",
        "[ALPHA] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.",
    );
    for ((group, plural), count) in &counts {
        text.value(&format!("group=\"{group}\",resource=\"{plural}\""), count);
    }
    text.begin(
        "apiserver_storage_objects",
        "gauge",
        "[STABLE] (Deprecated since 1.34.0) [DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.",
    );
    for ((group, plural), count) in &counts {
        let whole = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
        text.value(&format!("resource=\"{whole}\""), count);
    }
}

/// What `/version` says, as labels.
fn write_build(text: &mut Text, server: &Server) {
    text.begin(
        "kubernetes_build_info",
        "gauge",
        "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
    );
    let version = server.version_info();
    let labels = [
        ("build_date", "buildDate"),
        ("compiler", "compiler"),
        ("git_commit", "gitCommit"),
        ("git_tree_state", "gitTreeState"),
        ("git_version", "gitVersion"),
        ("go_version", "goVersion"),
        ("major", "major"),
        ("minor", "minor"),
        ("platform", "platform"),
    ];
    let label = |(name, key): (&str, &str)| {
        format!("{name}={}", quoted(version.get(key).and_then(Value::as_str).unwrap_or_default()))
    };
    text.value(&labels.map(label).join(","), 1);
}
