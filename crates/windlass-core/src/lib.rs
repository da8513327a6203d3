//! The pure part of Windlass, shared by the API server and by the framework.
//!
//! Nothing here does IO, reads a clock or draws a random number: time and randomness come in as arguments.
