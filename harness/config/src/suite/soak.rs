//! `soak` and `checkpoint` of a case: hours of load on each node, in windows that are judged one by one.

use super::{Placement, Tool, Workload};
use crate::toml_reader::quantity::seconds;
use crate::toml_reader::{Table, Value};
use model::artefact::JobProperties;

/// How long each node is loaded, and how long each window of it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Soak {
    /// Of all windows.
    pub total_s: u32,
    /// Of one: what is run again, at most, when the process is ended.
    pub window_s: u32,
}

const SHORTEST_WINDOW_S: u32 = 60;
const LONGEST_WINDOW_S: u32 = 86_400;
const MOST_WINDOWS: u32 = 1000;

impl Soak {
    /// As many whole windows as there are; or why it is none.
    pub fn new(total_s: u32, window_s: u32) -> Result<Soak, String> {
        // What is shorter than a window is one.
        let window_s = window_s.min(total_s);
        if !(SHORTEST_WINDOW_S..=LONGEST_WINDOW_S).contains(&window_s) {
            return Err(format!("a window of a soak must last 1 min to 24 h, not: {window_s} s"));
        }
        if !total_s.is_multiple_of(window_s) {
            let whole = total_s / window_s * window_s;
            return Err(format!(
                "a soak must be whole windows of {window_s} s, not: {total_s} s; write `{whole} s`"
            ));
        }
        match total_s / window_s > MOST_WINDOWS {
            true => Err(format!(
                "a soak has at most {MOST_WINDOWS} windows, not: {}; use a longer `checkpoint`",
                total_s / window_s
            )),
            false => Ok(Soak { total_s, window_s }),
        }
    }

    /// How many windows.
    pub fn windows(&self) -> u32 {
        self.total_s / self.window_s.max(1)
    }

    /// A length as people write it, `24h` or `90 min`, in seconds; nothing for any other text.
    pub fn length_s(text: &str) -> Option<u32> {
        u32::try_from(seconds(text)?).ok()
    }
}

/// An hour is lost at most, and 24 runs are made of a day.
const USUAL_WINDOW_S: u32 = 3600;

/// What the case says, and its workload with the length of one window.
pub(super) fn read(
    table: &Table<'_>,
    workload: Option<Workload>,
    placement: Option<Placement>,
) -> (Option<Soak>, Option<Workload>) {
    let (soak, checkpoint) = (table.get("soak"), table.get("checkpoint"));
    let Some(soak) = soak else {
        if let Some(value) = checkpoint {
            value.diagnostic_with(
                "`checkpoint` needs `soak`",
                "write `soak = \"24h\"` in the case, or remove it",
            );
        }
        return (None, workload);
    };
    let total_s = length(&soak);
    let window_s = checkpoint.as_ref().map_or(Some(USUAL_WINDOW_S), length);
    let read = total_s.zip(window_s).and_then(|(total, window)| soak.parsed(Soak::new(total, window)));
    let Some(mut workload) = workload else { return (read, None) };
    let of_workload = table.get("workload").and_then(|value| value.table());
    let own_s = of_workload.as_ref().and_then(|table| table.get("seconds"));
    match (&mut workload, own_s) {
        (Workload::NodeTool(tool), None)
            if placement.is_none_or(|placement| placement == Placement::Each) =>
        {
            if let Some((of_soak, sample_s)) = read.zip(tool.sample_s) {
                let own = of_workload.as_ref().and_then(|table| table.get("sample_s"));
                refuse_samples(&of_soak, sample_s, own.as_ref().unwrap_or(&soak));
            }
            match (&mut tool.tool, read) {
                (Tool::GpuBurn { seconds, .. }, Some(read)) => *seconds = read.window_s,
                (Tool::GpuBurn { .. }, None) => {}
                _ => refuse(&soak),
            }
        }
        (Workload::NodeTool(_), Some(own)) => own.diagnostic_with(
            "`seconds` of a soak is its `checkpoint`",
            "remove it, and write `checkpoint = \"1h\"` in the case",
        ),
        _ => refuse(&soak),
    }
    (read, Some(workload))
}

