//! Suites, inventories and baselines: read, checked, with every error in its place.

pub mod baseline;
pub mod bounds;
pub mod diagnostic;
pub mod envlint;
pub mod facts;
pub mod form;
pub mod hardware_limits;
pub mod inventory;
pub mod schema;
mod schema_definitions;
#[cfg(test)]
mod schema_tests;
pub mod suite;
pub mod toml_reader;
