//! Operations on GPUs.

use super::{Numbers, WHOLE};
use crate::recipe::of_reports::{RecipeKind, ReportRecipe};
use crate::result_table::{Column, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, STRING_IDS, TableSpec};
use nsys::trace::{Trace, pid_of};

pub(crate) const CUDA_GPU: ReportRecipe = ReportRecipe {
    name: "CUDA_GPU",
    title: "CUDA on GPUs",
    about: "kernels, copies and fills",
    definition: WHOLE,
    arguments: &[],
    tables: &[&KERNEL, &MEMCPY, &MEMSET],
    kind: RecipeKind::Rows {
        columns: &[&[
            "correlationId",
            "start",
            "end",
            "globalPid",
            "deviceId",
            "contextId",
            "greenContextId",
            "streamId",
            "pid",
        ]],
        of: |trace, _| activity(trace, false, &CUDA_GPU),
    },
};

pub(crate) const CUDA_GPU_GRAPH: ReportRecipe = ReportRecipe {
    name: "CUDA_GPU_GRAPH",
    title: "CUDA on GPUs with Graphs",
    about: "kernels, copies and fills, and graphs that were traced as a whole",
    definition: WHOLE,
    arguments: &[],
    tables: &[&KERNEL, &MEMCPY, &MEMSET, &GRAPH_TRACE],
    kind: RecipeKind::Rows {
        columns: &[&[
            "correlationId",
            "start",
            "end",
            "globalPid",
            "deviceId",
            "contextId",
            "greenContextId",
            "streamId",
            "pid",
            "graphNodeId",
            "graphId",
        ]],
        of: |trace, _| activity(trace, true, &CUDA_GPU_GRAPH),
    },
};

const COLUMNS: [&str; 8] =
    ["correlationId", "start", "end", "globalPid", "deviceId", "contextId", "greenContextId", "streamId"];

fn activity(
    trace: &Trace,
    graphs: bool,
    recipe: &ReportRecipe<'static>,
) -> Result<Option<ResultTable>, ExportError> {
    let tables: [(&'static TableSpec, &str, bool); 4] = [
        (&KERNEL, "graphNodeId", true),
        (&MEMCPY, "graphNodeId", true),
        (&MEMSET, "graphNodeId", true),
        (&GRAPH_TRACE, "graphId", graphs),
    ];
    let mut columns = Numbers::new(COLUMNS);
    let [mut nodes, mut whole] = Numbers::new(["graphNodeId", "graphId"]);
    for (spec, of_graph, extract) in tables {
        if !extract {
            continue;
        }
        let mut names: Vec<&str> = COLUMNS.to_vec();
        names.push(of_graph);
        let Some(rows) = trace.rows(spec, &names)? else { continue };
        for column in &mut columns {
            column.values.extend(rows.maybe_ints(column.name)?.iter());
        }
        let of_graph = rows.maybe_ints(of_graph)?;
        let is_whole = spec.name == GRAPH_TRACE.name;
        nodes.values.extend((0..rows.len()).map(|row| of_graph.get(row).filter(|_| !is_whole)));
        whole.values.extend((0..rows.len()).map(|row| of_graph.get(row).filter(|_| is_whole)));
    }
    let [_, starts, ends, pids, devices, ..] = &columns;
    let mut order: Vec<usize> = (0..starts.values.len()).collect();
    order
        .sort_by_key(|row| (starts.values[*row], ends.values[*row], pids.values[*row], devices.values[*row]));
    if order.is_empty() {
        return Ok(None);
    }
    let mut pid = Numbers { name: "pid", values: Vec::new() };
    pid.values.extend(pids.values.iter().map(|global| global.map(pid_of)));
    let mut all: Vec<Numbers> = columns.into_iter().collect();
    all.push(pid);
    if graphs {
        all.extend([nodes, whole]);
    }
    let sorted = all.into_iter().map(|column| {
        Numbers { name: column.name, values: order.iter().map(|row| column.values[*row]).collect() }.column()
    });
    Ok(Some(ResultTable::new(recipe.name, recipe.title, sorted.collect())))
}

pub(crate) const CUDA_KERNEL: ReportRecipe = ReportRecipe {
    name: "CUDA_KERNEL",
    title: "CUDA Kernels",
    about: "kernels with their names",
    definition: WHOLE,
    arguments: &[],
    tables: &[&KERNEL, &STRING_IDS],
    kind: RecipeKind::Rows {
        columns: &[&[
            "correlationId",
            "globalPid",
            "start",
            "end",
            "deviceId",
            "shortName",
            "mangledName",
            "demangledName",
            "pid",
        ]],
        of: |trace, _| {
            let names = ["shortName", "mangledName", "demangledName"];
            let mut wanted = vec!["correlationId", "globalPid", "start", "end", "deviceId"];
            wanted.extend(names);
            let Some(rows) = trace.rows(&KERNEL, &wanted)? else { return Ok(None) };
            let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
            let mut order: Vec<usize> = (0..rows.len()).collect();
            order.sort_by_key(|row| (starts[*row], ends[*row], *row));
            let mut columns = Vec::new();
            for name in ["correlationId", "globalPid", "start", "end", "deviceId"] {
                let values = rows.maybe_ints(name)?;
                columns.push(
                    Numbers { name, values: order.iter().map(|row| values.get(*row)).collect() }.column(),
                );
            }
            let strings = trace.strings()?;
            for name in names {
                let ids = rows.maybe_ints(name)?;
                let texts = order.iter().map(|row| ids.get(*row).map(|id| strings.render(id)));
                columns.push(Column::maybe_texts(name, texts));
            }
            let pids = rows.maybe_ints("globalPid")?;
            let values = order.iter().map(|row| pids.get(*row).map(pid_of)).collect();
            columns.push(Numbers { name: "pid", values }.column());
            Ok(Some(ResultTable::new(CUDA_KERNEL.name, CUDA_KERNEL.title, columns)))
        },
    },
};
