//! Kernels on GPUs: where their time went, by name, and by name and the shape of their grids.

use super::summary::{Groups, Summary};
use super::{ArgumentSpec, Arguments, ReportSpec, Takes, prefix};
use crate::report::argument;
use nsys::export::{ExportError, Rows};
use nsys::tables::{KERNEL, NVTX_EVENTS, RUNTIME, STRING_IDS};
use nsys::trace::{Keys, Part, Trace};

pub(crate) const BASE: ArgumentSpec = argument!("base", "short names", Takes::Nothing, "name");
pub(crate) const MANGLED: ArgumentSpec = argument!(
    "mangled",
    "names as linkers know them; where a kernel has none, its whole name",
    Takes::Nothing,
    "name"
);

pub(crate) const NVTX_NAME: ArgumentSpec = argument!(
    "nvtx-name",
    "names behind the innermost push/pop range within which the kernel's call lies, as `domain:range:kernel`; \
            kernels outside all ranges keep their names",
    Takes::Nothing
);

pub(super) const CUDA_GPU_KERN_SUM: ReportSpec = ReportSpec {
    name: "cuda_gpu_kern_sum",
    title: "CUDA GPU Kernel Summary",
    about: "kernels by name; the time is from begin to end on the GPU, and kernels side by side count each",
    data: "CUDA kernel",
    arguments: &[BASE, MANGLED, NVTX_NAME],
    tables: &[&KERNEL, &STRING_IDS, &RUNTIME, &NVTX_EVENTS],
    run: |trace, arguments| {
        let Some(groups) = by_name(trace, arguments)? else { return Ok(None) };
        let title = "CUDA GPU Kernel Summary";
        Summary::new(groups).time_table("cuda_gpu_kern_sum", title, "Instances", &["Name"]).map(Some)
    },
};

/// Kernels by name, with their durations.
pub(crate) fn by_name(trace: &Trace, arguments: &Arguments) -> Result<Option<Groups>, ExportError> {
    let mut columns = vec!["start", "end", "demangledName", name_column(arguments)];
    let behind_ranges = arguments.has(NVTX_NAME.name);
    if behind_ranges {
        columns.extend(["correlationId", "globalPid"]);
    }
    let Some(rows) = trace.rows(&KERNEL, &columns)? else { return Ok(None) };
    let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
    let mut names = names(trace, &rows, arguments)?;
    if behind_ranges {
        names = prefix::put_before(trace, &rows, names)?;
    }
    let durations = trace.durations("kernels", starts, ends);
    durations.mask(starts, |row| Some(ends[row]), &mut names.of_row);
    Ok(Groups::named(names.of_row, durations.into_ns(), names.labels).any())
}

pub(super) const CUDA_GPU_KERN_GB_SUM: ReportSpec = ReportSpec {
    name: "cuda_gpu_kern_gb_sum",
    title: "CUDA GPU Kernel/Grid/Block Summary",
    about: "kernels by name, grid and block",
    data: "CUDA kernel",
    arguments: &[BASE, MANGLED],
    tables: &[&KERNEL, &STRING_IDS],
    run: |trace, arguments| {
        let shape = ["gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"];
        let mut columns = vec!["start", "end", "demangledName", name_column(arguments)];
        columns.extend(shape);
        let Some(rows) = trace.rows(&KERNEL, &columns)? else { return Ok(None) };
        let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
        let names = names(trace, &rows, arguments)?;
        let mut sides = Vec::new();
        for side in shape {
            sides.push(Part::numbers(rows.ints(side)?.iter().copied()));
        }
        let mut parts: Vec<&[u32]> = vec![&names.of_row];
        parts.extend(sides.iter().map(|side| side.of_row.as_slice()));
        let mut keys = Keys::by(&parts);
        let durations = trace.durations("kernels", starts, ends);
        durations.mask(starts, |row| Some(ends[row]), &mut keys.of_row);
        let labels = keys.groups.iter().map(|group| {
            let of = |from: usize| {
                let sizes = (from..from + 3).map(|at| sides[at].labels[group[at + 1] as usize].to_string());
                sizes.collect::<Vec<_>>().join(" ")
            };
            vec![of(0), of(3), names.labels[group[0] as usize].clone()]
        });
        let groups = Groups { labels: labels.collect(), of_row: keys.of_row, values: durations.into_ns() };
        let Some(groups) = groups.any() else { return Ok(None) };
        let (name, title) = ("cuda_gpu_kern_gb_sum", "CUDA GPU Kernel/Grid/Block Summary");
        Summary::new(groups).time_table(name, title, "Instances", &["GridXYZ", "BlockXYZ", "Name"]).map(Some)
    },
};

/// The column that holds the names that are asked for.
pub(super) fn name_column(arguments: &Arguments) -> &'static str {
    match () {
        () if arguments.has(BASE.name) => "shortName",
        () if arguments.has(MANGLED.name) => "mangledName",
        () => "demangledName",
    }
}

pub(super) fn names(trace: &Trace, rows: &Rows, arguments: &Arguments) -> Result<Part<String>, ExportError> {
    let strings = trace.strings()?;
    let whole = rows.ints("demangledName")?;
    if !arguments.has(MANGLED.name) {
        let ids = rows.ints(name_column(arguments))?;
        return Ok(Part::named(ids.iter().copied(), strings, |name| name));
    }
    let mangled = rows.maybe_ints("mangledName")?;
    let ids = whole.iter().enumerate().map(|(row, whole)| mangled.get(row).unwrap_or(*whole));
    Ok(Part::named(ids, strings, |name| name))
}
