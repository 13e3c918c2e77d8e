//! `nvidia-smi -q` and `nvidia-smi -q -x`: of each GPU what its driver reports as an error, whatever the version calls it.

use super::output::{NodeOutput, Row};
use super::{NoResult, cut};

/// Sections within one another; no driver prints half as many.
const DEPTH: usize = 32;
/// No machine has more GPUs.
const MOST_GPUS: usize = 256;
/// Of one GPU; more say nothing new.
const MOST_FAILURES: usize = 16;

/// A value with the names of its sections and its own, in small letters and with blanks for underscores.
type Path = [String];

#[derive(Default)]
struct Gpu {
    address: String,
    lanes: Option<u32>,
    most_lanes: Option<u32>,
    uncorrected: Option<u64>,
    failures: Vec<String>,
    findings: Vec<String>,
    /// How many values it has.
    values: u64,
}

#[derive(Default)]
struct Query {
    gpus: Vec<Gpu>,
    driver: Option<String>,
    /// How many GPUs it says there are.
    attached: Option<usize>,
}

const SEVERAL: &str =
    "several outputs of `nvidia-smi -q` in one text: not read; give each in a file of its own";

/// Failures are what the driver itself calls one, and a link that is narrower than those of the other GPUs.
pub(super) fn read(text: &str) -> Result<NodeOutput, NoResult> {
    // They may be of several nodes, whose GPUs have the same addresses.
    if text.matches("=NVSMI LOG=").nth(1).is_some() {
        return Err(SEVERAL.to_owned());
    }
    let query = if is_xml(text) { parse_xml(text)? } else { parse_text(text)? };
    let mut output = NodeOutput { program: "nvidia-smi -q", version: query.driver, ..NodeOutput::default() };
    match query.attached {
        Some(attached) if attached != query.gpus.len() => {
            output.findings.push(format!(
                "{attached} GPUs are attached, {} are listed: it may be cut, or of some only",
                query.gpus.len()
            ));
        }
        None => output
            .findings
            .push("no line says how many GPUs are attached: its beginning may be cut".to_owned()),
        Some(_) => {}
    }
    let all: Vec<u32> = query.gpus.iter().filter_map(|gpu| gpu.lanes).collect();
    for (number, mut gpu) in (0..).zip(query.gpus) {
        if let (Some(lanes), Some(most)) = (gpu.lanes, gpu.most_lanes)
            && lanes < most
            && is_narrow(lanes, &all)
        {
            gpu.failures.push(format!("its PCIe link has {lanes} lanes of {most}"));
        }
        if let Some(errors @ 1..) = gpu.uncorrected {
            gpu.failures.push(format!("memory errors that were not corrected: {errors}"));
        }
        let address = &gpu.address;
        output.failures.extend(gpu.failures.iter().map(|why| format!("GPU {number} ({address}): {why}")));
        output.findings.extend(gpu.findings.iter().map(|why| format!("GPU {number} ({address}): {why}")));
        if gpu.values == 0 {
            output.findings.push(format!("GPU {number} ({address}): no value is listed"));
        }
        let row = |what: &str, value: Option<f64>, unit| Row {
            what: what.to_owned(),
            gpu: Some(number),
            value,
            unit,
            ..Row::default()
        };
        let rows = [
            row("PCIe", gpu.lanes.map(f64::from), "lanes"),
            row("memory errors, not corrected", gpu.uncorrected.map(|errors| errors as f64), "errors"),
        ];
        output.rows.extend(rows.into_iter().filter(|row| row.value.is_some()));
    }
    Ok(output)
}

/// Whether most other GPUs have more lanes: some machines give all of theirs half of what the GPU has.
fn is_narrow(lanes: u32, all: &[u32]) -> bool {
    const LEAST: usize = 3;
    let wider = all.iter().filter(|other| **other > lanes).count();
    all.len() >= LEAST && 2 * wider > all.len() - 1
}

fn is_xml(text: &str) -> bool {
    text.contains("<nvidia_smi_log")
}

impl Query {
    fn begin(&mut self, address: &str) -> Result<(), NoResult> {
        if self.gpus.len() >= MOST_GPUS {
            return Err(format!("nvidia-smi lists more than {MOST_GPUS} GPUs"));
        }
        self.gpus.push(Gpu { address: cut(address), ..Gpu::default() });
        Ok(())
    }

    fn value(&mut self, path: &Path, value: &str) {
        let Some(name) = path.last() else { return };
        match self.gpus.last_mut() {
            Some(gpu) => gpu.value(path, value),
            None if name == "driver version" => self.driver = Some(cut(value)),
            None if name == "attached gpus" => self.attached = value.parse().ok(),
            None => {}
        }
    }
}

