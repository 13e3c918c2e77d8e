//! How long the soak of a suite is, and the suite of each of its windows.

use super::acceptance_session::AcceptanceSession;
use config::suite::{Case, Soak, Suite, Tool, Workload};
use std::collections::BTreeMap;
use verdict::accept::stages::Stage;

/// The stages with the soak as long as somebody asked for; 0 leaves it out.
pub(super) fn resize(
    mut stages: BTreeMap<Stage, Suite>,
    soak_s: Option<u32>,
) -> Result<BTreeMap<Stage, Suite>, String> {
    let Some(soak_s) = soak_s else { return Ok(stages) };
    if soak_s == 0 {
        stages.remove(&Stage::Soak);
        return Ok(stages);
    }
    let Some(suite) = stages.get_mut(&Stage::Soak) else {
        let name = stages.values().next().map_or("", |suite| suite.name.as_str());
        return Err(format!("--soak: suite `{name}` has no case with `soak`"));
    };
    for case in &mut suite.cases {
        if let Some(soak) = case.soak {
            let soak = Soak::new(soak_s, soak.window_s).map_err(|why| format!("--soak: {why}"))?;
            case.soak = Some(soak);
        }
    }
    Ok(stages)
}

/// The suite of one window, counted from 0: a load that knows what went before it.
pub(super) fn window_suite(suite: &Suite, soak: Soak, window: u32) -> Suite {
    let in_window = |case: &Case| {
        let mut case = Case { soak: None, ..case.clone() };
        if let Workload::NodeTool(tool) = &mut case.workload {
            tool.soaked_s = Some(window * soak.window_s);
            // A window that `--soak` made shorter is read as often.
            tool.sample_s = tool.sample_s.map(|sample_s| sample_s.min(soak.window_s / 10).max(1));
            if let Tool::GpuBurn { seconds, .. } = &mut tool.tool {
                *seconds = soak.window_s;
            }
        }
        case
    };
    Suite { cases: suite.cases.iter().map(in_window).collect(), ..suite.clone() }
}

impl AcceptanceSession {
    /// Of the stage that has one.
    pub(super) fn soak_of(&self, stage: Stage) -> Option<Soak> {
        let cases = &self.suites.get(&stage).filter(|_| stage == Stage::Soak)?.cases;
        cases.iter().find_map(|case| case.soak)
    }
}
