//! One version of one object: its final bytes, and where in them things are.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;

use super::pairs::{Interner, Pair};
use super::row::Entry;
use super::tree::Item;

/// One version of one object. It never changes; a write makes a new one.
///
/// The body is the JSON that is served. The other fields are what reads need without parsing it: who it is, which
/// selectors it matches, and the places that lists, metadata-only answers and events cut it at.
#[derive(Clone)]
pub struct Object {
    revision: u64,
    /// The body, [`BETWEEN`], the key (`namespace/name`, or `name`) and the uid: one allocation, since there may be a
    /// hundred thousand of them.
    text: Box<str>,
    /// Labels first, then fields; each part sorted by key.
    pairs: Box<[Pair]>,
    body_len: u32,
    prefix_len: u32,
    meta: (u32, u32),
    digits: (u32, u32),
    key_len: u16,
    namespace_len: u16,
    labels_len: u16,
    filled: bool,
}

/// What stands between two items of a list; of items that carry their kind only the comma.
pub const BETWEEN: &str = ",{";

/// How long a body may be: far beyond the 3 MiB of a request, and such that offsets count in 32 bits.
pub(super) const BODY_MAX: usize = 64 << 20;

/// Where things are in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// Where the text after `{"kind":…,"apiVersion":…,` starts; 1 where items of a list carry these two.
    pub prefix_len: usize,
    /// The value of `metadata`, braces included.
    pub meta: Range<usize>,
    /// The digits of `metadata.resourceVersion`, quotes not included.
    pub revision: Range<usize>,
}

/// What an object is made of.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// Its labels, in any order.
    pub labels: Vec<(&'a str, &'a str)>,
    /// The values of its selectable fields by their path, in any order.
    pub fields: Vec<(&'a str, &'a str)>,
    /// The JSON that is served.
    pub body: Vec<u8>,
    /// Where things are in the body.
    pub offsets: Offsets,
    /// Whether the body shows more than was written.
    pub filled: bool,
}

/// Why parts do not make an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// An offset is outside of the body, or does not point at what it should.
    #[error("{what} is not at {start}..{end} of a body of {len} bytes")]
    Offset {
        /// What should be there.
        what: &'static str,
        /// Where it should start.
        start: usize,
        /// Where it should end.
        end: usize,
        /// How long the body is.
        len: usize,
    },
    /// The body is no text.
    #[error("the body is not UTF-8")]
    Encoding,
    /// The namespace or the name could not be told from another's.
    #[error("{0:?} cannot be part of a key")]
    Key(String),
    /// More than the object's form can count.
    #[error("{0} is too long")]
    TooLong(&'static str),
}

impl Object {
    /// An object of these parts. Its revision is what its digits say; a commit writes the true one.
    pub fn new(parts: Parts<'_>) -> Result<Object, Malformed> {
        for part in [parts.namespace, parts.name] {
            if part.contains(['/', '\0']) {
                return Err(Malformed::Key(part.to_owned()));
            }
        }
        let slash = if parts.namespace.is_empty() { "" } else { "/" };
        let short = |what, len| u16::try_from(len).map_err(|_| Malformed::TooLong(what));
        let namespace_len = short("namespace", parts.namespace.len())?;
        let key_len = short("key", parts.namespace.len() + slash.len() + parts.name.len())?;
        let labels_len = short("list of labels", parts.labels.len())?;
        let mut pairs =
            parts.labels.iter().chain(&parts.fields).map(|(k, v)| Pair::new(k, v)).collect::<Box<[_]>>();
        pairs[..parts.labels.len()].sort_unstable();
        pairs[parts.labels.len()..].sort_unstable();

        let Offsets { prefix_len, meta, revision: digits } = parts.offsets;
        let body = parts.body;
        if body.len() > BODY_MAX {
            return Err(Malformed::TooLong("body"));
        }
        let check = |what, range: &Range<usize>, holds: &dyn Fn(&[u8]) -> bool| match body.get(range.clone())
        {
            Some(text) if holds(text) => Ok((range.start as u32, range.end as u32)),
            _ => Err(Malformed::Offset { what, start: range.start, end: range.end, len: body.len() }),
        };
        let (_, prefix_end) = check("the prefix", &(0..prefix_len), &|text| {
            text == b"{" || text.starts_with(b"{") && text.ends_with(b",")
        })?;
        let meta = check("the metadata", &meta, &|text| {
            text.starts_with(b"{") && text.len() > 1 && text.ends_with(b"}")
        })?;
        let digits = check("the revision", &digits, &|text| {
            !text.is_empty() && text.len() <= 20 && text.iter().all(u8::is_ascii_digit)
        })?;
        let inside = meta.0 < digits.0 && digits.1 < meta.1 && prefix_end <= meta.0;
        let value = std::str::from_utf8(&body[digits.0 as usize..digits.1 as usize]).ok();
        let Some(revision) = value.filter(|_| inside).and_then(|value| value.parse().ok()) else {
            let (start, end) = (digits.0 as usize, digits.1 as usize);
            return Err(Malformed::Offset { what: "the revision", start, end, len: body.len() });
        };
        let body_len = body.len() as u32;
        let body = String::from_utf8(body).map_err(|_| Malformed::Encoding)?;
        Ok(Object {
            revision,
            text: [&*body, BETWEEN, parts.namespace, slash, parts.name, parts.uid].concat().into(),
            pairs,
            body_len,
            prefix_len: prefix_end,
            meta,
            digits,
            key_len,
            namespace_len,
            labels_len,
            filled: parts.filled,
        })
    }

