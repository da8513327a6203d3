//! The server as its clients see it, one synchronous step at a time.

mod access;
mod basics;
mod custom;
mod expressions;
mod gates;
mod hooks;
mod hostile;
mod relays;
mod watches;
mod world;
