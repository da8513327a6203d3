//! Custom resource definitions: structural schemas, validation, CEL rules, and the life of a definition.
