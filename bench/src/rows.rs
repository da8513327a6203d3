//! What the numbers are called, and what is asked of them.

use crate::Numbers;
use crate::report::{Figure, Goal, Unit};

/// A row of the table: its key, its name, its unit, its goal.
type Row = (&'static str, &'static str, Unit, Goal);

/// Numbers that both servers have.
const BOTH: &[Row] = &[
    ("ready", "ready as a process, median", Unit::Seconds, Goal::AtMost(0.030)),
    ("ready best", "ready as a process, best", Unit::Seconds, Goal::None),
    ("idle", "idle memory (RSS)", Unit::Bytes, Goal::AtMost(20e6)),
    ("create rate", "ConfigMap creates", Unit::PerSecond, Goal::Times(10.0)),
    ("create cpu", "ConfigMap creates: server's processor time each", Unit::Seconds, Goal::Times(10.0)),
    ("create p99", "ConfigMap creates: 99 of 100 within", Unit::Seconds, Goal::None),
    ("get rate", "ConfigMap GETs", Unit::PerSecond, Goal::Times(10.0)),
    ("get cpu", "ConfigMap GETs: server's processor time each", Unit::Seconds, Goal::Times(10.0)),
    ("get p99", "ConfigMap GETs: 99 of 100 within", Unit::Seconds, Goal::None),
    ("hooked rate", "ConfigMap creates that a webhook allows", Unit::PerSecond, Goal::None),
    ("hooked cpu", "the same: server's processor time each", Unit::Seconds, Goal::None),
    ("hooked p99", "the same: 99 of 100 within", Unit::Seconds, Goal::None),
    ("hooked alone", "the same, one at a time: time each", Unit::Seconds, Goal::None),
    ("hooked connections", "the same: connections to the webhook", Unit::Count, Goal::None),
    ("calm get p99", "GETs of 1,000 ConfigMaps: 99 of 100 within", Unit::Seconds, Goal::None),
    ("hung get p99", "the same, while 100 writes wait for a webhook", Unit::Seconds, Goal::None),
    ("hung get rate", "GETs meanwhile", Unit::PerSecond, Goal::None),
    ("delivery rate", "deliveries to all watchers, ConfigMaps", Unit::PerSecond, Goal::Times(10.0)),
    ("delivery cpu", "deliveries, ConfigMaps: server's processor time each", Unit::Seconds, Goal::None),
    ("watched create rate", "ConfigMap creates meanwhile", Unit::PerSecond, Goal::None),
    ("restarts", "watches that the server ended meanwhile", Unit::Count, Goal::None),
    ("pod delivery rate", "deliveries to all watchers, pods", Unit::PerSecond, Goal::Times(10.0)),
    ("pod delivery cpu", "deliveries, pods: server's processor time each", Unit::Seconds, Goal::None),
    ("watched pod create rate", "pod creates meanwhile", Unit::PerSecond, Goal::None),
    ("pod restarts", "watches that the server ended meanwhile", Unit::Count, Goal::None),
    ("pod create rate", "pod creates while loading", Unit::PerSecond, Goal::None),
    ("pod memory", "memory per stored pod", Unit::Bytes, Goal::AtMost(3000.0)),
    ("pod size", "size of a pod in a list", Unit::Bytes, Goal::None),
    ("list", "list of all pods", Unit::Seconds, Goal::Times(20.0)),
    ("list metadata", "list of all pods, metadata only", Unit::Seconds, Goal::None),
    ("list nothing", "list of all pods, selector that matches none", Unit::Seconds, Goal::None),
    ("watch list", "WatchList of all pods", Unit::Seconds, Goal::None),
];

/// Numbers that only we have.
const OURS: &[Row] = &[
    ("in-process first", "ready in-process, first in a process, median", Unit::Seconds, Goal::AtMost(0.005)),
    ("in-process first best", "ready in-process, first in a process, best", Unit::Seconds, Goal::None),
    ("in-process following", "ready in-process, following, median", Unit::Seconds, Goal::AtMost(0.005)),
    ("in-process following best", "ready in-process, following, best", Unit::Seconds, Goal::None),
    ("fork", "fork", Unit::Seconds, Goal::AtMost(100e-6)),
];

