//! A Kubernetes node whose pods are processes of this machine.
