//! What the type table cannot say of the built-in kinds: defaults, preparation, validation.