impl Gpu {
    fn value(&mut self, path: &Path, value: &str) {
        let Some((name, sections)) = path.split_last() else { return };
        let is_in = |section: &str| sections.iter().any(|one| one == section);
        let parent = sections.last().map(String::as_str).unwrap_or_default();
        let is_yes = value.eq_ignore_ascii_case("yes");
        let is_active = value.eq_ignore_ascii_case("active");
        self.values += 1;
        // Parts of a GPU have tables of their own, and what runs on it has names that anybody chooses.
        if is_in("mig devices") || is_in("processes") {
            return;
        }
        let of_width = || value.trim_end_matches('x').parse::<u32>().ok();
        let failure = match name.as_str() {
            "current" | "current link width" if parent.starts_with("link width") => {
                self.lanes = of_width();
                None
            }
            "max" | "max link width" if parent.starts_with("link width") => {
                self.most_lanes = of_width();
                None
            }
            _ if is_in("volatile") && is_in("ecc errors") && is_uncorrected(name, parent) => {
                if let Ok(errors) = value.parse::<u64>() {
                    self.uncorrected = Some(self.uncorrected.unwrap_or(0).saturating_add(errors));
                }
                None
            }
            "remapping failure occurred" | "remapped row failure" if is_yes => {
                Some("a row of its memory could not be remapped".to_owned())
            }
            "pending" if parent == "remapped rows" && is_yes => Some(PENDING.to_owned()),
            "remapped row pending"
            | "pending page blacklist"
            | "pending blacklist"
            | "pending retirement"
                if is_yes =>
            {
                Some(PENDING.to_owned())
            }
            "unrepairable memory" if is_yes => Some("its memory cannot be repaired".to_owned()),
            "sram threshold exceeded" if is_yes => {
                Some("its SRAM had more errors than the driver allows".to_owned())
            }
            "channel repair pending" | "tpc repair pending" if is_yes => {
                Some(format!("a repair waits for a reset: {name}"))
            }
            "gpu requires reset" | "reset required" | "drain and reset recommended" if is_yes => {
                Some(RESET.to_owned())
            }
            _ if value == "GPU requires reset" => Some(RESET.to_owned()),
            "gpu recovery action" if !is_none(value) => {
                Some(format!("the driver asks for a recovery: {}", cut(value)))
            }
            _ if is_active && HELD_DOWN.iter().any(|reason| name.ends_with(reason)) => {
                Some(format!("its clocks are held down: {name}"))
            }
            "status" if parent == "fabric" && !is_none(value) && value != "Success" => {
                Some(format!("the fabric reports: {}", cut(value)))
            }
            "state" if parent == "fabric" && !is_none(value) && value != "Completed" => {
                self.findings.push(format!("the fabric is not complete: {}", cut(value)));
                None
            }
            _ if LOST.iter().any(|lost| value.contains(lost)) => {
                Some(format!("`{name}` reports: {}", cut(value)))
            }
            _ => None,
        };
        if let Some(failure) = failure
            && self.failures.len() < MOST_FAILURES
            && !self.failures.contains(&failure)
        {
            self.failures.push(failure);
        }
    }
}

/// Also where `GPU requires reset` stands in place of any value.
const RESET: &str = "the driver asks for a reset";
const PENDING: &str = "rows or pages of its memory wait for a reset";
/// Reasons for which hardware lowers clocks, as the names of theirs end.
const HELD_DOWN: [&str; 3] = ["hw slowdown", "hw thermal slowdown", "hw power brake slowdown"];
/// What stands for a value where the GPU does not answer.
const LOST: [&str; 3] = ["GPU is lost", "Unknown Error", "ERR!"];

fn is_none(value: &str) -> bool {
    ["N/A", "None", "[N/A]", "Not Supported"].contains(&value)
}

/// `dram uncorrectable`, `sram uncorrectable parity`; of older drivers the total of `double bit`.
fn is_uncorrected(name: &str, parent: &str) -> bool {
    name.contains("uncorrectable") || name == "total" && parent == "double bit"
}

fn named(name: &str) -> String {
    cut(name.trim()).to_ascii_lowercase().replace('_', " ")
}

