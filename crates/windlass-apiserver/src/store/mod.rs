//! The store: one revision counter, copy-on-write trees per kind, an event log with cursors.
