//! What of all that is reported the server should hear. Pure: time and randomness come in.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use windlass_core::Moment;

use super::{EventType, Report};

/// After this long without the same event a series has ended.
pub(super) const SERIES_ENDS: Duration = Duration::from_secs(6 * 60);
/// The server forgets an event after an hour. A series that goes on is told again before.
const SERIES_REFRESH: Duration = Duration::from_secs(30 * 60);
/// How many requests may be made of one object for one reason at once, so that a storm of one does not hide the others,
const BURST: f64 = 25.0;
/// and how long it takes until one more may.
const REFILL: Duration = Duration::from_secs(5 * 60);
const NEVER: Moment = Moment::after_start(Duration::MAX);
/// How many series and how many buckets are remembered: as many as client-go does.
const REMEMBERED: usize = 4096;

/// Remembers what was reported of late.
#[derive(Debug)]
pub(super) struct Correlator {
    controller: String,
    instance: String,
    series: BTreeMap<SeriesKey, Series>,
    buckets: BTreeMap<BucketKey, Bucket>,
    /// Before this no series ends and none has to be told again: all of them are looked at when it comes, not at each event.
    look: Moment,
    /// The number of the last event.
    last: Option<u64>,
}

/// What to do with a report.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decision {
    /// Send this event: as a patch of its series where it has one.
    Send(Box<api::Event>),
    /// Nothing for now: it is counted.
    Counted,
    /// Nothing: too much was sent of this object for this reason.
    Limited,
}

/// An object, whichever version of it.
type ObjectId = [String; 6];
/// An object, and the reason of an event.
type BucketKey = (ObjectId, String);
type SeriesKey = (ObjectId, EventType, String, String, String);

#[derive(Debug)]
struct Series {
    /// As it was created, with the latest count and time.
    event: api::Event,
    count: i32,
    count_sent: i32,
    last: Moment,
    sent: Moment,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Moment,
}

impl Correlator {
    pub(super) fn new(controller: &str, instance: &str) -> Correlator {
        Correlator {
            controller: controller.to_owned(),
            // Longer ones are refused by the server.
            instance: cut(instance, 128).to_owned(),
            series: BTreeMap::new(),
            buckets: BTreeMap::new(),
            look: NEVER,
            last: None,
        }
    }

    pub(super) fn observe(&mut self, report: Report, now: Moment, wall: Timestamp, random: u64) -> Decision {
        let Report { regarding, event } = report;
        let object = object_id(&regarding);
        let bucket = (object.clone(), event.reason.clone());
        let note = cut(&event.note, 1024).to_owned();
        let key = (object, event.kind, event.reason.clone(), event.action.clone(), note.clone());
        if let Some(series) = self.series.get_mut(&key).filter(|series| now - series.last < SERIES_ENDS) {
            series.count = series.count.saturating_add(1);
            series.last = now;
            series.event.series =
                Some(api::EventSeries { count: series.count, last_observed_time: MicroTime(wall) });
            // Powers of two: people see soon that it goes on, and a storm costs few requests.
            if series.count & (series.count - 1) != 0 || !take(&mut self.buckets, bucket, now) {
                return Decision::Counted;
            }
            return Decision::Send(Box::new(series.send(now)));
        }
        if !take(&mut self.buckets, bucket, now) {
            return Decision::Limited;
        }
        let event = self.event(regarding, event.kind, event.reason, event.action, note, wall, random);
        if self.series.len() >= REMEMBERED {
            forget_oldest(&mut self.series, |series| series.last);
        }
        let series = Series { event: event.clone(), count: 1, count_sent: 1, last: now, sent: now };
        self.look = self.look.min(series.rests_until());
        self.series.insert(key, series);
        Decision::Send(Box::new(event))
    }

    /// Series whose count has to be told now: those that have ended, and those that go on for long.
    pub(super) fn due(&mut self, now: Moment) -> Vec<api::Event> {
        if now < self.look {
            return Vec::new();
        }
        let mut due = Vec::new();
        for series in self.series.values_mut().filter(|series| series.due() <= now) {
            due.push(series.send(now));
        }
        self.series.retain(|_, series| now - series.last < SERIES_ENDS);
        self.look = self.series.values().map(Series::rests_until).min().unwrap_or(NEVER);
        due
    }

    /// When to ask [`Correlator::due`] again: it has nothing before.
    pub(super) fn next_due(&self) -> Option<Moment> {
        (self.look < NEVER).then_some(self.look)
    }

