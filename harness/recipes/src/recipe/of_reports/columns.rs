//! What the columns of result tables hold, by their names: one meaning for each name. A table that means something else by
//! a name says so where it is declared, as in `"Late: ..."`.

use super::ReportRecipe;
use crate::result_table::ResultTable;

/// A table that a recipe gives, with its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputTable {
    /// The name of its file.
    pub name: &'static str,
    /// What a row of it is.
    pub about: String,
    /// Name without its unit, and what the column holds.
    pub columns: Vec<(String, String)>,
}

/// The same as it is declared.
#[derive(Debug, Clone, Copy)]
pub struct TableDoc {
    /// The name of its file.
    pub name: &'static str,
    /// What a row of it is.
    pub about: &'static str,
    /// Groups of columns, each a name, or a name, a colon and what it holds. Those in braces stand for names out of reports.
    pub columns: &'static [&'static [&'static str]],
}

impl OutputTable {
    /// Whether it may have a column of this name.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.columns.iter().any(|(known, _)| known == name || known.starts_with('{'))
    }
}

impl TableDoc {
    pub(crate) fn table(&self) -> OutputTable {
        output_table(self.name, self.about, self.columns.concat())
    }
}

/// A table with columns whose meanings are looked up.
pub(super) fn output_table<'a>(
    name: &'static str,
    about: &str,
    columns: impl IntoIterator<Item = &'a str>,
) -> OutputTable {
    let columns = columns.into_iter().map(|column| match column.split_once(": ") {
        Some((name, about)) => (name.to_owned(), about.to_owned()),
        None => (column.to_owned(), about_of(column).unwrap_or_default().to_owned()),
    });
    OutputTable { name, about: about.to_owned(), columns: columns.collect() }
}

/// What a column of this name holds.
fn about_of(name: &str) -> Option<&'static str> {
    COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, about)| *about)
}

/// The figures of a summary, behind `Rank` and before the words of its groups.
pub(super) const FIGURES: &[&str] = &["Total", "Count", "Avg", "Med", "Q1", "Q3", "Min", "Max", "StdDev"];

/// What the two tables of a summary are.
pub(super) const ALL_STATS: &str = "one row per group, of all reports together";
pub(super) const RANK_STATS: &str = "one row per group of each report";

/// Of the table of reports that each recipe gives.
pub(super) const FILES: &[&str] = &["Rank", "Rank from", "File", "Host", "nsys", "Schema", "Rows", "Status"];

