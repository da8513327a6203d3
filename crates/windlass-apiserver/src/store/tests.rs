//! The store against a model that keeps every state whole.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A small object in the form of a built-in kind.
pub(crate) fn object(namespace: &str, name: &str, content: u32, labels: &[(&str, &str)]) -> Object {
    let prefix = r#"{"kind":"Thing","apiVersion":"v1","#;
    let uid = format!("uid-{name}");
    let meta =
        format!(r#"{{"name":"{name}","namespace":"{namespace}","resourceVersion":"0","uid":"{uid}"}}"#);
    let body = format!(r#"{prefix}"metadata":{meta},"content":{content}}}"#);
    let start = prefix.len() + r#""metadata":"#.len();
    let digits = body.find(r#""0""#).expect("the digits are written above") + 1;
    Object::new(Parts {
        namespace,
        name,
        uid: &uid,
        labels: labels.to_vec(),
        fields: vec![("metadata.name", name)],
        offsets: Offsets {
            prefix_len: prefix.len(),
            meta: start..start + meta.len(),
            revision: digits..digits + 1,
        },
        body: body.into_bytes(),
        filled: content.is_multiple_of(2),
    })
    .expect("the offsets are right")
}

pub(crate) const KINDS: [&str; 3] = ["pods", "nodes", "things.example.com"];
/// `a-b` sorts before `a/` and `a0` after it: neighbours that a careless range would take in.
const NAMESPACES: [&str; 4] = ["a", "a-b", "a0", "b"];

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Creates, updates or deletes, whatever fits what is there.
    Write { kind: usize, namespace: usize, name: u8, content: u32, delete: bool },
    /// Forgets all but the last so many revisions.
    Compact(u64),
    /// Reads an old revision, as paging does.
    Read { kind: usize, back: u64 },
}

pub(crate) fn steps(max: usize) -> impl Strategy<Value = Vec<Step>> {
    let write =
        (0..KINDS.len(), 0..NAMESPACES.len(), 0u8..40, any::<u32>(), prop::bool::weighted(0.3)).prop_map(
            |(kind, namespace, name, content, delete)| Step::Write { kind, namespace, name, content, delete },
        );
    let compact = (20u64..200).prop_map(Step::Compact);
    let read = (0..KINDS.len(), 0u64..60).prop_map(|(kind, back)| Step::Read { kind, back });
    prop::collection::vec(prop_oneof![40 => write, 1 => compact, 4 => read], 1..max)
}

type State = BTreeMap<String, Arc<Object>>;

/// Every state that a store was in, by revision.
#[derive(Clone)]
struct Model {
    states: Vec<BTreeMap<Kind, State>>,
}

impl Model {
    fn now(&self, kind: &Kind) -> State {
        self.at(kind, self.states.len() as u64)
    }

    /// The first revision is 1.
    fn at(&self, kind: &Kind, revision: u64) -> State {
        self.states[revision as usize - 1].get(kind).cloned().unwrap_or_default()
    }
}

pub(crate) fn kind(at: usize) -> Kind {
    Kind::from_qualified(KINDS[at])
}

/// The change that a write step means for this store.
pub(crate) fn change(store: &Store, step: &Step) -> Option<(Kind, Change)> {
    let Step::Write { kind: at, namespace, name, content, delete } = step else { return None };
    let kind = kind(*at);
    let namespace = if KINDS[*at] == "nodes" { "" } else { NAMESPACES[*namespace] };
    let name = format!("n{name}");
    let current = store.get(&kind, namespace, &name).map(|object| object.revision());
    let label = format!("v{}", content % 7);
    let object = object(namespace, &name, *content, &[("tier", &label), ("app", "x")]);
    let change = match (current, *delete) {
        (None, true) => return None,
        (None, false) => Change::Create(object),
        (Some(expected), false) => Change::Update { object, expected },
        (Some(expected), true) => Change::Delete { key: Store::key(namespace, &name), expected },
    };
    Some((kind, change))
}

fn run(store: &mut Store, model: &mut Model, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Compact(keep) => store.compact(store.revision().saturating_sub(*keep)),
            Step::Read { kind: at, back } => {
                let revision = store.revision().saturating_sub(*back).max(1);
                if let Ok(snapshot) = store.at(&kind(*at), revision) {
                    same(&snapshot, &model.at(&kind(*at), revision));
                }
            }
            Step::Write { .. } => {
                let Some((kind, change)) = change(store, step) else { continue };
                let revision = store.next_revision();
                let event = store.commit(&kind, change).expect("the change fits");
                assert_eq!((event.revision, store.revision()), (revision, revision));
                let mut state = model.states.last().expect("there is a first state").clone();
                let objects = state.entry(kind).or_default();
                if event.kind == EventType::Deleted {
                    objects.remove(event.object.key());
                } else {
                    assert_eq!(event.object.revision(), revision);
                    objects.insert(event.object.key().to_owned(), event.object.clone());
                }
                model.states.push(state);
            }
        }
    }
}

