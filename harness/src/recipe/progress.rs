//! The progress of a recipe on stderr: a bar at a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use recipes::recipe::of_reports::Progress;

pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(reports: usize, quiet: bool) -> Bar {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(reports as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{elapsed} {bar:30} {pos}/{len} reports, {msg} rows")
        {
            bar.set_style(style);
        }
        Bar(bar)
    }

    pub(super) fn show(&self, progress: &Progress) {
        self.0.set_message(progress.rows.to_string());
        self.0.set_position(progress.reports as u64);
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
