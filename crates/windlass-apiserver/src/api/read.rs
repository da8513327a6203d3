//! Reading one object, and answering with one.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, json};

use super::list::{parse_revision, too_large_revision};
use super::negotiate::{Shape, not_acceptable};
use super::object::load;
use super::registry::Resource;
use super::response::{Body, Response};
use super::server::{Answer, Call, Server};
use super::shape::{self, Include, Tabulator};
use crate::codec::Format;
use crate::status::{Result, Status};
use crate::store::Object;

impl Server {
    pub(super) fn get(&mut self, call: &mut Call<'_>) -> Result<Answer> {
        let resource = call.target.resource.clone();
        let wanted = parse_revision(call.query.text("resourceVersion")).map_err(|status| {
            // A list refuses this as a bad request; a get lets the storage's own error out.
            let message = status.message.trim_start_matches("invalid resource version: ").to_owned();
            Status::new(500, "", message)
        })?;
        let current = self.store.revision();
        if let Some(revision) = wanted.filter(|revision| *revision > current) {
            if call.waited || !resource.is_cached() {
                return Err(too_large_revision(&resource, revision, current));
            }
            return Ok(Answer::Wait(revision));
        }
        let target = call.target;
        let object =
            self.store.get(&resource.storage, &target.namespace, &target.name).cloned().ok_or_else(|| {
                // These are computed upstream, by code that names them in its own way.
                let plural = match &*resource.plural {
                    "componentstatuses" => "componentstatus",
                    plural => plural,
                };
                Status::not_found(&resource.group, plural, &target.name)
            })?;
        self.foresee(call, &resource, [&object])?;
        self.respond(call, &resource, &object, 200).map(Answer::Done)
    }

    /// An object, in the shape and format the client asked for.
    pub(super) fn respond(
        &self,
        call: &Call<'_>,
        resource: &Arc<Resource>,
        object: &Arc<Object>,
        code: u16,
    ) -> Result<Response> {
        let output = &call.output;
        let plain = output.format == Format::Json && !output.pretty;
        let mut bytes = Vec::new();
        match output.shape {
            Shape::Object if plain => {
                bytes.reserve_exact(object.body().len() + 1);
                shape::write_object(&mut bytes, resource, object);
            }
            Shape::Partial(version) if plain => shape::write_partial(&mut bytes, resource, version, object),
            Shape::PartialList(_) => return Err(not_acceptable()),
            Shape::Object => {
                let tree = shape::object_tree(resource, object);
                return Ok(Response::tree(code, output, &tree));
            }
            Shape::Partial(version) => {
                let tree = shape::partial_tree(resource, version, object);
                return Ok(Response::tree(code, output, &tree));
            }
            Shape::Table(version) => {
                let include = Include::parse(call)?;
                let mut metadata = Map::new();
                metadata.insert("resourceVersion".into(), json!(object.revision().to_string()));
                let tabulator = Tabulator { resource: resource.clone(), version, include };
                let tree = tabulator.table(metadata, &load(resource, object), true, call.now);
                return Ok(Response::tree(code, output, &tree));
            }
        }
        bytes.push(b'\n');
        Ok(Response::new(code, output.content_type(), Body::Full(Bytes::from(bytes))))
    }
}
