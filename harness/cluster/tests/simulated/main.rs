//! What the crate does, on the simulated cluster.

mod beyond;
mod drain;
mod gres;
mod probe;
mod probe_messages;
