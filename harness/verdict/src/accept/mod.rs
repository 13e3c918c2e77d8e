//! New nodes, accepted or not: which stages a suite gives, who meets whom in them, and what their runs say of each node.
//! Pure; the runs themselves are made and kept elsewhere (`cli/accept`).
//!
//! A node is accepted only where every assertion of every stage passed for it. One that failed goes no further, and what
//! could not be told is neither.

pub mod course;
pub mod judged;
pub mod limits;
pub mod placing;
pub mod pseudonyms;
pub mod site_names;
pub mod stages;
pub mod standing;
pub mod words;

#[cfg(test)]
mod tests;
