//! Controllers on a server in this process, one module each.

mod aggregation;
mod certificates;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
mod garbagecollector;
mod job;
mod namespace;
mod node;
mod replicaset;
mod resourcequota;
mod scheduler;
mod serviceaccount;
mod statefulset;
mod volumes;
mod world;
