//! Kernels, memory operations and calls of CUDA in one table.

use super::api::api_name;
use super::kernels::{BASE, MANGLED, name_column, names};
use super::summary::{Groups, Summary};
use super::{Arguments, ReportSpec, memory};
use crate::result_table::ResultTable;
use nsys::export::ExportError;
use nsys::tables::{KERNEL, MEMCPY, MEMCPY_OPER, MEMSET, RUNTIME, STRING_IDS};
use nsys::trace::NO_GROUP;
use nsys::trace::{Part, Trace};

pub(super) const CUDA_GPU_SUM: ReportSpec = ReportSpec {
    name: "cuda_gpu_sum",
    title: "CUDA GPU Summary (Kernels/MemOps)",
    about: "kernels and memory operations by name; the share is of the time of both",
    data: "CUDA trace",
    arguments: &[BASE, MANGLED],
    tables: &[&KERNEL, &STRING_IDS, &MEMCPY, &MEMSET, &MEMCPY_OPER],
    run: |trace, arguments| {
        let mut all = United::default();
        all.gpu(trace, arguments)?;
        all.summary("cuda_gpu_sum", "CUDA GPU Summary (Kernels/MemOps)")
    },
};

pub(super) const CUDA_API_GPU_SUM: ReportSpec = ReportSpec {
    name: "cuda_api_gpu_sum",
    title: "CUDA Summary (API/Kernels/MemOps)",
    about: "calls of CUDA, kernels and memory operations by name; the share is of the time of all three",
    data: "CUDA trace",
    arguments: &[BASE, MANGLED],
    tables: &[&RUNTIME, &KERNEL, &STRING_IDS, &MEMCPY, &MEMSET, &MEMCPY_OPER],
    run: |trace, arguments| {
        let mut all = United::default();
        if let Some(rows) = trace.rows(&RUNTIME, &["start", "end", "nameId"])? {
            let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
            let mut names = Part::named(rows.ints("nameId")?.iter().copied(), trace.strings()?, api_name);
            let durations = trace.durations("CUDA calls", starts, ends);
            durations.mask(starts, |row| Some(ends[row]), &mut names.of_row);
            all.take("CUDA_API", &names.of_row, &names.labels, durations.ns());
        }
        all.gpu(trace, arguments)?;
        all.summary("cuda_api_gpu_sum", "CUDA Summary (API/Kernels/MemOps)")
    },
};

#[derive(Default)]
struct United {
    of_row: Vec<u32>,
    ns: Vec<u64>,
    labels: Vec<(&'static str, String)>,
}

impl United {
    fn take(&mut self, category: &'static str, of_row: &[u32], labels: &[String], ns: &[u64]) {
        let before = self.labels.len() as u32;
        self.of_row
            .extend(of_row.iter().map(|group| if *group == NO_GROUP { NO_GROUP } else { before + group }));
        self.ns.extend(ns);
        self.labels.extend(labels.iter().map(|label| (category, label.clone())));
    }

    fn gpu(&mut self, trace: &Trace, arguments: &Arguments) -> Result<(), ExportError> {
        let columns = ["start", "end", "demangledName", name_column(arguments)];
        if let Some(rows) = trace.rows(&KERNEL, &columns)? {
            let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
            let mut names = names(trace, &rows, arguments)?;
            let durations = trace.durations("kernels", starts, ends);
            durations.mask(starts, |row| Some(ends[row]), &mut names.of_row);
            self.take("CUDA_KERNEL", &names.of_row, &names.labels, durations.ns());
        }
        if let Some(memory) = memory::operations(trace)? {
            self.take("MEMORY_OPER", &memory.of_row, &memory.labels, &memory.ns);
        }
        Ok(())
    }

    fn summary(self, name: &'static str, title: &'static str) -> Result<Option<ResultTable>, ExportError> {
        let labels = self.labels.iter().map(|(category, label)| vec![(*category).to_owned(), label.clone()]);
        let labels = labels.collect();
        let Some(groups) = (Groups { of_row: self.of_row, values: self.ns, labels }).any() else {
            return Ok(None);
        };
        let summary = Summary::new(groups);
        summary.time_table(name, title, "Instances", &["Category", "Operation"]).map(Some)
    }
}
