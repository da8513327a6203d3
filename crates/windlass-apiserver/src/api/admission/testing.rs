//! A world for the tests of plugins: ConfigMaps in a namespace, and a user who may what is listed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Admission, Judge, Operation};
use crate::api::authorize::{Asked, Attributes};
use crate::api::server::Ids;
use crate::kinds::{Context, Noted, Nothing};
use crate::schema;
use crate::status::Result;

/// What the user may: `verb resource` or `verb resource/subresource`.
pub(super) struct Allowed<'a>(pub &'a [&'a str]);

impl Judge for Allowed<'_> {
    fn may(&self, attributes: &Attributes<'_>) -> std::result::Result<(), String> {
        let Asked::Resource { resource, subresource, .. } = &attributes.asked else {
            return Err(String::new());
        };
        let slash = if subresource.is_empty() { "" } else { "/" };
        let asked = format!("{} {resource}{slash}{subresource}", attributes.verb);
        if self.0.contains(&asked.as_str()) { Ok(()) } else { Err(String::new()) }
    }

    fn resources(&self, _: &str, _: &str, kind: &str) -> Vec<(String, bool)> {
        vec![(format!("{}s", kind.to_lowercase()), true)]
    }
}

struct Drawing;

impl Ids for Drawing {
    fn next(&mut self) -> u64 {
        unreachable!("nothing is drawn")
    }
}

/// Asks a plugin about a ConfigMap.
pub(super) fn admit(
    old: Option<&Value>,
    object: &Value,
    judge: &dyn Judge,
    validate: fn(&Value, &mut Admission<'_>) -> Result<()>,
) -> Result<()> {
    let context = Context {
        now: jiff::Timestamp::UNIX_EPOCH,
        subresource: "",
        group: "",
        version: "v1",
        kind: "ConfigMap",
        types: schema::builtin(),
        root: schema::builtin().id("io.k8s.api.core.v1.ConfigMap").expect("in the table"),
        namespaced: true,
        resource: "configmaps",
        user: "ann",
        groups: &[],
        uid: "",
        extra: &BTreeMap::new(),
        dry_run: false,
        noted: Noted::default(),
        old: None,
        world: &Nothing,
    };
    let operation = if old.is_none() { Operation::Create } else { Operation::Update };
    let mut admission = Admission {
        context,
        operation,
        name: if old.is_none() { "" } else { "a" },
        namespace: "default",
        old,
        judge,
        ids: &mut Drawing,
        warnings: &mut Vec::new(),
    };
    validate(object, &mut admission)
}
