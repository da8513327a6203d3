//! A list on its way: pieces that are read from a snapshot as they are needed.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{item_tree, list_tree};
use crate::api::filter::Filter;
use crate::api::negotiate::Output;
use crate::api::object::{load, serves_stored};
use crate::api::piece::{Piece, Writer};
use crate::api::registry::Resource;
use crate::api::response::render;
use crate::api::shape::{self, Tabulator};
use crate::api::yaml;
use crate::codec::{Format, pretty_line, write_pretty, write_value};
use crate::store::{Object, Snapshot};

/// About how many bytes of a list are written at a time.
const CHUNK: usize = 128 << 10;
/// How many parts are written at a time: as many as one call takes to the network.
const PARTS: usize = 60;
/// Objects shorter than this are copied, several into one part.
const COPIED: usize = 1 << 10;

/// What stands for the items where what is around them is written: no text of an object's is only this.
const ITEMS: &str = "\0";
/// How deep the items stand in a list that is written for people.
const DEPTH: usize = 2;

/// A list on its way to the client: pieces of text from a snapshot.
pub struct ListBody {
    items: Items,
    resource: Arc<Resource>,
    form: Form,
    layout: Layout,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// The list, if it turns out that there is nothing in it.
    empty: Vec<u8>,
    stage: Stage,
}

/// How the text of a list is laid out.
#[derive(Clone, Copy)]
enum Layout {
    /// JSON for programs.
    Plain,
    /// JSON for people.
    Indented,
    Yaml,
}

impl Layout {
    fn of(output: &Output) -> Layout {
        match output.format {
            Format::Yaml => Layout::Yaml,
            _ if output.pretty => Layout::Indented,
            _ => Layout::Plain,
        }
    }

    /// The place of the items in a list of [`ITEMS`] alone.
    fn place(self) -> &'static [u8] {
        match self {
            Layout::Plain | Layout::Indented => br#""\u0000""#,
            Layout::Yaml => b"- \"\\0\"\n",
        }
    }
}

/// What a list shows of each object.
pub(super) enum Form {
    /// All of it.
    Object,
    /// Its metadata, of this version.
    Partial(&'static str),
    /// A row, as it was at this time.
    Row(Tabulator, Timestamp),
}

impl Form {
    /// What is shown of an object.
    pub fn tree(&self, resource: &Resource, object: &Object) -> Value {
        match self {
            Form::Object => item_tree(resource, object),
            Form::Partial(version) => shape::partial_tree(resource, version, object),
            Form::Row(tabulator, now) => tabulator.row_of(&load(resource, object), *now),
        }
    }

    /// The list of these.
    pub fn list_tree(&self, resource: &Resource, metadata: Map<String, Value>, items: Vec<Value>) -> Value {
        match self {
            Form::Object => {
                let (kind, version) = (&resource.list_kind, resource.api_version());
                list_tree(kind, &version, metadata, Value::Array(items), resource.is_custom())
            }
            Form::Partial(version) => {
                // A list of metadata that has none is null, as its Go slice is.
                let items = if items.is_empty() { Value::Null } else { Value::Array(items) };
                let version = format!("meta.k8s.io/{version}");
                list_tree("PartialObjectMetadataList", &version, metadata, items, false)
            }
            Form::Row(tabulator, _) => tabulator.frame(metadata, items, true),
        }
    }
}

pub(super) enum Items {
    /// All that match, read from the snapshot as they are needed.
    Range { snapshot: Snapshot, filter: Filter, after: Option<String> },
    /// The objects of one page.
    Page(std::vec::IntoIter<Arc<Object>>),
}

impl Items {
    /// The same in another order.
    pub fn sorted_by<K: Ord>(self, key: impl Fn(&Object) -> K) -> Items {
        let mut objects: Vec<_> = self.iter().cloned().collect();
        objects.sort_by_cached_key(|object| key(object));
        Items::Page(objects.into_iter())
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
    First,
    More,
    Done,
}

impl ListBody {
    /// A list of these items.
    pub(super) fn new(
        items: Items,
        resource: Arc<Resource>,
        form: Form,
        output: &Output,
        metadata: Map<String, Value>,
    ) -> ListBody {
        let empty = render(output, &form.list_tree(&resource, metadata.clone(), Vec::new())).into();
        let frame = render(output, &form.list_tree(&resource, metadata, vec![Value::from(ITEMS)]));
        let layout = Layout::of(output);
        let place = layout.place();
        // The rows of a Table come behind texts of others.
        let at = memchr::memmem::rfind(&frame, place).expect("the frame has a place for items");
        let (head, tail) = (frame[..at].to_vec(), frame[at + place.len()..].to_vec());
        ListBody { items, resource, form, layout, head, tail, empty, stage: Stage::First }
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
        let mut after = None;
        let writer =
            ItemWriter { resource: &self.resource, form: &self.form, layout: self.layout, head: &self.head };
        let ended = match &mut self.items {
            Items::Page(objects) => loop {
                let Some(object) = objects.next() else { break true };
                writer.write(&mut out, &mut self.stage, &object);
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
                    writer.write(&mut out, &mut self.stage, object);
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
            let end = if self.stage == Stage::First { &mut self.empty } else { &mut self.tail };
            out.open().append(end);
            self.stage = Stage::Done;
        }
        Some(out.finish())
    }
}

fn is_full(out: &Writer) -> bool {
    out.len() >= CHUNK || out.parts() >= PARTS
}

/// How the items of a list are written.
struct ItemWriter<'a> {
    resource: &'a Resource,
    form: &'a Form,
    layout: Layout,
    /// What comes before the first.
    head: &'a [u8],
}

impl ItemWriter<'_> {
    fn write(&self, out: &mut Writer, stage: &mut Stage, object: &Arc<Object>) {
        let resource = self.resource;
        let first = std::mem::replace(stage, Stage::More) == Stage::First;
        if first {
            out.open().extend_from_slice(self.head);
        }
        match self.layout {
            Layout::Plain => {}
            Layout::Indented => {
                let out = out.open();
                if !first {
                    pretty_line(out, 1, DEPTH);
                }
                return write_pretty(out, &self.form.tree(resource, object), DEPTH);
            }
            Layout::Yaml => return yaml::write_item(out.open(), &self.form.tree(resource, object)),
        }
        let whole = matches!(self.form, Form::Object);
        if whole && object.body().len() >= COPIED && serves_stored(resource, object) {
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
        match self.form {
            Form::Object => shape::write_item(out, resource, object),
            Form::Partial(version) => shape::write_partial(out, resource, version, object),
            Form::Row(..) => write_value(out, &self.form.tree(resource, object)),
        }
    }
}
