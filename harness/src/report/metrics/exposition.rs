//! The two text formats of metrics: Prometheus' own 0.0.4, which node_exporter's textfile collector reads, and OpenMetrics
//! 1.0. Neither has time stamps of samples: the collector refuses them.

use super::{COMMON_LABELS, FAMILIES, label};
use crate::report::{Report, ReportError};
use std::fmt::Write;

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Prometheus,
    OpenMetrics,
}

/// For node_exporter.
pub(in crate::report) fn prometheus(report: &Report) -> Result<Vec<u8>, ReportError> {
    render(report, Form::Prometheus)
}

/// For readers of OpenMetrics.
pub(in crate::report) fn open_metrics(report: &Report) -> Result<Vec<u8>, ReportError> {
    render(report, Form::OpenMetrics)
}

fn render(report: &Report, form: Form) -> Result<Vec<u8>, ReportError> {
    let common = [label(&report.summary.inventory), label(&report.summary.suites.join("+"))];
    let mut text = String::new();
    for family in &FAMILIES {
        let samples = (family.collect)(report)?;
        if samples.0.is_empty() {
            continue;
        }
        let names: Vec<&str> = COMMON_LABELS.iter().chain(family.labels).copied().collect();
        head(&mut text, family.name, family.about, form);
        for (labels, value) in &samples.0 {
            let pairs = names.iter().copied().zip(common.iter().chain(labels).map(String::as_str));
            sample(&mut text, family.name, pairs, *value);
        }
    }
    if form == Form::OpenMetrics {
        text.push_str("# EOF\n");
    }
    Ok(text.into_bytes())
}

/// Metrics of one name that are not of a run.
pub(crate) struct Gauges {
    /// Such as `harness_observe_findings`.
    pub name: &'static str,
    /// What the value is.
    pub about: &'static str,
    /// Labels with their texts, and the value.
    pub samples: Vec<(Labels, f64)>,
}

/// Names, and texts that may be foreign.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// For node_exporter.
pub(crate) fn expose(families: &[Gauges]) -> Vec<u8> {
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        head(&mut text, family.name, family.about, Form::Prometheus);
        for (labels, value) in &family.samples {
            let labels: Vec<(&str, String)> =
                labels.iter().map(|(name, value)| (*name, label(value))).collect();
            let pairs = labels.iter().map(|(name, value)| (*name, value.as_str()));
            sample(&mut text, family.name, pairs, *value);
        }
    }
    text.into_bytes()
}

fn sample<'a>(text: &mut String, name: &str, labels: impl Iterator<Item = (&'a str, &'a str)>, value: f64) {
    let pairs: Vec<String> = labels.map(|(name, text)| format!("{name}=\"{}\"", escaped(text))).collect();
    let pairs = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
    // Infallible, here and below: writing to a string.
    let _ = writeln!(text, "{name}{pairs} {}", number(value));
}

fn head(text: &mut String, name: &str, about: &str, form: Form) {
    // In OpenMetrics what only informs is a type, and its suffix is no part of the family's name.
    let info = name.strip_suffix("_info").filter(|_| form == Form::OpenMetrics);
    let (name, kind) = info.map_or((name, "gauge"), |name| (name, "info"));
    let _ = writeln!(text, "# HELP {name} {about}.\n# TYPE {name} {kind}");
    if form == Form::OpenMetrics && name.ends_with("_seconds") {
        let _ = writeln!(text, "# UNIT {name} seconds");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Reported as _};

    #[test]
    fn a_red_run_in_both_formats() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let made = fixture::red();
        let (own, open) =
            (text(prometheus(&made.report()).unwrap()), text(open_metrics(&made.report()).unwrap()));
        insta::assert_snapshot!(own);
        // The samples are the same.
        let samples = |text: &str| {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(samples(&own), samples(&open));
        let of_own: Vec<&str> = open.lines().filter(|line| !own.contains(line)).collect();
        insta::assert_snapshot!("only_in_open_metrics", of_own.join("\n"));
    }

    #[test]
    fn names_and_numbers_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
        let all = [1.0, 0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e21];
        assert_eq!(all.map(number), ["1", "0.1", "NaN", "+Inf", "-Inf", "1000000000000000000000"]);
    }
}
