//! Acceptance of new nodes: the stages of a suite, which nodes run together in them, and the result of each node.
//! Pure; `harness/src/accept` makes and stores the runs.
//!
//! A node is accepted only where every assertion of every stage passed for it. One that failed goes no further. A narrow miss
//! of a baseline is repeated; otherwise an inconclusive node is neither accepted nor rejected.

pub mod attribution;
pub mod certificate;
pub mod judged;
pub mod limits;
mod node_ranges;
pub mod node_status;
pub mod pairing;
pub mod pseudonyms;
pub mod repeats;
pub mod schedule;
mod site_forms;
pub mod site_names;
pub mod soak;
pub mod stages;
mod words;

#[cfg(test)]
mod attribution_tests;
#[cfg(test)]
mod certificate_tests;
#[cfg(test)]
mod markdown_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod privacy_tests;
#[cfg(test)]
mod refusal_tests;
#[cfg(test)]
mod repeats_tests;
#[cfg(test)]
mod tests;
