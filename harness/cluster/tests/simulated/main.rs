//! What the crate does, on the simulated cluster.

mod drain;
mod probe;
mod probe_messages;
