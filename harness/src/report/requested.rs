//! Reports that a run writes where a flag of its user says, and nowhere else. A new one is a file in this folder and its
//! entry here: command line, help and manual follow.

use super::{Report, ReportError, ctrf, markdown, metrics};
use std::path::PathBuf;

/// A format that has a flag of its own.
#[derive(Debug)]
pub(crate) struct ReportFormat {
    /// The flag, without its dashes.
    pub flag: &'static str,
    /// What it writes, for the help.
    pub about: &'static str,
    /// How each such file begins. One of an earlier run is removed before anything is launched; `None` where it stays until
    /// it is replaced.
    pub begins: Option<&'static str>,
    /// Gives the bytes of the file.
    pub render: fn(&Report) -> Result<Vec<u8>, ReportError>,
}

/// Every format that can be asked for.
pub(crate) const FORMATS: &[ReportFormat] = &[
    // For people who look at a pull request or a job's page.
    ReportFormat {
        flag: "markdown",
        about: "Write a summary in Markdown here",
        begins: Some(markdown::BEGINS),
        render: |report| Ok(markdown::markdown(report).into_bytes()),
    },
    // For dashboards of tests that read no JUnit.
    ReportFormat {
        flag: "ctrf",
        about: "Write the results in the Common Test Report Format here",
        begins: Some(ctrf::BEGINS),
        render: ctrf::ctrf,
    },
    // For node_exporter's textfile collector. The last run stays there while the next one works: its age is a metric.
    ReportFormat {
        flag: "prometheus",
        about: "Write metrics of the run here, for node_exporter's textfile collector: a name that ends in `.prom`",
        begins: None,
        render: metrics::prometheus,
    },
    ReportFormat {
        flag: "openmetrics",
        about: "Write the same metrics as OpenMetrics here",
        begins: None,
        render: metrics::open_metrics,
    },
];

/// A report that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct RequestedReport {
    pub format: &'static ReportFormat,
    pub path: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Reported as _};

    #[test]
    fn each_begins_as_it_says_and_is_marked_simulated() {
        for format in FORMATS {
            for made in [fixture::red(), fixture::green()] {
                let text = String::from_utf8((format.render)(&made.report()).unwrap()).unwrap();
                assert!(text.starts_with(format.begins.unwrap_or_default()), "{}: {text}", format.flag);
                assert!(text.to_lowercase().contains("simulated"), "{}: {text}", format.flag);
            }
        }
    }
}
