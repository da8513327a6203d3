//! Pods, and the pod templates inside other kinds.

pub(crate) mod conditions;
mod containers;
pub(crate) mod defaults;
mod probes;
pub(crate) mod qos;
mod resources;
pub(crate) mod update;
pub(crate) mod validate;
mod volumes;
pub(crate) mod warnings;

pub(crate) use resources::{
    STANDARD as STANDARD_RESOURCES, container_resource_name, overcommits, resource_name,
};
