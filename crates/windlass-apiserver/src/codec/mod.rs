//! Bodies to canonical trees and back: JSON, YAML and protobuf, by the type table.