/// Too few say nothing of most of a window, and of more than the reader keeps the last would be lost.
fn refuse_samples(soak: &Soak, sample_s: u32, at: &Value<'_>) {
    const FEWEST: u32 = 10;
    const MOST: u32 = 9000;
    let readings = soak.window_s.checked_div(sample_s).unwrap_or(0);
    if !(FEWEST..=MOST).contains(&readings) {
        let (least, most) = (soak.window_s.div_ceil(MOST), (soak.window_s / FEWEST).max(1));
        at.diagnostic_with(
            format!(
                "`sample_s` of a window of {} s must be {least} to {most}, not: {sample_s}",
                soak.window_s
            ),
            format!("write `sample_s = {}` in the workload", least.max(60.min(most))),
        );
    }
}

/// A window that the time limit ends shows nothing of its node.
pub(super) fn limit(table: &Table<'_>, soak: &Soak, properties: &mut JobProperties) {
    let window_s = u64::from(soak.window_s);
    let enough_s = window_s * 5 / 4 + 300;
    match table.get("limit_s") {
        None => properties.limit_s = enough_s,
        Some(value) if properties.limit_s < enough_s => value.diagnostic_with(
            format!(
                "`limit_s` of a window of {window_s} s must be at least {enough_s}, not: {}",
                properties.limit_s
            ),
            format!("write `limit_s = {enough_s}`, or remove it"),
        ),
        Some(_) => {}
    }
}

fn refuse(soak: &Value<'_>) {
    soak.diagnostic_with(
        "only `gpu-burn` on each node by itself can be a soak",
        "write `workload = { kind = \"gpu-burn\" }` and `placement = \"each\"`, or remove it",
    );
}

fn length(value: &Value<'_>) -> Option<u32> {
    let text = value.text()?;
    let read = Soak::length_s(&text);
    let why = || format!("`{}` is a length such as `24h` or `30 min`, not: {text:?}", value.key());
    value.parsed(read.ok_or_else(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Suite;
    use recipes::catalogue::Catalogue;

    fn read(case: &str) -> Result<Suite, Vec<String>> {
        let text = format!(
            "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"soak\"\nrecipes = [\"gpu_state\"]\n{case}\n"
        );
        let read = Suite::read(&text, "suites/mine.toml", &Catalogue::built_in());
        read.map_err(|diagnostics| diagnostics.0.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_soak_is_read_with_windows_of_an_hour_or_as_long_as_it_says() {
        let burn = "workload = { kind = \"gpu-burn\" }";
        for (keys, total_s, window_s, windows) in [
            ("soak = \"24h\"", 86_400, 3600, 24),
            ("soak = \"72h\"\ncheckpoint = \"30 min\"", 259_200, 1800, 144),
            ("soak = \"30m\"", 1800, 1800, 1),
        ] {
            let suite = read(&format!("{burn}\n{keys}")).expect(keys);
            let soak = suite.cases[0].soak.expect("a soak");
            assert_eq!((soak.total_s, soak.window_s, soak.windows()), (total_s, window_s, windows));
            let Workload::NodeTool(tool) = &suite.cases[0].workload else { panic!("{keys}") };
            assert_eq!(tool.tool.seconds(), Some(window_s));
        }
    }

    #[test]
    fn messages() {
        let burn = "workload = { kind = \"gpu-burn\" }";
        let odd = [
            format!("{burn}\nsoak = \"0h\""),
            format!("{burn}\nsoak = \"24h\"\nlimit_s = 900"),
            format!("{burn}\nsoak = 24"),
            format!("{burn}\nsoak = \"30 s\""),
            format!("{burn}\nsoak = \"72h\"\ncheckpoint = \"25h\""),
            format!("{burn}\nsoak = \"90 min\""),
            format!("{burn}\nsoak = \"72h\"\ncheckpoint = \"1 min\""),
            format!("{burn}\ncheckpoint = \"1h\""),
            "workload = { kind = \"gpu-burn\", seconds = 60 }\nsoak = \"1h\"".to_owned(),
            "workload = { kind = \"gpu-burn\", sample_s = 0 }\nsoak = \"1h\"".to_owned(),
            "workload = { kind = \"gpu-burn\", sample_s = 5 }\nsoak = \"24h\"\ncheckpoint = \"24h\"".to_owned(),
            format!("{burn}\nsoak = \"24h\"\nlimit_s = 3601"),
            "workload = { kind = \"stream\" }\nsoak = \"1h\"".to_owned(),
            "workload = { kind = \"nccl-tests\", op = \"all_reduce\", from = \"8\", to = \"8\" }\nplacement = \"all\"\nsoak = \"1h\""
                .to_owned(),
        ];
        let lines: Vec<String> = odd.iter().flat_map(|case| read(case).expect_err(case)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