/// In the order of their names.
pub(super) const COLUMNS: &[(&str, &str)] = &[
    ("AAvg", "the mean time of the call"),
    ("AMax", "the largest time of the call"),
    ("AMed", "the median time of the call"),
    ("AMin", "the smallest time of the call"),
    ("API", "the call that launched it, by name"),
    ("API Name", "the call that launched the kernel"),
    ("AStdDev", "the standard deviation of the time of the call"),
    ("Active", "time in which at least one operation ran"),
    ("All Three", "time in which compute, communication and memory ran at once"),
    ("Avg", "the mean"),
    ("Avg GPU Ops", "the mean number of operations of a range"),
    ("Avg Num Child", "the mean number of ranges directly within a range"),
    ("Avg Range Lvl", "the mean number of ranges that a range lies in"),
    ("Bound", "the limit that the observed number crossed"),
    ("Bytes", "bytes that were moved or set"),
    ("CV", "the standard deviation as a share of the mean"),
    ("Class", "the class of the kernels"),
    ("Collectives", "how many collectives were compared"),
    ("Communication", "time in which kernels communicated"),
    ("Communication Alone", "time in which nothing but communication ran"),
    ("Communication and Memory", "time in which communication and memory ran at once, and no compute"),
    ("Communicator", "the communicator, as the report names it"),
    ("Compute", "time in which kernels computed"),
    ("Compute Alone", "time in which nothing but compute ran"),
    ("Compute and Communication", "time in which compute and communication ran at once, and no memory"),
    ("Compute and Memory", "time in which compute and memory ran at once, and no communication"),
    ("Context", "the CUDA context, by its number"),
    ("Count", "how many there are"),
    ("Counter", "the counter, by name"),
    ("DevId", "the GPU, by its number"),
    ("Device", "the device, by number or name"),
    ("Distance", "time from the end of the instance before to the start of this one"),
    ("Duration", "time from start to end"),
    ("End", "when it ended"),
    ("Exposed Communication", "time of communication beside which nothing computed"),
    ("Exposed of Communication", "exposed communication as a share of communication"),
    ("File", "the report, as it was named"),
    ("GPU", "the GPU, by its number"),
    ("GUID", "the identifier of the NIC across hosts"),
    ("Host", "the host that the report was made on"),
    ("Idle", "time in which no operation ran"),
    ("Instance", "the number of the instance, from 0"),
    ("Instances", "how many instances there are"),
    ("KAvg", "the mean time of the kernel"),
    ("KMax", "the largest time of the kernel"),
    ("KMed", "the median time of the kernel"),
    ("KMin", "the smallest time of the kernel"),
    ("KStdDev", "the standard deviation of the time of the kernel"),
    ("Kern Inst", "kernels that were launched"),
    ("Kernel Name", "the kernel, by name"),
    ("Lower", "the lower edge of the bin, included"),
    ("Max", "the largest"),
    ("Mean", "the mean over the time that was measured"),
    ("Measured", "time in which it was measured"),
    ("Med", "the median"),
    ("Memory", "time in which copies or fills ran"),
    ("Metric", "the metric, by name"),
    ("Min", "the smallest"),
    ("NVTX Inst", "ranges in which the kernel was launched"),
    ("NVTX Range", "the range, with its domain before a colon"),
    ("Name", "what is grouped, by name"),
    ("Node", "the host"),
    ("Number", "the number that the range of the step carries"),
    ("Observed", "the number that crossed the limit"),
    ("Operation", "the operation, by name"),
    ("Overlap", "time in which both went on at once"),
    ("PID", "the process, by its number"),
    ("Placement", "whether the call was in place"),
    ("Port", "the port, by its number"),
    ("Probability", "the count as a fraction of all"),
    ("Proj Avg", "the mean time of their work on GPUs"),
    ("Proj Max", "the largest of the same"),
    ("Proj Med", "the median of the same"),
    ("Proj Min", "the smallest of the same"),
    ("Proj StdDev", "the standard deviation of the same"),
    ("Q1", "the first quartile"),
    ("Q3", "the third quartile"),
    ("QAvg", "the mean time from the end of the call to the begin of the kernel"),
    ("QCount", "kernels that waited in a queue"),
    ("QMax", "the largest time from the end of the call to the begin of the kernel"),
    ("QMed", "the median time from the end of the call to the begin of the kernel"),
    ("QMin", "the smallest time from the end of the call to the begin of the kernel"),
    ("QStdDev", "the standard deviation of the time from the end of the call to the begin of the kernel"),
    ("Range", "the range, with its domain before a colon"),
    ("Range Instances", "ranges that launched work"),
    ("Rank", "the rank of the report"),
    ("Rank from", "where the rank comes from: MPI, or the order of names"),
    ("Ranks", "how many ranks"),
    ("Residual", "differences between clocks that remain after they were aligned"),
    ("Rows", "rows that the recipe read"),
    ("Samples", "how many samples"),
    ("Schema", "the version of the export's schema"),
    ("Session", "the length of the recording"),
    ("Share", "the group's total as a share of all"),
    ("Slowest Rank", "the rank with the largest time"),
    ("Source", "where the call comes from"),
    ("Standard Errors", "the lateness in standard errors: how sure it is"),
    ("Start", "when it began"),
    ("Status", "whether the report had data, or why not"),
    ("StdDev", "the standard deviation, with n - 1"),
    ("Step", "the number of the step in the report, from 0"),
    ("Stream", "the CUDA stream, by its number"),
    ("Style", "how the range was marked, such as PushPop"),
    ("TAvg", "the mean time from the begin of the call to the end of the kernel"),
    ("TID", "the thread, by its number"),
    ("TMax", "the largest time from the begin of the call to the end of the kernel"),
    ("TMed", "the median time from the begin of the call to the end of the kernel"),
    ("TMin", "the smallest time from the begin of the call to the end of the kernel"),
    ("TStdDev", "the standard deviation of the time from the begin of the call to the end of the kernel"),
    ("Time", "the group's total as a share of all"),
    ("Total", "the sum"),
    ("Total GPU Ops", "operations that the ranges launched"),
    ("Total Proj Time", "the sum of the times of their work on GPUs"),
    ("Total Range Time", "the sum of the ranges' own times"),
    ("Total Time", "the sum of the times of the kernels"),
    ("Unit", "the unit of the numbers"),
    ("Upper", "the upper edge of the bin"),
    ("bytes", "the bytes of the call"),
    ("comm", "the communicator of the plugin"),
    ("communicator", "the communicator, as the report names it"),
    ("contextId", "the CUDA context, by its number"),
    ("correlationId", "links an operation with the call that launched it"),
    ("demangledName", "the kernel's whole name"),
    ("dev", "the device of the plugin, by its number"),
    ("deviceId", "the GPU, by its number"),
    ("domainId", "the NVTX domain, by its number"),
    ("domainName", "the NVTX domain, by name"),
    ("end", "when it ended"),
    ("endGlobalTid", "process and thread that ended the range, in one number"),
    ("event", "what the plugin did"),
    ("eventType", "the kind of the NVTX event, by its number"),
    ("globalId", "the device in the report, by its number"),
    ("globalPid", "machine and process, in one number"),
    ("globalTid", "process and thread, in one number"),
    ("gpuId", "the GPU, by its number"),
    ("gpu_end", "when the operation ended on the GPU"),
    ("gpu_start", "when the operation began on the GPU"),
    ("graphId", "the CUDA graph, by its number"),
    ("graphNodeId", "the node of the CUDA graph, by its number"),
    ("greenContextId", "the green context, by its number"),
    ("group", "the group of calls that it belongs to"),
    ("jsonText", "the payload of the range as JSON"),
    ("mangledName", "the kernel's name as linkers know it"),
    ("metric_name", "the metric, by name"),
    ("metricsIdx", "the place of the metric in its list"),
    ("metricsListId", "the list of metrics, by its number"),
    ("name", "the call, by name"),
    ("nicId", "the NIC, by its number"),
    ("nic_name", "the NIC, by name"),
    ("nsys", "the release that wrote the report"),
    ("peer", "the rank at the other end"),
    ("pid", "the process, by its number"),
    ("rail", "the rail of the device, by its number"),
    ("rank", "the rank within the communicator"),
    ("ranks", "ranks of the communicator"),
    ("reduction", "how values are combined, such as sum"),
    ("root", "the root of the operation"),
    ("shortName", "the kernel's name without its parameters"),
    ("start", "when it began"),
    ("streamId", "the CUDA stream, by its number"),
    ("text", "the name of the range, mark or call"),
    ("tid", "the thread, by its number"),
    ("timestamp", "when it was sampled or written"),
    ("typeId", "the source of the event, by its number"),
    ("value", "the number that was sampled"),
];

/// Tables and columns that a recipe made and does not declare.
pub(super) fn undeclared(recipe: &ReportRecipe<'_>, made: &[(&'static str, ResultTable)]) -> Vec<String> {
    let declared = recipe.output_tables();
    let mut undeclared = Vec::new();
    for (name, made) in made {
        match declared.iter().find(|table| table.name == *name) {
            Some(table) => {
                let columns = made.columns.iter().filter(|column| !table.declares(&column.name));
                undeclared.extend(columns.map(|column| format!("{name}: {}", column.name)));
            }
            None => undeclared.push((*name).to_owned()),
        }
    }
    undeclared
}
