//! The names of all assertions of a plan, for a person, for nextest and for programs.
//! Which assertions were selected is decided in the plan.

use model::artefact::Plan;
use serde_json::json;

/// How the names of assertions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFormat {
    /// The default.
    Pretty,
    /// `--format terse`, or `--quiet`.
    Terse,
    /// `--format json`.
    Json,
}

/// One line per assertion and nothing else, so that a plan without any gives no output.
///
/// `Pretty` and `Terse` are nextest's `name: test`. `Json` is one object per line with `name`, `suite`, `case`,
/// `metric`, `unit`, `nodes`, `node`, `part` and `bound`; `node` and `part` are null where there is none.
pub fn list(plan: &Plan, format: ListFormat) -> String {
    let mut text = String::new();
    for case in &plan.cases {
        for assertion in &case.assertions {
            match format {
                ListFormat::Pretty | ListFormat::Terse => {
                    text.push_str(&base::text::show(&assertion.name));
                    text.push_str(": test");
                }
                ListFormat::Json => text.push_str(&super::json::line(&json!({
                    "name": assertion.name,
                    "suite": case.suite,
                    "case": case.name,
                    "metric": assertion.metric,
                    "unit": assertion.unit,
                    "nodes": assertion.nodes,
                    "node": assertion.node,
                    "part": assertion.part,
                    "bound": assertion.bound,
                }))),
            }
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_list_is_in_the_format_of_nextest() {
        insta::assert_snapshot!(list(&fixture::plan(), ListFormat::Terse), @r#"
        nccl-p5::nics::rate@p5-001/rdmap79s0: test
        nccl-p5::nics::rate@p5-001/rdmap80s0: test
        "#);
        assert_eq!(list(&fixture::plan(), ListFormat::Pretty), list(&fixture::plan(), ListFormat::Terse));
    }

    #[test]
    fn a_list_for_programs_is_one_object_per_line() {
        insta::assert_snapshot!(list(&fixture::plan(), ListFormat::Json), @r#"
        {"name":"nccl-p5::nics::rate@p5-001/rdmap79s0","suite":"nccl-p5","case":"nics","metric":"nic.rate","unit":"GB/s","nodes":"p5-001","node":"p5-001","part":"rdmap79s0","bound":{"at_least":11.0}}
        {"name":"nccl-p5::nics::rate@p5-001/rdmap80s0","suite":"nccl-p5","case":"nics","metric":"nic.rate","unit":"GB/s","nodes":"p5-001","node":"p5-001","part":"rdmap80s0","bound":{"at_least":11.0}}
        "#);
    }

    #[test]
    fn a_list_of_nothing_is_nothing() {
        let plan = Plan { cases: vec![], ..fixture::plan() };
        for format in [ListFormat::Pretty, ListFormat::Terse, ListFormat::Json] {
            assert_eq!(list(&plan, format), "");
        }
    }
}
