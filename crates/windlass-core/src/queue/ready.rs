//! The keys that wait for nothing but their turn.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::Priority;

/// Slots in two orders at once: by age, and by arrival inside of their priority. Both are lists that run through arrays
/// indexed by slot, so nothing is searched and nothing is left behind.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    ages: List,
    /// No list here is empty.
    classes: BTreeMap<Reverse<Priority>, List>,
    priorities: Vec<Priority>,
    age_links: Vec<Link>,
    class_links: Vec<Link>,
    oldest_every: NonZeroU32,
    /// Turns since the last one that went by age.
    turns: u32,
}

impl Ready {
    pub(super) fn new(oldest_every: NonZeroU32) -> Ready {
        Ready {
            ages: List::EMPTY,
            classes: BTreeMap::new(),
            priorities: Vec::new(),
            age_links: Vec::new(),
            class_links: Vec::new(),
            oldest_every,
            turns: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ages.len
    }

    /// How many there are of each priority, the highest first.
    pub(super) fn depth(&self) -> impl Iterator<Item = (Priority, usize)> {
        self.classes.iter().map(|(&Reverse(priority), list)| (priority, list.len))
    }

    /// Adds a slot as the youngest.
    pub(super) fn push(&mut self, slot: u32, priority: Priority) {
        let needed = slot as usize + 1;
        if self.priorities.len() < needed {
            self.priorities.resize(needed, Priority::NORMAL);
            self.age_links.resize(needed, Link::NONE);
            self.class_links.resize(needed, Link::NONE);
        }
        self.ages.push(&mut self.age_links, slot);
        self.enter_class(slot, priority);
    }

    /// Gives a slot another priority: it goes behind those who have it already, and keeps its age.
    pub(super) fn shift(&mut self, slot: u32, priority: Priority) {
        if self.priorities[slot as usize] != priority {
            self.leave_class(slot);
            self.enter_class(slot, priority);
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.ages.remove(&mut self.age_links, slot);
        self.leave_class(slot);
    }

    /// Takes the slot whose turn it is, with its priority.
    pub(super) fn take(&mut self) -> Option<(u32, Priority)> {
        let oldest = self.ages.first()?;
        let (&Reverse(highest), _) = self.classes.first_key_value()?;
        self.turns += 1;
        let priority = if self.turns >= self.oldest_every.get() {
            self.turns = 0;
            self.priorities[oldest as usize]
        } else {
            highest
        };
        // Also by age, the first of a priority is the first that came to it.
        let slot = self.classes.get(&Reverse(priority))?.first()?;
        self.remove(slot);
        Some((slot, priority))
    }

    fn enter_class(&mut self, slot: u32, priority: Priority) {
        self.priorities[slot as usize] = priority;
        self.classes.entry(Reverse(priority)).or_insert(List::EMPTY).push(&mut self.class_links, slot);
    }

    fn leave_class(&mut self, slot: u32) {
        let priority = Reverse(self.priorities[slot as usize]);
        if let Some(list) = self.classes.get_mut(&priority) {
            list.remove(&mut self.class_links, slot);
            if list.len == 0 {
                self.classes.remove(&priority);
            }
        }
    }
}

/// No slot.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
    len: usize,
}

/// The neighbours of a slot in a list.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

impl Link {
    const NONE: Link = Link { before: NONE, after: NONE };
}

impl List {
    const EMPTY: List = List { first: NONE, last: NONE, len: 0 };

    fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    fn push(&mut self, links: &mut [Link], slot: u32) {
        links[slot as usize] = Link { before: self.last, after: NONE };
        match self.last {
            NONE => self.first = slot,
            last => links[last as usize].after = slot,
        }
        self.last = slot;
        self.len += 1;
    }

    fn remove(&mut self, links: &mut [Link], slot: u32) {
        let Link { before, after } = links[slot as usize];
        match before {
            NONE => self.first = after,
            before => links[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => links[after as usize].before = before,
        }
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(ready: &mut Ready) -> Vec<u32> {
        std::iter::from_fn(|| ready.take()).map(|(slot, _)| slot).collect()
    }

    #[test]
    fn turns_alternate_between_the_highest_priority_and_the_longest_wait() {
        let mut ready = Ready::new(NonZeroU32::new(3).unwrap());
        for slot in 0..3 {
            ready.push(slot, Priority::INITIAL);
        }
        for slot in 3..8 {
            ready.push(slot, Priority::NORMAL);
        }
        assert_eq!(ready.depth().collect::<Vec<_>>(), [(Priority::NORMAL, 5), (Priority::INITIAL, 3)]);
        assert_eq!(drained(&mut ready), [3, 4, 0, 5, 6, 1, 7, 2]);
        assert_eq!((ready.len(), ready.depth().count()), (0, 0));
    }

    #[test]
    fn slots_leave_from_anywhere() {
        for removed in 0..5 {
            let mut ready = Ready::new(NonZeroU32::MIN);
            for slot in 0..5 {
                ready.push(slot, Priority::NORMAL);
            }
            ready.remove(removed);
            ready.push(removed, Priority::NORMAL);
            let mut expected = (0..5).filter(|slot| *slot != removed).collect::<Vec<_>>();
            expected.push(removed);
            assert_eq!(drained(&mut ready), expected);
        }
    }

    #[test]
    fn another_priority_is_joined_at_its_end() {
        let mut ready = Ready::new(NonZeroU32::new(100).unwrap());
        ready.push(0, Priority::INITIAL);
        ready.push(1, Priority::NORMAL);
        ready.shift(0, Priority::NORMAL);
        ready.push(2, Priority::NORMAL);
        assert_eq!(drained(&mut ready), [1, 0, 2]);
    }
}
