//! What records of running jobs show over time, in bounded memory: ranks that come last, and bandwidth that sinks. Nothing
//! here reads a file or asks a clock; the time is that of the records.

mod alignment;
mod attribution;
mod communicator;
mod finding;
mod observer;
mod separate;
mod sequential;
mod state;
#[cfg(test)]
mod tests;

pub use finding::{Event, Finding, FindingKind, Process};
pub use observer::Coverage;
pub use state::Observer;
