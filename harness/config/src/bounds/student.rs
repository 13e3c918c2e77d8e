//! Quantiles of Student's distribution, far out in its tail.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Above so many degrees of freedom it is the normal distribution.
const AS_GOOD_AS_NORMAL: f64 = 1e5;

/// What a number exceeds with this probability. Infinite where there is no freedom: nothing is known of the spread.
pub(super) fn upper_quantile(probability: f64, freedom: f64) -> f64 {
    if freedom.is_nan() || freedom <= 0.0 {
        return f64::INFINITY;
    }
    // The lower tail is where a small probability keeps its digits; both are symmetric.
    if freedom > AS_GOOD_AS_NORMAL {
        return -Normal::standard().inverse_cdf(probability);
    }
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(student) => -student.inverse_cdf(probability),
        Err(_) => f64::INFINITY,
    }
}
