//! What every number is: a name, dimensions, a value and its unit; what is found beside numbers; and figures of rows of
//! values. It reads nothing, and knows neither a log nor a report.

pub mod finding;
pub mod lacks;
mod metric;
pub mod op;
pub mod quantile;
pub mod slope;
mod spec;
mod sweep;
mod training;
pub mod unit;
pub mod warmup;

pub use metric::{Dim, DimValue, Dims, Metric, Metrics, Query};
pub use spec::{Blames, Covers, DataCheck, Files, Limit, MetricSpec, Names, Role, RunNoise, Sizes};
pub use sweep::SweepFacts;
pub use training::TrainingFacts;
