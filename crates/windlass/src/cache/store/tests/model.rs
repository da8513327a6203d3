//! The store against a small server whose watch is late, whose lists interrupt it, and whose answers come when they like.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// Somebody else creates or changes an object.
    Write(usize),
    /// Somebody else deletes an object.
    Delete(usize),
    /// We create or change an object.
    WriteOurs(usize),
    /// We delete an object.
    DeleteOurs(usize),
    /// The oldest answer that is under way arrives.
    Answer,
    /// The next event arrives, or the next item of a list.
    Hear,
    /// The watch is lost, and a list begins.
    List,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..NAMES.len();
    let step = prop_oneof![
        3 => name.clone().prop_map(Step::Write),
        1 => name.clone().prop_map(Step::Delete),
        4 => name.clone().prop_map(Step::WriteOurs),
        1 => name.prop_map(Step::DeleteOurs),
        6 => Just(Step::Answer),
        8 => Just(Step::Hear),
        1 => Just(Step::List),
    ];
    proptest::collection::vec(step, 1..120)
}

#[derive(Clone)]
struct Live {
    uid: String,
    version: u64,
    mark: Mark,
    alone: bool,
}

enum Answer {
    Written(Incoming<ConfigMap>),
    Deleted(ObjectKey, String),
}

/// A change that subscribers have to hear of.
struct Foreign {
    key: ObjectKey,
    uid: String,
    version: u64,
}

#[derive(Default)]
struct World {
    version: u64,
    live: BTreeMap<&'static str, Live>,
    /// Every change: the object after it, or the UID of what was deleted.
    log: Vec<(u64, &'static str, Result<Live, String>)>,
    answers: VecDeque<Answer>,
    foreign: Vec<Foreign>,
    own: Vec<(ObjectKey, u64)>,
}

impl World {
    fn write(&mut self, name: &'static str, by_us: bool) {
        self.version += 1;
        let version = self.version;
        let fresh = Live { uid: format!("uid-{version}"), version, mark: Mark::default(), alone: true };
        let live = self.live.entry(name).or_insert(fresh);
        live.version = version;
        live.alone &= by_us;
        if by_us {
            live.mark = Mark::at(u32::try_from(version).unwrap());
            self.answers.push_back(Answer::Written(incoming(name, live)));
            self.own.push((key(name), version));
        } else {
            self.foreign.push(Foreign { key: key(name), uid: live.uid.clone(), version });
        }
        self.log.push((version, name, Ok(live.clone())));
    }

    fn awaits(&self, name: &str) -> bool {
        self.answers.iter().any(|answer| match answer {
            Answer::Written(new) => new.key == key(name),
            Answer::Deleted(of, _) => *of == key(name),
        })
    }

    fn delete(&mut self, name: &'static str, by_us: bool) {
        let Some(live) = self.live.remove(name) else { return };
        self.version += 1;
        if by_us {
            self.answers.push_back(Answer::Deleted(key(name), live.uid.clone()));
            self.own.push((key(name), self.version));
        } else {
            self.foreign.push(Foreign { key: key(name), uid: live.uid.clone(), version: self.version });
        }
        self.log.push((self.version, name, Err(live.uid)));
    }
}

fn incoming(name: &str, live: &Live) -> Incoming<ConfigMap> {
    let new = object(name, &live.uid, live.version);
    Incoming { mark: live.mark, alone: live.alone, ..new }
}

/// The store, a watch that is late, and a subscriber that remembers all.
struct Cached {
    store: Store<ConfigMap>,
    /// How much of the log has been heard.
    heard: usize,
    /// The rest of a list, and its version.
    list: Option<(VecDeque<Incoming<ConfigMap>>, u64)>,
    lists: usize,
    mirror: BTreeMap<ObjectKey, Arc<ConfigMap>>,
    /// The UIDs of all objects that subscribers ever had.
    known: BTreeSet<String>,
    /// The UIDs of objects that subscribers know to be deleted by us.
    deleted: BTreeSet<String>,
    /// What was told without an origin and not taken back.
    told: Vec<(ObjectKey, u64)>,
}

impl Cached {
    fn new() -> Cached {
        let mut store = Store::new();
        store.set_spans([Span::ALL]);
        store.indexes_mut().0.add(
            Index::new("uid", |map: &ConfigMap| vec![map.metadata.uid.clone().unwrap_or_default()]),
            std::iter::empty(),
        );
        Cached {
            store,
            heard: 0,
            list: None,
            lists: 0,
            mirror: BTreeMap::new(),
            known: BTreeSet::new(),
            deleted: BTreeSet::new(),
            told: Vec::new(),
        }
    }

    fn begin(&mut self, world: &World) {
        let items = world.live.iter().map(|(name, live)| incoming(name, live)).collect();
        self.list = Some((items, world.version));
        self.lists += 1;
        self.store.list_begins(&Span::ALL);
    }

