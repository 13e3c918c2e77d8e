//! From a suite that failed to its faulty component, in rounds of ordinary runs. Which runs a round has is decided in
//! `verdict::isolate`; here they are launched and counted, and what they show is printed.

pub(crate) mod after_run;
mod consent;
pub(crate) mod drain;
pub(crate) mod fleet;
mod fleetwide;
mod isolation_session;
pub(crate) mod messages;
mod observations;
mod preflight;
pub(crate) mod recheck;
pub(crate) mod request;
mod rounds;
mod same_hardware;

pub(crate) use isolation_session::isolate;
