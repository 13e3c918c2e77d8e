//! From when to when a report was recorded, by its first and last event. The session may have been longer: a capture
//! that begins late or ends early leaves no trace of that.

use super::Trace;
use crate::export::ExportError;
use crate::tables::{
    GENERIC_EVENTS, GPU_METRICS, GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, MPI_COLLECTIVES, MPI_OTHER, MPI_P2P,
    MPI_START_WAIT, NET_IB_SWITCH_METRIC, NET_NIC_METRIC, NVTX_EVENTS, OSRT_API, RUNTIME, TableSpec, UCP,
    UCP_PROGRESS, UCP_SUBMIT,
};

/// The tables whose events show it.
pub const TIMED: [&TableSpec; 18] = [
    &KERNEL,
    &MEMCPY,
    &MEMSET,
    &GRAPH_TRACE,
    &RUNTIME,
    &NVTX_EVENTS,
    &OSRT_API,
    &MPI_P2P,
    &MPI_COLLECTIVES,
    &MPI_START_WAIT,
    &MPI_OTHER,
    &UCP,
    &UCP_SUBMIT,
    &UCP_PROGRESS,
    &GPU_METRICS,
    &GENERIC_EVENTS,
    &NET_NIC_METRIC,
    &NET_IB_SWITCH_METRIC,
];

impl Trace {
    /// From the first to the last event of any kind, whatever a filter leaves. A table that cannot be read is
    /// skipped here: it is an error for whoever needs it.
    pub fn recorded(&self) -> Option<(i64, i64)> {
        *self.recorded.get_or_init(|| {
            let spans = TIMED.into_iter().filter_map(|spec| self.span_of(spec).ok().flatten());
            spans.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
        })
    }

    /// Whether somebody asked for it before.
    pub fn knows_recorded(&self) -> bool {
        self.recorded.get().is_some()
    }

    fn span_of(&self, spec: &'static TableSpec) -> Result<Option<(i64, i64)>, ExportError> {
        let has = |name: &str| spec.columns.iter().any(|column| column.name == name);
        let times: &[&str] = if has("start") { &["start", "end"] } else { &["timestamp"] };
        let Some(rows) = self.export().columns(spec, times)? else { return Ok(None) };
        let starts = rows.ints(times[0])?;
        let ends = if times.len() > 1 { Some(rows.maybe_ints("end")?) } else { None };
        let end = |row: usize| ends.as_ref().and_then(|ends| ends.get(row)).unwrap_or(starts[row]);
        let spans = starts.iter().enumerate().map(|(row, start)| (*start, end(row)));
        // What ends before it begins is damaged, and none of its times is believed.
        let sound = spans.filter(|(start, end)| end >= start);
        Ok(sound.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))))
    }
}

#[cfg(test)]
mod tests {
    use crate::tables::{GPU_METRICS, KERNEL};
    use crate::testing::Made;

    #[test]
    fn a_report_was_recorded_from_its_first_to_its_last_event_of_any_kind() {
        let made = Made::begin();
        assert_eq!(made.string(1, "a").trace().recorded(), None);
        made.kernel((10, 20), 1, 1).call((3, 5), 3, 1, 1).range((4, 9), 3, "step");
        assert_eq!(made.trace().recorded(), Some((3, 20)));
        let sample = [("timestamp", 31i64), ("typeId", 0), ("metricId", 1), ("value", 5)];
        made.put(&GPU_METRICS, &sample.map(|(name, value)| (name, value.into())));
        assert_eq!(made.trace().recorded(), Some((3, 31)));
        made.kernel((90, 80), 2, 1);
        assert_eq!(made.trace().recorded(), Some((3, 31)), "a row that ends before it begins");
    }

    #[test]
    fn a_table_that_cannot_be_read_is_skipped() {
        let made = Made::begin();
        made.call((3, 5), 3, 1, 1);
        made.put(&KERNEL, &[("end", 1i64.into())]);
        assert_eq!(made.trace().recorded(), Some((3, 5)));
    }
}