/// Numbers of an operator with many objects.
const OPERATOR: &[Row] = &[
    ("operator create", "operator: from all FooBars created to all ready", Unit::Seconds, Goal::None),
    ("operator create cpu", "operator: processor time for each of these", Unit::Seconds, Goal::None),
    ("operator create passes", "operator: passes for each of these", Unit::Count, Goal::None),
    ("operator create writes", "operator: writes for each of these", Unit::Count, Goal::None),
    (
        "operator start",
        "operator: from the start of the process until all are looked at",
        Unit::Seconds,
        Goal::None,
    ),
    ("operator start cpu", "operator: processor time for each of these", Unit::Seconds, Goal::None),
    ("operator start requests", "operator: requests for all of these", Unit::Count, Goal::None),
    ("operator start writes", "operator: writes among them", Unit::Count, Goal::AtMost(0.0)),
    ("operator passes most", "operator: passes of the one that had most", Unit::Count, Goal::AtMost(1.0)),
    ("operator unseen", "operator: objects that had none", Unit::Count, Goal::AtMost(0.0)),
    ("operator list", "operator: the first list, while others come", Unit::Seconds, Goal::None),
    (
        "operator newcomers",
        "operator: FooBars that came meanwhile, one after the other",
        Unit::Count,
        Goal::None,
    ),
    ("operator newcomer", "operator: until such a one is ready, median", Unit::Seconds, Goal::None),
    ("operator newcomer worst", "operator: until such a one is ready, worst", Unit::Seconds, Goal::None),
    ("operator idle", "operator: memory (RSS) without objects", Unit::Bytes, Goal::None),
    ("operator memory", "operator: memory with all", Unit::Bytes, Goal::None),
    ("operator memory each", "operator: memory for each FooBar and its ConfigMap", Unit::Bytes, Goal::None),
];

/// Numbers of three etcd members; the reference is a hand-written script with the same binaries.
const ETCD: &[Row] = &[
    // At most one and a half times the script's.
    (
        "etcd ready",
        "etcd: from nothing to three members that answer, median",
        Unit::Seconds,
        Goal::Times(0.667),
    ),
    ("etcd ready best", "etcd: from nothing to three members that answer, best", Unit::Seconds, Goal::None),
];

/// Costs at the large size, with the key of the same cost at the small one.
const FLAT: &[(&str, &str, &str, Goal)] = &[
    (
        "hung get p99",
        "calm get p99",
        "GETs while 100 writes wait for a webhook, against before",
        Goal::Flat(2.0),
    ),
    ("many create", "few create", "create in-process, many objects against 1,000", FLAT_GOAL),
    ("many get", "few get", "GET in-process of the same 1,000, many objects against 1,000", FLAT_GOAL),
    // Objects that the processor's cache does not hold cost more to read, whoever reads them.
    ("many get any", "few get any", "GET in-process of any, many objects against 1,000", Goal::FlatUnjudged),
    (
        "many tls create",
        "few tls create",
        "create over TLS, processor time, many objects against 1,000",
        FLAT_GOAL,
    ),
    (
        "many tls get",
        "few tls get",
        "GET of any over TLS, processor time, many objects against 1,000",
        FLAT_GOAL,
    ),
];

/// What "flat" allows for the depth of a tree and the size of caches, from a thousand to a hundred thousand objects.
const FLAT_GOAL: Goal = Goal::Flat(1.5);

/// The table's lines, for the numbers that were taken.
pub fn figures(ours: &Numbers, reference: &Numbers) -> Vec<Figure> {
    // Lists are of as many pods as there were; those of the reference are scaled to ours.
    let scale = match (ours.get("pods"), reference.get("pods")) {
        (Some(ours), Some(reference)) => ours / reference,
        _ => 1.0,
    };
    let mut figures = Vec::new();
    for (key, name, unit, goal) in BOTH.iter().chain(OURS).chain(OPERATOR).chain(ETCD) {
        let (ours, mut reference) = (ours.get(key).copied(), reference.get(key).copied());
        if key.contains("list") {
            reference = reference.map(|time| time * scale);
        }
        if ours.is_some() || reference.is_some() {
            figures.push(Figure { name: (*name).to_owned(), unit: *unit, ours, reference, goal: *goal });
        }
    }
    for (many, few, name, goal) in FLAT {
        if let (Some(many), Some(few)) = (ours.get(many), ours.get(few)) {
            figures.push(Figure {
                name: (*name).to_owned(),
                unit: Unit::Seconds,
                ours: Some(*many),
                reference: Some(*few),
                goal: *goal,
            });
        }
    }
    figures
}
