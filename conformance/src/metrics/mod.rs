//! What both servers say of themselves after the same requests.
//!
//! ```text
//! /metrics ─► the requests of metrics.yaml, and a watch that is held ─► /metrics
//!     └──────────────────── what has grown, by labels ──────────────────┘
//! ```
//!
//! kube-apiserver asks itself for much, and counts that, too. What it asked itself for meanwhile, and the events of what it
//! watches itself, are left out.

mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use tokio::time::{Instant, sleep};

use crate::client::{Connection, Endpoint as _};
use crate::hook::Hook;
use crate::sequence::{self, Sequence};
use crate::servers::Server;
use crate::suite;
use text::{Families, Family, Labels};

/// A watch that goes on while the metrics are read.
const HELD: &str = "/api/v1/podtemplates?watch=1";
/// How long both have until all is counted: a watch is when it has ended.
const PATIENCE: Duration = Duration::from_secs(15);
/// What is asked until a webhook is known, which takes the one longer than the other.
const PREPARING: [(&str, &str); 2] = [("resource", "limitranges"), ("name", "ready.example.com")];

/// What kube-apiserver begins to count before its etcd is there: it looks again after more than a minute.
const LATE: &str = "serviceaccounts";

/// How much of a name is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// Type, help, labels, bounds, and by how much each has grown.
    Grown,
    /// Type, help, and what there are labels for.
    Labelled,
    /// Type, help, and the names of labels.
    There,
}

/// What is promised, as in docs/apiserver.md.
const PROMISED: [(&str, How); 24] = [
    ("apiserver_request_total", How::Grown),
    ("apiserver_request_duration_seconds", How::Grown),
    ("apiserver_request_sli_duration_seconds", How::Grown),
    ("apiserver_response_sizes", How::Grown),
    ("apiserver_longrunning_requests", How::Grown),
    ("apiserver_watch_events_total", How::Grown),
    ("apiserver_watch_events_sizes", How::Grown),
    ("apiserver_admission_webhook_admission_duration_seconds", How::Grown),
    ("apiserver_admission_webhook_rejection_count", How::Grown),
    ("apiserver_admission_webhook_request_total", How::Grown),
    ("apiserver_admission_webhook_fail_open_count", How::Grown),
    ("apiserver_current_inflight_requests", How::Labelled),
    ("apiserver_resource_objects", How::Labelled),
    ("apiserver_storage_objects", How::Labelled),
    ("kubernetes_build_info", How::There),
    ("process_cpu_seconds_total", How::There),
    ("process_max_fds", How::There),
    ("process_network_receive_bytes_total", How::There),
    ("process_network_transmit_bytes_total", How::There),
    ("process_open_fds", How::There),
    ("process_resident_memory_bytes", How::There),
    ("process_start_time_seconds", How::There),
    ("process_virtual_memory_bytes", How::There),
    ("process_virtual_memory_max_bytes", How::There),
];

/// What a server said before and after.
struct Told {
    before: Families,
    after: Families,
}

/// Asks both the same, and compares what they have counted.
///
/// # Errors
/// A server cannot be asked.
pub async fn run(reference: &Server, ours: &Server, hook: &Hook) -> Result<bool> {
    let mut sequences = requests()?;
    hook.fill(&mut sequences)?;
    let requests: usize = sequences.iter().map(|sequence| sequence.steps.len()).sum();
    let before = (settled(reference).await?, settled(ours).await?);
    let (a, b) = (Arc::new(reference.https.clone()), Arc::new(ours.https.clone()));
    suite::run_all(a, b, sequences, "m").await?;
    let _held = (hold(reference).await?, hold(ours).await?);
    let deadline = Instant::now() + PATIENCE;
    let (compared, differences) = loop {
        let after = (read(reference).await?, read(ours).await?);
        let reference = Told { before: before.0.clone(), after: after.0 };
        let ours = Told { before: before.1.clone(), after: after.1 };
        let (compared, differences) = compare(&reference, &ours);
        if differences.is_empty() || Instant::now() > deadline {
            break (compared, differences);
        }
        sleep(Duration::from_millis(250)).await;
    };
    for difference in &differences {
        println!("different: {difference}");
    }
    println!(
        "{requests} requests, {compared} of their metrics compared, {} differences in {} names",
        differences.len(),
        PROMISED.len()
    );
    Ok(differences.is_empty())
}

/// What is asked.
fn requests() -> Result<Vec<Sequence>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("metrics.yaml");
    sequence::read(&fs::read_to_string(&file).with_context(|| file.display().to_string())?)
}

async fn read(server: &Server) -> Result<Families> {
    let (_, body) = open(server, "/metrics").await?;
    Ok(text::read(&String::from_utf8(body.collect().await?.to_bytes().to_vec())?))
}

/// The same when nothing is counted any more of what was asked before: durations come a moment after the rest.
async fn settled(server: &Server) -> Result<Families> {
    let probes = |families: &Families| -> Vec<f64> {
        let of = |name: &str| families.get(name).map(Family::values).unwrap_or_default();
        let all = [
            "apiserver_request_total",
            "apiserver_request_duration_seconds",
            "apiserver_request_sli_duration_seconds",
        ]
        .map(of);
        let probed = |(labels, count): (Labels, f64)| (labels["subresource"] == "/readyz").then_some(count);
        all.into_iter().flatten().filter_map(probed).collect()
    };
    let mut last = read(server).await?;
    loop {
        sleep(Duration::from_millis(250)).await;
        let next = read(server).await?;
        if probes(&next) == probes(&last) {
            return Ok(next);
        }
        last = next;
    }
}

async fn hold(server: &Server) -> Result<(Box<dyn Connection>, crate::client::Body)> {
    open(server, HELD).await
}

