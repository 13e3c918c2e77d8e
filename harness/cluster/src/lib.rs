//! Everything that touches nodes: reach, launch, run, collect, probe, clean, drain, discover.

pub mod clean;
pub mod collect;
pub mod discover;
pub mod drain;
pub mod field_kit;
pub mod interrupt;
pub mod launch;
pub mod probe;
pub mod reach;
pub mod run;
