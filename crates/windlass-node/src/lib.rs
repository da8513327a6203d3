//! A Kubernetes node whose pods are processes of this machine.

pub mod folders;
pub mod image;
pub mod logs;
pub mod network;
pub mod node;
pub mod pod;
pub mod register;
pub mod serve;
pub mod site;
