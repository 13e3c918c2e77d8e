//! The manual of reports and formats, made from their declarations.

use super::request::{find_format, find_report};
use recipes::report::{self, ReportSpec, Takes};
use recipes::result_table::{FORMS, FormSpec};
use std::fmt::Write;

/// The manual of one report, or one line of each.
pub fn reports(name: Option<&str>) -> Result<String, String> {
    let mut text = String::new();
    match name {
        Some(name) => one_report(find_report(name)?, &mut text),
        None => {
            for spec in report::LIST {
                let mark = if report::DEFAULT.contains(&spec.name) { "*" } else { " " };
                let _ = writeln!(text, "{mark} {:<25}  {}", with_arguments(spec), spec.title);
            }
            let _ = writeln!(text, "\n* printed without --report; `--help-reports NAME` shows details");
        }
    }
    Ok(text)
}

/// The manual of one format, or one line of each.
pub fn formats(name: Option<&str>) -> Result<String, String> {
    let mut text = String::new();
    match name {
        Some(name) => one_format(find_format(name)?, &mut text),
        None => {
            for spec in FORMS {
                let _ = writeln!(text, "  {:<7}  {}", spec.name, spec.about);
            }
            let _ = writeln!(
                text,
                "\n`--help-formats NAME` lists the options; `.` is `column` on a terminal, else `csv`"
            );
        }
    }
    Ok(text)
}

fn with_arguments(spec: &ReportSpec) -> String {
    if spec.arguments.is_empty() { spec.name.to_owned() } else { format!("{}[:...]", spec.name) }
}

fn one_report(spec: &ReportSpec, text: &mut String) {
    let _ = writeln!(text, "{}: {}\n\n  {}", spec.name, spec.title, spec.about);
    for argument in spec.arguments {
        let name = match &argument.takes {
            Takes::Number(number) => format!("{}={number}", argument.name),
            Takes::Text(text) => format!("{}={text}", argument.name),
            Takes::Nothing => argument.name.to_string(),
            Takes::Decimal(number) => format!("{}={number}", argument.name),
            Takes::Span => format!("{}=FIRST..LAST", argument.name),
        };
        let _ = writeln!(text, "  :{name}  {}", argument.about);
    }
    let tables: Vec<&str> = spec.tables.iter().map(|table| table.name).collect();
    let _ = writeln!(text, "\n  read from: {}", tables.join(", "));
}

fn one_format(spec: &FormSpec, text: &mut String) {
    let _ = writeln!(text, "{}: {}", spec.name, spec.about);
    if !spec.options.is_empty() {
        text.push('\n');
    }
    for option in spec.options {
        let _ = writeln!(text, "  :{:<8}  {}", option.name, option.about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_every_report_and_every_format() {
        let all = reports(None).expect("all");
        for spec in report::LIST {
            assert!(all.contains(spec.name) && all.contains(spec.title), "{}", spec.name);
            assert!(reports(Some(spec.name)).expect("one").contains(spec.about), "{}", spec.name);
        }
        let all = formats(None).expect("all");
        for spec in FORMS {
            assert!(all.contains(spec.about), "{}", spec.name);
            let one = formats(Some(spec.name)).expect("one");
            assert!(spec.options.iter().all(|option| one.contains(option.about)), "{one}");
        }
        assert!(reports(Some("network_congestion")).expect("one").contains(":ticks_threshold=10000"));
    }

    #[test]
    fn an_unknown_name_gets_a_suggestion() {
        assert!(reports(Some("nvtx_smu")).expect_err("none").contains("did you mean `nvtx_sum`?"));
        assert!(formats(Some("jsn")).expect_err("none").contains("did you mean `json`?"));
    }
}
