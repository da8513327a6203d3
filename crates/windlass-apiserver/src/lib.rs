//! A Kubernetes API server that lives in your process.
