//! Bus bandwidth predicted from published figures and hardware limits, before any baseline exists.
//!
//! A fit has three parameters for each operation: how much of NVLink and of the wire a collective uses, and how long a
//! node delays it. What the figures near a key deviate by from that is added to its value; the interval is as wide as
//! the errors at node counts that were left out. Where no figures allow it there is no prediction, with the reason.

mod errors;
mod figures;
mod fit;
mod kriging;
mod limit;
mod matrix;
mod model;

pub use errors::{Errors, Summary, Tested, errors};
pub use figures::{Figure, sources};
pub use limit::Hardware;
pub use model::{Key, NoPrediction, Prediction, Reach, predict, predicted_ops};
