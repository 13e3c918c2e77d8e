//! Calls of CUDA: where the threads' time went, and each call.

use super::ReportSpec;
use super::summary::{Groups, Summary};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{RUNTIME, STRING_IDS, THREAD_NAMES};
use nsys::trace::{Part, Trace, pid_of, tid_of};
use std::collections::HashMap;

pub(super) const CUDA_API_SUM: ReportSpec = ReportSpec {
    name: "cuda_api_sum",
    title: "CUDA API Summary",
    about: "calls of the CUDA runtime and driver by name, without a version of four digits at its end",
    data: "CUDA trace",
    arguments: &[],
    tables: &[&RUNTIME, &STRING_IDS],
    run: |trace, _| {
        let Some(groups) = calls(trace)? else { return Ok(None) };
        Summary::new(groups).time_table("cuda_api_sum", "CUDA API Summary", "Num Calls", &["Name"]).map(Some)
    },
};

/// Calls by name, with their durations.
pub(crate) fn calls(trace: &Trace) -> Result<Option<Groups>, ExportError> {
    let Some(rows) = trace.rows(&RUNTIME, &["start", "end", "nameId"])? else { return Ok(None) };
    let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
    let mut names = Part::named(rows.ints("nameId")?.iter().copied(), trace.strings()?, api_name);
    let durations = trace.durations("CUDA calls", starts, ends);
    durations.mask(starts, |row| Some(ends[row]), &mut names.of_row);
    Ok(Groups::named(names.of_row, durations.into_ns(), names.labels).any())
}

/// Without `_v` and four digits; a longer number belongs to the name.
pub(crate) fn api_name(name: &str) -> &str {
    let short = name.len().checked_sub(6).filter(|at| name.is_char_boundary(*at)).map(|at| name.split_at(at));
    match short {
        Some((short, version)) if is_version(version) => short,
        _ => name,
    }
}

fn is_version(text: &str) -> bool {
    text.strip_prefix("_v").is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
}

pub(super) const CUDA_API_TRACE: ReportSpec = ReportSpec {
    name: "cuda_api_trace",
    title: "CUDA API Trace",
    about: "each call of the CUDA runtime and driver, in the order of their beginnings",
    data: "CUDA trace",
    arguments: &[],
    tables: &[&RUNTIME, &STRING_IDS, &THREAD_NAMES],
    run: |trace, _| {
        let columns = ["start", "end", "nameId", "globalTid", "correlationId", "returnValue"];
        let Some(rows) = trace.rows(&RUNTIME, &columns)? else { return Ok(None) };
        let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
        let durations = trace.durations("CUDA calls", starts, ends);
        let mut order: Vec<usize> = (0..rows.len()).filter(|row| ends[*row] >= starts[*row]).collect();
        order.sort_by_key(|row| (starts[*row], ends[*row], *row));
        if order.is_empty() {
            return Ok(None);
        }
        let strings = trace.strings()?;
        let names = Part::named(rows.ints("nameId")?.iter().copied(), strings, api_name);
        let (tids, ids) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("correlationId")?);
        let results = rows.maybe_ints("returnValue")?;
        // Threads as they are called, and how the machine ranks them; a thread may have been named more than once.
        let mut threads: HashMap<i64, (Option<i64>, String)> = HashMap::new();
        if let Some(named) = trace.export().columns(&THREAD_NAMES, &["nameId", "priority", "globalTid"])? {
            let (names, ranks) = (named.ints("nameId")?, named.maybe_ints("priority")?);
            for (row, tid) in named.maybe_ints("globalTid")?.iter().enumerate() {
                if let Some(tid) = tid {
                    threads.insert(tid, (ranks.get(row), strings.render(names[row]).into_owned()));
                }
            }
        }
        let plain = Quantity::Plain;
        let of =
            |value: &dyn Fn(usize) -> Option<i64>| order.iter().map(|row| value(*row)).collect::<Vec<_>>();
        let thread = |row: usize| tids.get(row).and_then(|tid| threads.get(&tid));
        let columns = vec![
            Column::integers("Start", Quantity::Nanoseconds, order.iter().map(|row| starts[*row])),
            Column::integers(
                "Duration",
                Quantity::Nanoseconds,
                order.iter().map(|row| durations.ns()[*row] as i64),
            ),
            Column::texts("Name", order.iter().map(|row| names.labels[names.of_row[*row] as usize].as_str())),
            Column::maybe_integers("Result", plain, of(&|row| results.get(row))),
            Column::maybe_integers("CorrID", plain, of(&|row| ids.get(row))),
            Column::maybe_integers("Pid", plain, of(&|row| tids.get(row).map(pid_of))),
            Column::maybe_integers("Tid", plain, of(&|row| tids.get(row).map(tid_of))),
            Column::maybe_integers("T-Pri", plain, of(&|row| thread(row)?.0)),
            Column::maybe_texts(
                "Thread Name",
                order.iter().map(|row| thread(*row).map(|(_, name)| name.as_str())),
            ),
        ];
        Ok(Some(ResultTable::new("cuda_api_trace", "CUDA API Trace", columns)))
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_four_digits_is_no_part_of_a_name() {
        for (whole, short) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaGraphLaunch_v10000", "cudaGraphLaunch_v10000"),
            ("cuModuleGetLoadingMode", "cuModuleGetLoadingMode"),
            ("_v3020", ""),
            ("x_v302", "x_v302"),
            ("x_v30a0", "x_v30a0"),
            ("ÄÖÜß", "ÄÖÜß"),
        ] {
            assert_eq!(api_name(whole), short);
        }
    }
}
