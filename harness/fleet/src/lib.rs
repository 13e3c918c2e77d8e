//! Checks of idle nodes over months, in bounded memory: which nodes are next under a budget, and when a part that fell is
//! an alarm. Nothing here reads a file or asks a clock; the time is that of the checks.

mod budget;
mod choice;
mod event;
mod hardware;
mod judge;
mod pool;
mod record;
mod state;
#[cfg(test)]
mod tests;
mod trend;

pub use choice::{Chosen, Reason};
pub use event::{Event, Fall};
pub use judge::{Failure, Reading};
pub use state::{Coverage, Fleet, Terms};