    /// What the server has not heard of yet.
    pub(super) fn untold(self) -> impl Iterator<Item = api::Event> {
        self.series.into_values().filter(Series::untold).map(|series| series.event)
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of an event")]
    fn event(
        &mut self,
        regarding: ObjectReference,
        kind: EventType,
        reason: String,
        action: String,
        note: String,
        wall: Timestamp,
        random: u64,
    ) -> api::Event {
        let number = self.number(wall, random);
        // Events of objects of the cluster live in the namespace `default`.
        let namespace = regarding.namespace.clone().filter(|namespace| !namespace.is_empty());
        api::Event {
            metadata: ObjectMeta {
                name: Some(name(regarding.name.as_deref().unwrap_or_default(), number)),
                namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(wall)),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            // The server wants both.
            action: Some(cut(if action.is_empty() { &reason } else { &action }, 128).to_owned()),
            reason: Some(cut(&reason, 128).to_owned()),
            regarding: Some(regarding),
            note: Some(note),
            type_: Some(kind.text().to_owned()),
            ..api::Event::default()
        }
    }

    /// The number in the name of an event: it grows with time, since kubectl shows the events of an object in the order of
    /// their names. The last bits are random, so that others who tell of the same object at the same time have other names.
    fn number(&mut self, wall: Timestamp, random: u64) -> u64 {
        const RANDOM_BITS: u32 = 16;
        let now = u64::try_from(wall.as_nanosecond()).unwrap_or_default() >> RANDOM_BITS;
        let tick = self.last.map_or(now, |last| now.max(last + 1));
        self.last = Some(tick);
        (tick << RANDOM_BITS) | (random & ((1 << RANDOM_BITS) - 1))
    }
}

impl Series {
    fn untold(&self) -> bool {
        self.count > self.count_sent
    }

    fn due(&self) -> Moment {
        if self.untold() { self.rests_until() } else { NEVER }
    }

    /// Whatever happens meanwhile, there is nothing to do with it before this.
    fn rests_until(&self) -> Moment {
        (self.last + SERIES_ENDS).min(self.sent + SERIES_REFRESH)
    }

    fn send(&mut self, now: Moment) -> api::Event {
        self.count_sent = self.count;
        self.sent = now;
        self.event.clone()
    }
}

/// Takes a token of a bucket, if there is one.
fn take(buckets: &mut BTreeMap<BucketKey, Bucket>, key: BucketKey, now: Moment) -> bool {
    if buckets.len() >= REMEMBERED && !buckets.contains_key(&key) {
        forget_oldest(buckets, |bucket| bucket.at);
    }
    let bucket = buckets.entry(key).or_insert(Bucket { tokens: BURST, at: now });
    let refilled = (now - bucket.at).as_secs_f64() / REFILL.as_secs_f64();
    bucket.tokens = (bucket.tokens + refilled).min(BURST);
    bucket.at = now;
    // Five minutes in floating point may be a little less than one token.
    if bucket.tokens < 1.0 - 1e-9 {
        return false;
    }
    bucket.tokens -= 1.0;
    true
}

/// Makes room: forgets the oldest quarter, so that the search for them is paid by many.
fn forget_oldest<K: Ord, V>(map: &mut BTreeMap<K, V>, age: impl Fn(&V) -> Moment) {
    let mut ages: Vec<Moment> = map.values().map(&age).collect();
    let quarter = ages.len() / 4;
    let (_, &mut youngest_to_go, _) = ages.select_nth_unstable(quarter);
    map.retain(|_, value| age(value) > youngest_to_go);
}

/// The resourceVersion is left out: the same thing that happens to the next version of an object is the same thing.
fn object_id(object: &ObjectReference) -> ObjectId {
    [&object.api_version, &object.kind, &object.namespace, &object.name, &object.uid, &object.field_path]
        .map(|part| part.clone().unwrap_or_default())
}

/// The object's name and a number. Names of some kinds (`system:node` of a ClusterRole) are none for an event.
fn name(object: &str, number: u64) -> String {
    const NAME_MAX: usize = 253;
    let number = format!("{number:016x}");
    let valid = !object.is_empty()
        && object.len() + 1 + number.len() <= NAME_MAX
        && object.split('.').all(|label| {
            let inside = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
            label.bytes().all(|c| inside(c) || c == b'-')
                && label.bytes().next().is_some_and(inside)
                && label.bytes().last().is_some_and(inside)
        });
    if valid { format!("{object}.{number}") } else { number }
}

/// The longest beginning of a text that has no more than this many bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::super::Event;
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn report(object: &str, note: &str) -> Report {
        let regarding = ObjectReference {
            kind: Some("FooBar".to_owned()),
            namespace: Some("web".to_owned()),
            name: Some(object.to_owned()),
            resource_version: Some("17".to_owned()),
            ..ObjectReference::default()
        };
        Report { regarding, event: Event::normal("Scaled", "Scale", note) }
    }

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    fn count(decision: Decision) -> Option<i32> {
        match decision {
            Decision::Send(event) => Some(event.series.map_or(1, |series| series.count)),
            _ => None,
        }
    }