async fn open(server: &Server, path: &str) -> Result<(Box<dyn Connection>, crate::client::Body)> {
    let mut connection = server.https.open().await?;
    let answer =
        connection.send(Request::get(path).body(Full::new(Bytes::new()))?).await.context("no answer")?;
    ensure!(answer.status() == 200, "{path}: {}", answer.status());
    Ok((connection, answer.into_body()))
}

/// How many values were compared, and what differs.
fn compare(reference: &Told, ours: &Told) -> (usize, Vec<String>) {
    let own = Own::of(reference);
    let (mut compared, mut out) = (0, Vec::new());
    for (name, how) in PROMISED {
        let (Some(a), Some(b)) = (reference.after.get(name), ours.after.get(name)) else {
            let there = |told: &Told| if told.after.contains_key(name) { "there" } else { "missing" };
            out.push(format!("{name}: reference {}, ours {}", there(reference), there(ours)));
            continue;
        };
        for (what, a, b) in [
            ("type", &a.kind, &b.kind),
            ("help", &a.help, &b.help),
            ("labels", &a.label_names(), &b.label_names()),
            ("bounds", &a.bounds(), &b.bounds()),
        ] {
            if a != b {
                out.push(format!("{name}: {what}: reference {a}, ours {b}"));
            }
        }
        // kube-apiserver looks only now and then how many objects there are: of a new kind, later than we.
        let is_custom = |value: &String| value.ends_with("metrics.example.com");
        let grown = |told: &Told, family: &Family| match how {
            How::Grown => family.grown(told.before.get(name)),
            How::Labelled => {
                let known = family.values().into_keys().filter(|labels| !labels.values().any(is_custom));
                known.map(|labels| (labels, 1.0)).collect()
            }
            How::There => BTreeMap::new(),
        };
        let (a, b) = (grown(reference, a), grown(ours, b));
        let is_late = |labels: &Labels| {
            how == How::Labelled
                && !a.contains_key(labels)
                && labels.get("resource").is_some_and(|one| one == LATE)
        };
        let keys: BTreeSet<&Labels> = a.keys().chain(b.keys()).filter(|labels| !is_late(labels)).collect();
        for labels in keys.into_iter().filter(|labels| how != How::Grown || !own.concerns(name, labels)) {
            compared += 1;
            let (a, b) = (a.get(labels).unwrap_or(&0.0), b.get(labels).unwrap_or(&0.0));
            if (a - b).abs() > f64::EPSILON {
                out.push(format!("{name}{{{}}}: reference +{a}, ours +{b}", text::joined(labels)));
            }
        }
    }
    (compared, out)
}

/// What the reference asks itself for.
struct Own {
    requests: BTreeSet<[String; 4]>,
    watched: BTreeSet<[String; 2]>,
}

impl Own {
    fn of(reference: &Told) -> Own {
        let of = |families: &Families, name: &str, before: Option<&Families>| {
            let before = before.and_then(|before| before.get(name));
            families.get(name).map(|family| family.grown(before)).unwrap_or_default()
        };
        let requests = of(&reference.after, "apiserver_selfrequest_total", Some(&reference.before));
        let watched = of(&reference.before, "apiserver_longrunning_requests", None);
        Own {
            requests: requests.into_keys().map(|labels| request(&labels)).collect(),
            watched: watched.into_keys().map(|labels| kind(&labels)).collect(),
        }
    }

    fn concerns(&self, name: &str, labels: &Labels) -> bool {
        if PREPARING.iter().any(|(key, value)| labels.get(*key).is_some_and(|have| have == value)) {
            return true;
        }
        match name {
            "apiserver_longrunning_requests"
            | "apiserver_watch_events_total"
            | "apiserver_watch_events_sizes" => self.watched.contains(&kind(labels)),
            _ => labels.contains_key("verb") && self.requests.contains(&request(labels)),
        }
    }
}

fn request(labels: &Labels) -> [String; 4] {
    ["verb", "group", "resource", "subresource"].map(|key| labels.get(key).cloned().unwrap_or_default())
}

fn kind(labels: &Labels) -> [String; 2] {
    ["group", "resource"].map(|key| labels.get(key).cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &str, after: &str) -> Told {
        Told { before: text::read(before), after: text::read(after) }
    }

    const HEAD: &str = "# HELP apiserver_request_total h\n# TYPE apiserver_request_total counter\n";

    fn of(differences: &[String], name: &str) -> Vec<String> {
        let of_name = differences.iter().filter(|line| line.starts_with(&format!("{name}{{")));
        of_name.cloned().collect()
    }

    #[test]
    fn the_requests_can_be_read() {
        assert!(requests().unwrap().len() > 50);
    }

    #[test]
    fn what_has_grown_is_compared_but_not_what_it_asked_itself() {
        let line = |verb: &str, count: u32| {
            format!(
                "apiserver_request_total{{verb=\"{verb}\",group=\"\",resource=\"pods\",subresource=\"\"}} {count}\n"
            )
        };
        let own =
            "apiserver_selfrequest_total{verb=\"PUT\",group=\"\",resource=\"pods\",subresource=\"\"} 1\n";
        let a = told(&line("GET", 5), &format!("{HEAD}{}{}{own}", line("GET", 7), line("PUT", 1)));
        let b = told("", &format!("{HEAD}{}", line("GET", 2)));
        assert!(of(&compare(&a, &b).1, "apiserver_request_total").is_empty());
        let c = told("", &format!("{HEAD}{}", line("GET", 3)));
        let found = of(&compare(&a, &c).1, "apiserver_request_total");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("reference +2, ours +3"), "{found:?}");
    }
}
