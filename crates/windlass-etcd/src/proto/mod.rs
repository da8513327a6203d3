//! The messages of etcd's `rpc.proto`, as far as they are used. Numbers are those of the file; names are ours.

pub mod auth;
pub mod cluster;
pub mod kv;
pub mod maintenance;