/// `Name : value`, and names of sections above lines that are further in.
fn parse_text(text: &str) -> Result<Query, NoResult> {
    let mut query = Query::default();
    // Sections with how far in they stand.
    let mut sections: Vec<(usize, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        if indent == 0
            && let Some(address) = line.strip_prefix("GPU ").filter(|address| address.contains(':'))
            && !address.contains(" : ")
        {
            sections.clear();
            query.begin(address.trim())?;
            continue;
        }
        while sections.last().is_some_and(|(above, _)| *above >= indent) {
            sections.pop();
        }
        match line.split_once(" : ") {
            Some((name, value)) => {
                let mut path: Vec<String> = sections.iter().map(|(_, name)| name.clone()).collect();
                path.push(named(name));
                query.value(&path, value.trim());
            }
            None if sections.len() < DEPTH => sections.push((indent, named(line))),
            None => {}
        }
    }
    Ok(query)
}

/// As nvidia-smi prints it: a tag on each line, a value with both of its tags.
fn parse_xml(text: &str) -> Result<Query, NoResult> {
    let mut query = Query::default();
    let mut sections: Vec<String> = Vec::new();
    let mut is_closed = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("</nvidia_smi_log>") {
            is_closed = true;
        } else if line.starts_with("</") {
            sections.pop();
        } else if line.starts_with("<nvidia_smi_log") {
            if is_closed {
                return Err(SEVERAL.to_owned());
            }
        } else if let Some(rest) = line.strip_prefix("<gpu id=\"") {
            sections.clear();
            query.begin(rest.split('"').next().unwrap_or_default())?;
        } else if let Some((tag, rest)) = line.strip_prefix('<').and_then(|rest| rest.split_once('>'))
            && !tag.starts_with(['?', '!'])
            && !tag.ends_with('/')
        {
            let name = named(tag.split(' ').next().unwrap_or_default());
            match rest.rsplit_once("</") {
                Some((value, _)) => {
                    sections.push(name);
                    query.value(&sections, value.trim());
                    sections.pop();
                }
                None if sections.len() < DEPTH => sections.push(name),
                None => return Err("the XML of nvidia-smi has too many sections".to_owned()),
            }
        }
    }
    match is_closed {
        true => Ok(query),
        false => Err("the XML of nvidia-smi is cut off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::{NodeOutput, read};

    fn only(text: &str) -> NodeOutput {
        let outputs = read(text).expect("read");
        assert_eq!(outputs.len(), 1, "{outputs:?}");
        outputs.into_iter().next().expect("one")
    }

    const TEXT: &str = "\
==============NVSMI LOG==============

Timestamp                                 : Mon Nov 25 10:00:00 2024
Driver Version                            : 550.90.07
CUDA Version                              : 12.4

Attached GPUs                             : 3
GPU 00000000:18:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    GPU Reset Status
        Reset Required                    : No
    GPU Recovery Action                   : None
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 5
            Link Width
                Max                       : 16x
                Current                   : 16x
    Clocks Event Reasons
        Idle                              : Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
    ECC Errors
        Volatile
            SRAM Correctable              : 4
            SRAM Uncorrectable Parity     : 0
            DRAM Uncorrectable            : 0
        Aggregate
            DRAM Uncorrectable            : 9
    Remapped Rows
        Uncorrectable Error               : 1
        Pending                           : No
        Remapping Failure Occurred        : No
    Fabric
        State                             : Completed
        Status                            : Success
GPU 00000000:2A:00.0
    PCI
        GPU Link Info
            Link Width
                Max                       : 16x
                Current                   : 8x
    Clocks Event Reasons
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
    ECC Errors
        Volatile
            SRAM Uncorrectable Parity     : 1
            DRAM Uncorrectable            : 3
    Remapped Rows
        Pending                           : Yes
    Fabric
        State                             : In Progress
        Status                            : N/A
GPU 00000000:3A:00.0
    PCI
        GPU Link Info
            Link Width
                Max                       : 16x
                Current                   : 16x
";

    #[test]
    fn what_the_driver_reports_of_a_gpu_is_its_failure_and_no_other_s() {
        let output = only(TEXT);
        assert_eq!((output.program, output.version.as_deref()), ("nvidia-smi -q", Some("550.90.07")));
        assert_eq!(
            output.failures,
            [
                "GPU 1 (00000000:2A:00.0): its clocks are held down: hw slowdown",
                "GPU 1 (00000000:2A:00.0): its clocks are held down: hw thermal slowdown",
                "GPU 1 (00000000:2A:00.0): rows or pages of its memory wait for a reset",
                "GPU 1 (00000000:2A:00.0): its PCIe link has 8 lanes of 16",
                "GPU 1 (00000000:2A:00.0): memory errors that were not corrected: 4",
            ]
        );
        assert_eq!(output.findings, ["GPU 1 (00000000:2A:00.0): the fabric is not complete: In Progress"]);
        let lanes: Vec<Option<f64>> =
            output.rows.iter().filter(|row| row.unit == "lanes").map(|row| row.value).collect();
        assert_eq!(lanes, [Some(16.0), Some(8.0), Some(16.0)]);
    }

    #[test]
    fn a_query_of_fewer_gpus_than_are_attached_is_incomplete() {
        let cut = TEXT.split("GPU 00000000:2A").next().expect("the first GPU");
        let output = only(cut);
        assert!(output.failures.is_empty());
        assert_eq!(output.findings, ["3 GPUs are attached, 1 are listed: it may be cut, or of some only"]);
    }

    #[test]
    fn memory_that_waits_for_a_repair_or_has_none_is_a_failure() {
        // As drivers of 2026 print it.
        let text = |sram: &str, channel: &str, tpc: &str, memory: &str| {
            format!(
                "==============NVSMI LOG==============\n\nDriver Version                         : 595.91.07\nAttached GPUs                          \
                 : 1\nGPU 00000000:9A:00.0\n    ECC Errors\n        Volatile\n            DRAM Uncorrectable             : 0\n        Aggregate\n\
                 \x20           SRAM Threshold Exceeded        : {sram}\n        Channel Repair Pending             : {channel}\n        \
                 TPC Repair Pending                 : {tpc}\n        Unrepairable Memory                : {memory}\n"
            )
        };
        assert!(only(&text("No", "No", "No", "N/A")).failures.is_empty());
        let gpu = "GPU 0 (00000000:9A:00.0)";
        assert_eq!(
            only(&text("Yes", "GPU requires reset", "Yes", "Yes")).failures,
            [
                format!("{gpu}: its SRAM had more errors than the driver allows"),
                format!("{gpu}: the driver asks for a reset"),
                format!("{gpu}: a repair waits for a reset: tpc repair pending"),
                format!("{gpu}: its memory cannot be repaired"),
            ]
        );
    }

    const XML: &str = "<?xml version=\"1.0\" ?>
<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">
<nvidia_smi_log>
\t<timestamp>Mon Nov 25 10:00:00 2024</timestamp>
\t<driver_version>535.161.08</driver_version>
\t<attached_gpus>1</attached_gpus>
\t<gpu id=\"00000000:18:00.0\">
\t\t<product_name>NVIDIA A100-SXM4-80GB</product_name>
\t\t<mig_devices>
\t\t\tNone
\t\t</mig_devices>
\t\t<pci>
\t\t\t<pci_gpu_link_info>
\t\t\t\t<link_widths>
\t\t\t\t\t<max_link_width>16x</max_link_width>
\t\t\t\t\t<current_link_width>16x</current_link_width>
\t\t\t\t</link_widths>
\t\t\t</pci_gpu_link_info>
\t\t</pci>
\t\t<ecc_errors>
\t\t\t<volatile>
\t\t\t\t<sram_uncorrectable>0</sram_uncorrectable>
\t\t\t\t<dram_uncorrectable>2</dram_uncorrectable>
\t\t\t</volatile>
\t\t</ecc_errors>
\t\t<remapped_rows>
\t\t\t<remapped_row_pending>No</remapped_row_pending>
\t\t\t<remapped_row_failure>Yes</remapped_row_failure>
\t\t</remapped_rows>
\t</gpu>
</nvidia_smi_log>
";

    #[test]
    fn the_xml_is_read_as_the_text_is() {
        let output = only(XML);
        assert_eq!((output.version.as_deref(), output.findings.len()), (Some("535.161.08"), 0));
        assert_eq!(
            output.failures,
            [
                "GPU 0 (00000000:18:00.0): a row of its memory could not be remapped",
                "GPU 0 (00000000:18:00.0): memory errors that were not corrected: 2",
            ]
        );
        // As of machines whose GPUs have half of their lanes, all of them.
        let half = only(&XML.replace("<current_link_width>16x", "<current_link_width>8x"));
        assert_eq!(half.failures, output.failures);
        for text in [TEXT, XML] {
            let why =
                "several outputs of `nvidia-smi -q` in one text: not read; give each in a file of its own";
            assert_eq!(read(&text.repeat(2)), Err(why.to_owned()));
        }
        let cut = XML.split("\t</gpu>").next().expect("before its end");
        assert_eq!(read(cut), Err("the XML of nvidia-smi is cut off".to_owned()));
    }
}