    /// Hears one thing; whether there was one.
    fn hear(&mut self, world: &World) -> bool {
        let signals = if let Some((items, version)) = &mut self.list {
            if let Some(item) = items.pop_front() {
                self.store.applied(&Span::ALL, item)
            } else {
                let version = *version;
                self.list = None;
                self.heard = world.log.iter().take_while(|(of, ..)| *of <= version).count();
                let (listed, signals) = self.store.list_ends(&Span::ALL, version);
                assert_eq!(listed, Listed::Done);
                signals
            }
        } else if let Some((version, name, change)) = world.log.get(self.heard) {
            self.heard += 1;
            match change {
                Ok(live) => self.store.applied(&Span::ALL, incoming(name, live)),
                Err(uid) => self.store.deleted(&Span::ALL, &key(name), Some(uid), *version),
            }
        } else {
            self.store.bookmark(&Span::ALL, world.version);
            return false;
        };
        self.take(signals);
        true
    }

    fn answer(&mut self, world: &mut World) -> bool {
        let Some(answer) = world.answers.pop_front() else { return false };
        let signals = match answer {
            Answer::Written(new) => self.store.absorbed(new, Some(&us())),
            Answer::Deleted(key, uid) => self.store.removed(&key, &uid, Some(&us())),
        };
        self.take(signals);
        true
    }

    fn take(&mut self, signals: Signals) {
        for signal in signals {
            match signal {
                Signal::Own { key, version, .. } => {
                    let at = self.told.iter().position(|told| *told == (key.clone(), version));
                    self.told.remove(at.expect("what is taken back was told"));
                }
                Signal::Changed(delta) => {
                    match &delta.new {
                        Some(new) => {
                            self.known.insert(uid(new));
                            self.mirror.insert(delta.key.clone(), new.clone());
                        }
                        None => {
                            let old = self.mirror.remove(&delta.key).expect("what goes was there");
                            assert!(Arc::ptr_eq(&old, delta.old.as_ref().expect("it says what goes")));
                            if delta.origin.is_some() {
                                self.deleted.insert(uid(&old));
                            }
                        }
                    }
                    if delta.origin.is_none() {
                        self.told.push((delta.key, delta.version));
                    }
                }
            }
        }
    }
}

fn run(steps: &[Step]) -> (World, Cached) {
    let (mut world, mut cached) = (World::default(), Cached::new());
    cached.begin(&world);
    let mut versions: BTreeMap<ObjectKey, (Option<String>, u64)> = BTreeMap::new();
    for step in steps {
        match step {
            Step::Write(n) => world.write(NAMES[*n], false),
            Step::Delete(n) => world.delete(NAMES[*n], false),
            // Nobody writes to an object before the answer to the last write has come.
            Step::WriteOurs(n) if !world.awaits(NAMES[*n]) => world.write(NAMES[*n], true),
            Step::DeleteOurs(n) if !world.awaits(NAMES[*n]) => world.delete(NAMES[*n], true),
            Step::WriteOurs(_) | Step::DeleteOurs(_) => {}
            Step::Answer => drop(cached.answer(&mut world)),
            Step::Hear => drop(cached.hear(&world)),
            Step::List => cached.begin(&world),
        }
        for name in NAMES {
            let uid = cached.store.get(&key(name)).map(|object| object.metadata.uid.clone());
            let now = uid.map(|uid| (uid, cached.store.version(&key(name)).unwrap()));
            let before = now.clone().and_then(|now| versions.insert(key(name), now));
            if let (Some((uid, version)), Some((old_uid, old_version))) = (now, before) {
                assert!(version >= old_version, "{name} went from {old_version} to {version}");
                assert!(uid == old_uid || version > old_version);
            }
        }
    }
    while cached.answer(&mut world) {}
    while cached.hear(&world) {}
    (world, cached)
}

fn check(steps: &[Step]) {
    let (world, cached) = run(steps);
    let stored: Vec<_> = cached.store.list(&Span::ALL).map(|(key, _)| key.clone()).collect();
    let versions: Vec<_> = stored.iter().map(|key| cached.store.version(key).unwrap()).collect();
    let live: Vec<_> = world.live.keys().map(|name| key(name)).collect();
    assert_eq!(stored, live, "the cache has what the server has");
    assert_eq!(versions, world.live.values().map(|live| live.version).collect::<Vec<_>>());
    assert_eq!(cached.mirror.keys().cloned().collect::<Vec<_>>(), stored, "subscribers have the same");
    assert_eq!(cached.store.indexes().len(), stored.len(), "indexes have no more");
    for Foreign { key, uid, version } in &world.foreign {
        // Of an object that came and went unseen there is nothing to tell, nor of one that we deleted ourselves.
        let matters = cached.known.contains(uid) && !cached.deleted.contains(uid);
        let told = cached.told.iter().any(|(of, told)| of == key && told >= version);
        assert!(told || !matters, "{key} at {version} was never told");
    }
    for (key, version) in world.own.iter().filter(|own| cached.told.contains(own)) {
        // Then somebody else's change came between the event and the answer, and wakes anyway.
        let later = cached.told.iter().any(|(of, told)| of == key && told > version);
        assert!(later || cached.lists > 1, "our own {key} at {version} woke somebody");
    }
}

fn uid(object: &ConfigMap) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_follows_the_server_and_no_change_by_others_is_lost(steps in steps()) {
        check(&steps);
    }
}
