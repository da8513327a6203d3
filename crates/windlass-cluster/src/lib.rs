//! The controllers that Kubernetes ships with, each a pure keyed step.
