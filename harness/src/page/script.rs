//! The scripts and the style that every page holds, in the order in which they build upon each other.

use std::sync::LazyLock;

/// Apache ECharts as it was published; see `echarts/README.md`.
pub(super) const LIBRARY: &str = include_str!("echarts/echarts.min.js");

/// The licences that the library is under, as they came with it.
pub(super) const LICENCES: &[(&str, &str)] = &[
    ("Apache ECharts: notice", include_str!("echarts/NOTICE")),
    ("Apache ECharts: licence", include_str!("echarts/LICENSE")),
    ("d3, parts of which are in Apache ECharts", include_str!("echarts/LICENSE-d3")),
    ("zrender, which is in Apache ECharts", include_str!("echarts/LICENSE-zrender")),
];

pub(super) const STYLE: &str = include_str!("style/page.css");

/// Of the page of a run.
pub(super) const RUN_STYLE: &str = concat!(include_str!("style/page.css"), include_str!("style/run.css"));

/// Of pages of many runs.
pub(super) const SITE_STYLE: &str =
    concat!(include_str!("style/page.css"), include_str!("style/run.css"), include_str!("style/site.css"));

/// Of pages with charts and tables. Add one by its file and its line here.
const OF_A_PAGE: &[&str] = &[
    include_str!("script/element.js"),
    include_str!("script/numbers.js"),
    include_str!("script/theme.js"),
    include_str!("script/ranks.js"),
    include_str!("script/table.js"),
    include_str!("script/colours.js"),
    include_str!("script/axes.js"),
    include_str!("script/figure.js"),
    include_str!("script/heatmap.js"),
    include_str!("script/lines.js"),
    include_str!("script/histogram.js"),
    include_str!("script/bars.js"),
    include_str!("script/boxes.js"),
    include_str!("script/start.js"),
];

/// Of an index of pages.
const OF_AN_INDEX: &[&str] =
    &[include_str!("script/element.js"), include_str!("script/theme.js"), include_str!("script/index.js")];

/// Of the page of a run.
const OF_A_RUN: &[&str] =
    &[include_str!("script/element.js"), include_str!("script/theme.js"), include_str!("script/run.js")];

/// Of the page of a run that goes on, beside those of a run.
const OF_A_LIVE_RUN: &[&str] = &[include_str!("script/live.js")];

pub(super) static PAGE: LazyLock<String> = LazyLock::new(|| in_own_scope(OF_A_PAGE));
pub(super) static INDEX: LazyLock<String> = LazyLock::new(|| in_own_scope(OF_AN_INDEX));
pub(super) static RUN: LazyLock<String> = LazyLock::new(|| in_own_scope(OF_A_RUN));
pub(super) static LIVE: LazyLock<String> = LazyLock::new(|| in_own_scope(OF_A_LIVE_RUN));

/// One script in a scope of its own.
fn in_own_scope(files: &[&str]) -> String {
    format!("(() => {{\n\"use strict\";\n{}}})();\n", files.concat())
}
