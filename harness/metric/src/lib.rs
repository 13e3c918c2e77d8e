//! What every number is: a name, dimensions, a value and its unit; what is found beside numbers; and figures of rows of
//! values. It reads nothing, and knows neither a log nor a report.

pub mod finding;
pub mod lacks;
mod metric;
pub mod op;
pub mod quantile;
pub mod slope;
mod training;
pub mod unit;
pub mod warmup;

pub use metric::{Blames, Dim, DimValue, Dims, Metric, MetricSpec, Metrics, Query};
pub use training::TrainingFacts;