    /// The revision of the write that made this version.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// `namespace/name`, or `name` where there is no namespace: unique in its kind, and the order of lists.
    pub fn key(&self) -> &str {
        &self.names()[..self.key_len as usize]
    }

    /// The key and the uid.
    fn names(&self) -> &str {
        &self.text[self.body_len as usize + BETWEEN.len()..]
    }

    /// The namespace; empty for cluster-scoped kinds.
    pub fn namespace(&self) -> &str {
        &self.names()[..self.namespace_len as usize]
    }

    /// The name.
    pub fn name(&self) -> &str {
        let start = if self.namespace_len == 0 { 0 } else { self.namespace_len + 1 };
        &self.names()[start as usize..self.key_len as usize]
    }

    /// The uid.
    pub fn uid(&self) -> &str {
        &self.names()[self.key_len as usize..]
    }

    /// The labels, sorted by key.
    pub fn labels(&self) -> &[Pair] {
        &self.pairs[..self.labels_len as usize]
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        find(self.labels(), key)
    }

    /// The values of selectable fields, sorted by path.
    pub fn fields(&self) -> &[Pair] {
        &self.pairs[self.labels_len as usize..]
    }

    /// The value of a selectable field.
    pub fn field(&self, path: &str) -> Option<&str> {
        find(self.fields(), path)
    }

    /// The JSON that is served.
    pub fn body(&self) -> &[u8] {
        &self.text.as_bytes()[..self.body_len as usize]
    }

    /// Whether the body shows more than was written, as where defaults were filled in afterwards. Writing what it
    /// shows is then a change.
    pub fn filled(&self) -> bool {
        self.filled
    }

    /// The body and after it `,{`, so that a list can take an item together with what stands before the next.
    pub fn body_between(&self) -> &[u8] {
        &self.text.as_bytes()[..self.body_len as usize + BETWEEN.len()]
    }

    /// What follows `{` where the object is an item of a list: of a built-in kind the body without its `kind` and
    /// `apiVersion`.
    pub fn item(&self) -> &[u8] {
        &self.body()[self.prefix_len as usize..]
    }

    /// The value of `metadata`.
    pub fn metadata(&self) -> &[u8] {
        &self.body()[self.meta.0 as usize..self.meta.1 as usize]
    }

    /// Where things are in the body.
    pub fn offsets(&self) -> Offsets {
        let range = |(start, end): (u32, u32)| start as usize..end as usize;
        Offsets { prefix_len: self.prefix_len as usize, meta: range(self.meta), revision: range(self.digits) }
    }

    /// The body before and after the digits of its revision: with other digits in between it is the same state
    /// under another revision, and nothing was copied.
    pub fn around_revision(&self) -> (&[u8], &[u8]) {
        (&self.body()[..self.digits.0 as usize], &self.body()[self.digits.1 as usize..])
    }

    /// The same state under another revision, as `DELETED` events carry it.
    pub fn with_revision(&self, revision: u64) -> Object {
        let digits = revision.to_string();
        let (start, end) = self.digits;
        let text = [&self.text[..start as usize], &digits, &self.text[end as usize..]].concat();
        let moved = |at: u32| at - (end - start) + digits.len() as u32;
        Object {
            revision,
            text: text.into(),
            pairs: self.pairs.clone(),
            body_len: moved(self.body_len),
            meta: (self.meta.0, moved(self.meta.1)),
            digits: (start, moved(end)),
            ..*self
        }
    }

    /// Shares the pairs with those of the other stored objects.
    pub(super) fn intern(&mut self, interner: &mut Interner) {
        for pair in &mut self.pairs {
            interner.intern(pair);
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} {}", self.key(), self.revision, String::from_utf8_lossy(self.body()))
    }
}

/// Two objects are equal when they would be served and written over alike.
impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        self.revision == other.revision
            && self.text == other.text
            && self.body_len == other.body_len
            && self.offsets() == other.offsets()
            && self.key_len == other.key_len
            && self.labels() == other.labels()
            && self.fields() == other.fields()
            && self.filled == other.filled
    }
}

impl Entry for Arc<Object> {
    type Key = str;
    fn key(&self) -> &str {
        Object::key(self)
    }
}

impl Item for Arc<Object> {
    type Fence = Arc<str>;
    fn fence(&self) -> Arc<str> {
        Object::key(self).into()
    }
}

fn find<'a>(pairs: &'a [Pair], key: &str) -> Option<&'a str> {
    pairs.iter().find(|pair| pair.key() == key).map(Pair::value)
}
