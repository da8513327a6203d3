//! Plans, carried out on a server in the same process. What is asserted is the state of the world, and what the server was
//! asked for.

#[path = "executor/children.rs"]
mod children;
#[path = "executor/deletes.rs"]
mod deletes;
#[path = "executor/effects.rs"]
mod effects;
#[path = "executor/finalizer.rs"]
mod finalizer;
#[path = "executor/status.rs"]
mod status;
#[path = "executor/world.rs"]
mod world;
