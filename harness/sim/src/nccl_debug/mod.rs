//! What NCCL itself writes between the lines of a program where `NCCL_DEBUG=INFO` asks for it: how its communicators
//! begin, over which network, and each call. It is rendered from the facts that the program's own output is made of;
//! reading it is the recipes' business.

mod sweep;
mod training;
mod writers;

pub use sweep::added;
pub use training::between;
