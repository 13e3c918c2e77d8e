//! The script of a job, the profiler around it, and windows of steps.

pub mod flight_recorder;
pub mod inspector;
pub mod profile;
pub mod ras;
pub mod script;
pub mod window;
