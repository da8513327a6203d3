//! A list on its way: pieces that are read from a snapshot as they are needed.

use std::sync::Arc;

use crate::api::filter::Filter;
use crate::api::object::serves_stored;
use crate::api::piece::{Piece, Writer};
use crate::api::registry::Resource;
use crate::api::shape;
use crate::store::{Object, Snapshot};

/// About how many bytes of a list are written at a time.
const CHUNK: usize = 128 << 10;
/// How many parts are written at a time: as many as one call takes to the network.
const PARTS: usize = 60;
/// Objects shorter than this are copied, several into one part.
const COPIED: usize = 1 << 10;

/// A list on its way to the client: pieces of JSON from a snapshot.
pub struct ListBody {
    items: Items,
    resource: Arc<Resource>,
    partial: Option<&'static str>,
    head: Vec<u8>,
    tail: Vec<u8>,
    stage: Stage,
}

pub(super) enum Items {
    /// All that match, read from the snapshot as they are needed.
    Range { snapshot: Snapshot, filter: Filter, after: Option<String> },
    /// The objects of one page.
    Page(std::vec::IntoIter<Arc<Object>>),
}

impl Items {
    /// Whether nothing will be listed.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// What will be listed.
    pub fn iter(&self) -> Box<dyn Iterator<Item = &Arc<Object>> + '_> {
        match self {
            Items::Page(objects) => Box::new(objects.as_slice().iter()),
            Items::Range { snapshot, filter, after } => Box::new(
                snapshot
                    .range(filter.namespace.as_deref(), after.as_deref())
                    .filter(|object| filter.matches(object)),
            ),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Head,
    First,
    More,
    Done,
}

impl ListBody {
    /// These items between a head and a tail. Of whom only metadata is wanted, its version is told.
    pub(super) fn new(
        items: Items,
        resource: Arc<Resource>,
        partial: Option<&'static str>,
        head: String,
        tail: String,
    ) -> ListBody {
        let (head, tail) = (head.into_bytes(), tail.into_bytes());
        ListBody { items, resource, partial, head, tail, stage: Stage::Head }
    }

    /// Whether all pieces were taken.
    pub fn ended(&self) -> bool {
        self.stage == Stage::Done
    }

    /// The next piece; `None` after the last.
    pub fn next_piece(&mut self) -> Option<Piece> {
        if self.stage == Stage::Done {
            return None;
        }
        let mut out = Writer::default();
        if self.stage == Stage::Head {
            out.open().append(&mut self.head);
            self.stage = Stage::First;
        }
        let mut after = None;
        let ended = match &mut self.items {
            Items::Page(objects) => loop {
                let Some(object) = objects.next() else { break true };
                write(&mut out, &mut self.stage, &self.resource, self.partial, &object);
                if is_full(&out) {
                    break false;
                }
            },
            Items::Range { snapshot, filter, after: from } => {
                let mut matching = snapshot
                    .range(filter.namespace.as_deref(), from.as_deref())
                    .filter(|object| filter.matches(object));
                loop {
                    let Some(object) = matching.next() else { break true };
                    write(&mut out, &mut self.stage, &self.resource, self.partial, object);
                    if is_full(&out) {
                        after = Some(object.key().to_owned());
                        break false;
                    }
                }
            }
        };
        if let (Items::Range { after: from, .. }, Some(after)) = (&mut self.items, after) {
            *from = Some(after);
        }
        if ended {
            out.open().append(&mut self.tail);
            self.stage = Stage::Done;
        }
        Some(out.finish())
    }
}

fn is_full(out: &Writer) -> bool {
    out.len() >= CHUNK || out.parts() >= PARTS
}

fn write(
    out: &mut Writer,
    stage: &mut Stage,
    resource: &Resource,
    partial: Option<&str>,
    object: &Arc<Object>,
) {
    let first = std::mem::replace(stage, Stage::More) == Stage::First;
    if partial.is_none() && object.body().len() >= COPIED && serves_stored(resource, object) {
        // Large ones are sent from where they are: copying them would be a third of what a list costs.
        return match (resource.is_custom(), first) {
            (true, true) => out.push(b"", object.clone(), 0),
            (true, false) => out.push(b",", object.clone(), 0),
            (false, true) => out.push(b"{", object.clone(), object.offsets().prefix_len),
            (false, false) => out.push(b",{", object.clone(), object.offsets().prefix_len),
        };
    }
    let out = out.open();
    if !first {
        out.push(b',');
    }
    match partial {
        Some(version) => shape::write_partial(out, resource, version, object),
        None => shape::write_item(out, resource, object),
    }
}
