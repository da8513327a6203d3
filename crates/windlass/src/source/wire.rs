//! The parts of lists and watches that matter, borrowed from the bytes that they came in.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Error;

/// A page of a list. Each item is read by itself.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(borrow)]
    pub(super) metadata: ListMeta<'a>,
    #[serde(borrow)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

/// Where a page is in the list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListMeta<'a> {
    #[serde(borrow)]
    pub(super) resource_version: Cow<'a, str>,
    #[serde(borrow, rename = "continue")]
    pub(super) rest: Option<Cow<'a, str>>,
}

/// One line of a watch.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// How far a watch has come.
#[derive(Deserialize)]
pub(super) struct Bookmark<'a> {
    #[serde(borrow)]
    pub(super) metadata: BookmarkMeta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BookmarkMeta<'a> {
    #[serde(borrow)]
    pub(super) resource_version: Cow<'a, str>,
    pub(super) annotations: Option<Annotations>,
}

#[derive(Default, Deserialize)]
pub(super) struct Annotations {
    #[serde(default, rename = "k8s.io/initial-events-end")]
    pub(super) initial_events_end: String,
}

/// What a group and version has.
#[derive(Deserialize)]
pub(super) struct Resources {
    pub(super) resources: Vec<Resource>,
}

#[derive(Deserialize)]
pub(super) struct Resource {
    pub(super) name: String,
}

pub(super) fn read_json<'a, T: Deserialize<'a>>(json: &'a [u8], what: &'static str) -> Result<T, Error> {
    serde_json::from_slice(json).map_err(|error| Error::Malformed { what, error })
}

pub(super) fn version(text: &str, what: &'static str) -> Result<u64, Error> {
    text.parse().map_err(|error| Error::Malformed { what, error: serde::de::Error::custom(error) })
}
