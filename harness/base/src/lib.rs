//! What every crate needs: node sets, sizes, digests, texts made fit to be shown, secrets taken out.

pub mod colours;
pub mod digest;
pub mod nodeset;
pub mod redact;
pub mod size;
pub mod suggest;
pub mod text;