fn same(snapshot: &Snapshot, state: &State) {
    assert_eq!(snapshot.len(), state.len());
    assert!(snapshot.range(None, None).eq(state.values()));
}

/// Everything that a store promises, checked against the model.
fn check(store: &mut Store, model: &Model) {
    assert_eq!(store.revision(), model.states.len() as u64);
    for at in 0..KINDS.len() {
        let kind = kind(at);
        let now = model.now(&kind);
        same(&store.list(&kind), &now);
        for namespace in NAMESPACES {
            let listed = store.list(&kind);
            let of_namespace = || now.values().filter(|object| object.namespace() == namespace);
            assert!(listed.range(Some(namespace), None).eq(of_namespace()));
            for after in ["a/n2", "a0/n3", "b", "zzz"] {
                let rest = of_namespace().filter(|object| object.key() > after).collect::<Vec<_>>();
                assert_eq!(listed.range(Some(namespace), Some(after)).len(), rest.len());
                assert!(listed.range(Some(namespace), Some(after)).eq(rest));
            }
        }
        let oldest = store.oldest(&kind);
        if oldest > 1 {
            assert!(matches!(store.at(&kind, oldest - 1), Err(Unreadable::Compacted { .. })));
            assert!(store.events(&kind, oldest - 1).is_err());
        }
        assert!(matches!(store.at(&kind, store.revision() + 1), Err(Unreadable::Future { .. })));
        for revision in oldest.max(1)..=store.revision() {
            let mut replayed = model.at(&kind, revision);
            same(&store.at(&kind, revision).expect("it is not forgotten"), &replayed);
            let mut last = revision;
            for event in store.events(&kind, revision).expect("it is not forgotten") {
                assert!(event.revision > last);
                last = event.revision;
                let before = match event.kind {
                    EventType::Deleted => replayed.remove(event.object.key()),
                    _ => replayed.insert(event.object.key().to_owned(), event.object.clone()),
                };
                assert_eq!(before, event.previous);
                assert_eq!(event.kind == EventType::Added, event.previous.is_none());
                assert_eq!(event.served().revision(), event.revision);
            }
            assert_eq!(replayed, now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn agrees_with_the_model_and_forks_are_independent(
        first in steps(300),
        left in steps(150),
        right in steps(150),
        small in any::<bool>(),
    ) {
        let limits = if small { Limits { events: 60, bytes: 12_000 } } else { Limits::default() };
        let mut store = Store::new(limits);
        let mut model = Model { states: vec![BTreeMap::new()] };
        run(&mut store, &mut model, &first);
        let (mut fork, mut fork_model) = (store.clone(), model.clone());
        let listed = (0..KINDS.len()).map(|at| store.list(&kind(at))).collect::<Vec<_>>();
        let shown = model.clone();
        run(&mut store, &mut model, &left);
        check(&mut fork, &fork_model);
        run(&mut fork, &mut fork_model, &right);
        check(&mut store, &model);
        check(&mut fork, &fork_model);
        for (at, snapshot) in listed.iter().enumerate() {
            same(snapshot, &shown.now(&kind(at)));
        }
    }
}

#[test]
fn a_write_that_expects_something_else_changes_nothing() {
    let pods = Kind::new("", "pods");
    let mut store = Store::default();
    let made = store.commit(&pods, Change::Create(object("a", "x", 1, &[]))).unwrap();
    assert_eq!((made.revision, made.object.revision()), (2, 2));
    let again = store.commit(&pods, Change::Create(object("a", "x", 2, &[])));
    assert_eq!(again.unwrap_err(), Conflict::Exists(made.object.clone()));
    let stale = Change::Update { object: object("a", "x", 2, &[]), expected: 1 };
    assert_eq!(store.commit(&pods, stale).unwrap_err(), Conflict::Changed(made.object.clone()));
    let missing = Change::Delete { key: "a/y".into(), expected: 2 };
    assert_eq!(store.commit(&pods, missing).unwrap_err(), Conflict::Missing("a/y".into()));
    assert_eq!(store.revision(), 2);
    assert_eq!(store.events(&pods, 1).unwrap().len(), 1);
    assert_eq!(store.events(&Kind::new("", "nodes"), 1).unwrap().len(), 0);
}

#[test]
fn a_deletion_shows_the_last_state_under_its_own_revision() {
    let pods = Kind::new("", "pods");
    let mut store = Store::default();
    for content in 0..8 {
        store.commit(&pods, Change::Create(object("a", &format!("x{content}"), content, &[]))).unwrap();
    }
    let deleted = store.commit(&pods, Change::Delete { key: "a/x7".into(), expected: 9 }).unwrap();
    assert_eq!(deleted.object.revision(), 9);
    let served = deleted.served();
    // One digit more moves everything after it.
    assert_eq!(
        std::str::from_utf8(served.body()).unwrap(),
        r#"{"kind":"Thing","apiVersion":"v1","metadata":{"name":"x7","namespace":"a","resourceVersion":"10","uid":"uid-x7"},"content":7}"#
    );
    assert_eq!(served.metadata(), br#"{"name":"x7","namespace":"a","resourceVersion":"10","uid":"uid-x7"}"#);
    assert!(served.item().starts_with(br#""metadata":{"#));
    assert_eq!(served.with_revision(9), *deleted.object);
    let (head, tail) = deleted.object.around_revision();
    assert_eq!([head, b"10", tail].concat(), served.body()[..]);
}

#[test]
fn time_forgets_by_marks() {
    let pods = Kind::new("", "pods");
    let mut store = Store::default();
    let time = |second| Timestamp::from_second(second).unwrap();
    for second in 0..10 {
        store.mark(time(second));
        store.commit(&pods, Change::Create(object("a", &format!("x{second}"), 0, &[]))).unwrap();
    }
    assert_eq!(store.revision_at(time(4)), Some(5));
    store.mark(time(3));
    assert_eq!(store.revision_at(time(3)), Some(4));
    store.compact_before(time(4));
    assert_eq!(store.oldest(&pods), 5);
    assert_eq!(store.at(&pods, 5).unwrap().len(), 4);
    assert_eq!(store.at(&pods, 4).err(), Some(Unreadable::Compacted { oldest: 5 }));
    store.compact_before(time(-1));
    assert_eq!(store.oldest(&pods), 5);
}

#[test]
fn old_snapshots_are_kept_for_paging_and_let_go_with_their_past() {
    let pods = Kind::new("", "pods");
    let mut store = Store::new(Limits { events: 30, ..Limits::default() });
    let create = |store: &mut Store| {
        let name = format!("x{}", store.revision());
        store.commit(&pods, Change::Create(object("a", &name, 0, &[]))).unwrap();
    };
    (0..20).for_each(|_| create(&mut store));
    for revision in 1..20 {
        store.at(&pods, revision).unwrap();
    }
    assert_eq!(store.recent.len(), RECENT);
    (0..30).for_each(|_| create(&mut store));
    assert_eq!(store.oldest(&pods), 21);
    assert_eq!(store.recent.len(), 0);
    store.at(&pods, 30).unwrap();
    store.compact(31);
    assert_eq!(store.recent.len(), 0);
}

#[test]
fn wrong_offsets_are_refused() {
    let good = object("a", "x", 1, &[]);
    let parts = |offsets: Offsets| Parts {
        namespace: "a",
        name: "x",
        uid: "u",
        labels: vec![],
        fields: vec![],
        body: good.body().to_vec(),
        offsets,
        filled: false,
    };
    let right = good.offsets();
    assert!(Object::new(parts(right.clone())).is_ok());
    let whole = Object::new(parts(Offsets { prefix_len: 1, ..right.clone() })).unwrap();
    assert_eq!([b"{", whole.item()].concat(), whole.body()[..]);
    for (prefix_len, meta, revision) in [
        (right.prefix_len - 1, right.meta.clone(), right.revision.clone()),
        (right.prefix_len, right.meta.start..right.meta.end + 1, right.revision.clone()),
        (right.prefix_len, right.meta.clone(), right.revision.start..right.revision.end + 1),
        (right.prefix_len, right.meta.clone(), right.revision.start..right.revision.start),
        (right.prefix_len, right.meta.start..1 << 40, right.revision.clone()),
        (1 << 40, right.meta.clone(), right.revision.clone()),
    ] {
        assert!(Object::new(parts(Offsets { prefix_len, meta, revision })).is_err());
    }
    assert!(Object::new(Parts { name: "x/y", ..parts(right) }).is_err());
}

/// What an object costs beside its body, counted: 16 bytes of an `Arc` and of each allocation are added as the
/// allocator's share.
#[test]
fn an_object_of_a_pod_costs_little_beside_its_body() {
    let labels =
        [("app", "web"), ("tier", "front"), ("pod-template-hash", "6d4cf56db6"), ("zone", "a"), ("v", "1")];
    let mut parts = object("default", "web-6d4cf56db6-abcde", 1, &labels);
    let mut store = Store::default();
    parts.intern(&mut store.pairs);
    let pairs = size_of_val(parts.labels()) + 9 * size_of::<Pair>();
    let text = parts.key().len() + 36;
    let cost = (16 + size_of::<Object>() + 16) + (text + 16) + (pairs + 16);
    assert!(cost <= 350, "{cost} bytes");
}
