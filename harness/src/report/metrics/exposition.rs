//! The two text formats of metrics: Prometheus' own 0.0.4, which node_exporter's textfile collector reads, and OpenMetrics
//! 1.0. Neither has time stamps of samples: the collector refuses them.

use super::{COMMON_LABELS, FAMILIES, Family, label};
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
        head(&mut text, family, form);
        for (labels, value) in &samples.0 {
            let names = COMMON_LABELS.iter().chain(family.labels);
            let pairs = names.zip(common.iter().chain(labels));
            let pairs: Vec<String> =
                pairs.map(|(name, text)| format!("{name}=\"{}\"", escaped(text))).collect();
            // Infallible: writing to a string.
            let _ = writeln!(text, "{}{{{}}} {}", family.name, pairs.join(","), number(*value));
        }
    }
    if form == Form::OpenMetrics {
        text.push_str("# EOF\n");
    }
    Ok(text.into_bytes())
}

fn head(text: &mut String, family: &Family, form: Form) {
    // In OpenMetrics what only informs is a type, and its suffix is no part of the family's name.
    let info = family.name.strip_suffix("_info").filter(|_| form == Form::OpenMetrics);
    let (name, kind) = info.map_or((family.name, "gauge"), |name| (name, "info"));
    let _ = writeln!(text, "# HELP {name} {}.\n# TYPE {name} {kind}", family.about);
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