    #[test]
    fn the_same_event_is_counted_and_told_by_powers_of_two() {
        let mut all = Correlator::new("foobar", "foobar-1");
        let mut told = Vec::new();
        for second in 0..100 {
            let mut report = report("one", "to 3");
            report.regarding.resource_version = Some(second.to_string());
            told.extend(count(all.observe(report, at(second), START, second)));
        }
        assert_eq!(told, [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(all.next_due(), Some(at(360)), "the first could have been the last");
        assert_eq!(all.due(at(360)), []);
        assert_eq!(all.next_due(), Some(at(99 + 360)));
        assert_eq!(all.due(at(99 + 359)), []);
        let last = all.due(at(99 + 360));
        assert_eq!(last.len(), 1);
        assert_eq!(last[0].series.as_ref().unwrap().count, 100);
        assert_eq!(last[0].metadata.name.as_deref(), Some("one.0000000000000000"));
        assert_eq!((all.next_due(), all.series.len()), (None, 0));
    }

    #[test]
    fn another_object_note_or_time_is_another_event() {
        let mut all = Correlator::new("foobar", "foobar-1");
        assert_eq!(count(all.observe(report("one", "to 3"), at(0), START, 1)), Some(1));
        assert_eq!(count(all.observe(report("two", "to 3"), at(0), START, 2)), Some(1));
        assert_eq!(count(all.observe(report("one", "to 4"), at(0), START, 3)), Some(1));
        assert_eq!(count(all.observe(report("one", "to 3"), at(359), START, 4)), Some(2));
        assert_eq!(count(all.observe(report("one", "to 3"), at(359 + 360), START, 5)), Some(1));
    }

    #[test]
    fn a_series_that_goes_on_is_told_before_the_server_forgets_it() {
        let mut all = Correlator::new("foobar", "foobar-1");
        let mut told = Vec::new();
        for minute in 0..120 {
            let now = at(minute * 60);
            told.extend(all.due(now).into_iter().map(|_| minute));
            told.extend(count(all.observe(report("one", "to 3"), now, START, minute)).map(|_| minute));
        }
        let gaps = told.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(gaps <= Some(31), "told in minutes {told:?}");
    }

    #[test]
    fn of_one_object_and_reason_the_server_hears_25_at_once_and_then_one_in_five_minutes() {
        let mut all = Correlator::new("foobar", "foobar-1");
        let mut sent = |object: &str, number: u64, now| {
            let decision = all.observe(report(object, &format!("to {number}")), now, START, number);
            matches!(decision, Decision::Send(_))
        };
        assert_eq!((0..100).filter(|&number| sent("one", number, at(0))).count(), 25);
        assert!(sent("two", 0, at(0)), "another object is not limited");
        assert!(!sent("one", 100, at(299)));
        assert!(sent("one", 101, at(300)));
        assert!(!sent("one", 102, at(301)));
        let mut other = report("one", "no node has room");
        other.event.reason = "Stuck".to_owned();
        assert_eq!(count(all.observe(other, at(301), START, 0)), Some(1), "another reason is not limited");
    }

    #[test]
    fn names_are_in_the_order_of_time() {
        let mut all = Correlator::new("foobar", "foobar-1");
        let mut names = Vec::new();
        for (number, random) in [(0, 9), (0, 7), (0, 3), (1, 1)] {
            let wall = START + Duration::from_secs(number);
            let Decision::Send(event) =
                all.observe(report("one", &format!("to {}", names.len())), at(0), wall, random)
            else {
                panic!("not sent")
            };
            names.push(event.metadata.name.unwrap());
        }
        assert!(names.is_sorted() && names[2] != names[3], "{names:?}");
    }

    #[test]
    fn memory_is_bounded() {
        let mut all = Correlator::new("foobar", "foobar-1");
        for number in 0..3 * REMEMBERED as u64 {
            all.observe(report(&number.to_string(), "to 3"), at(number), START, number);
        }
        let remembered = REMEMBERED / 2..=REMEMBERED;
        assert!(remembered.contains(&all.series.len()) && remembered.contains(&all.buckets.len()));
        let latest = (3 * REMEMBERED - 1) as u64;
        let again = all.observe(report(&latest.to_string(), "to 3"), at(latest), START, 0);
        assert_eq!(count(again), Some(2), "the latest are the ones that are remembered");
    }

    #[test]
    fn what_the_server_would_refuse_is_cut() {
        assert_eq!(name("system:node", 0xab), "00000000000000ab");
        assert_eq!(name(&"a".repeat(240), 0xab), "00000000000000ab");
        assert_eq!(name("a.b-c", 0xab), "a.b-c.00000000000000ab");
        assert_eq!(cut("hällo", 2), "h");
    }
}
