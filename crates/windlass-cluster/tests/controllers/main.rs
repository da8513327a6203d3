//! Controllers on a server in this process, one module each.

mod deployment;
mod replicaset;
mod world;
