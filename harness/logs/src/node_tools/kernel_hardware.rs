//! Errors of memory and of PCIe in a kernel log, as EDAC and AER report them: which module of memory, which device.

use super::NoResult;
use super::kernel::{at_host, host};
use super::output::{NodeOutput, Row};
use std::collections::{BTreeMap, BTreeSet};

const OF_MEMORY: &str = "EDAC MC";
const OF_PCIE: &str = "PCIe Bus Error: severity=";

/// Whether a log has such a line; each kernel says when it starts that it has EDAC.
pub(super) fn is_in(text: &str) -> bool {
    text.lines().any(|line| error(line).is_some())
}

/// Errors of one kind in one place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HardwareError<'a> {
    Memory {
        is_corrected: bool,
        place: &'a str,
    },
    Pcie {
        severity: &'a str,
        device: &'a str,
    },
    /// A port was notified of one, whose description may not follow: the device no longer answers.
    FatalMessage {
        device: &'a str,
    },
}

/// What was not corrected, and what was fatal, are failures.
pub(super) fn read(text: &str) -> Result<NodeOutput, NoResult> {
    let found = || text.lines().filter_map(|line| Some((line, error(line)?)));
    let hosts: BTreeSet<&str> = found().map(|(line, _)| host(line)).collect();
    let mut all: BTreeMap<(HardwareError<'_>, &str), u64> = BTreeMap::new();
    for (line, (kind, times)) in found() {
        let before = all.entry((kind, host(line))).or_default();
        *before = before.saturating_add(times);
    }
    if all.is_empty() {
        return Err("no line of an error of memory or PCIe is complete".to_owned());
    }
    let mut output = NodeOutput { program: "the kernel, memory and PCIe", ..NodeOutput::default() };
    for ((kind, host), times) in &all {
        let at = at_host(hosts.len(), host);
        let what = match kind {
            HardwareError::Memory { is_corrected: true, place } => {
                format!("corrected errors of memory {place}{at}")
            }
            HardwareError::Memory { is_corrected: false, place } => {
                format!("uncorrected errors of memory {place}{at}")
            }
            HardwareError::Pcie { severity, device } => format!("PCIe errors of {device}{at}: {severity}"),
            HardwareError::FatalMessage { device } => {
                format!("messages of fatal PCIe errors from {device}{at}")
            }
        };
        match kind {
            HardwareError::Memory { is_corrected: false, place } => {
                output.failures.push(format!("memory {place}{at} had an error that was not corrected"));
            }
            HardwareError::Pcie { severity, device } if severity.contains("(Fatal)") => {
                output.failures.push(format!("{device}{at} had a fatal error of PCIe"));
            }
            HardwareError::FatalMessage { device } => {
                let failure = format!("{device}{at} had a fatal error of PCIe");
                // Descriptions come before messages.
                if !output.failures.contains(&failure) {
                    output.failures.push(failure);
                }
            }
            HardwareError::Memory { .. } | HardwareError::Pcie { .. } => {}
        }
        output.rows.push(Row { what, value: Some(*times as f64), unit: "errors", ..Row::default() });
    }
    Ok(output)
}

fn error(line: &str) -> Option<(HardwareError<'_>, u64)> {
    memory(line).or_else(|| pcie(line)).or_else(|| fatal_message(line))
}

/// `EDAC MC3: 1 UE memory read error on CPU_SrcID#1_MC#1_Chan#2_DIMM#0 (channel:2 ...`: how many, and where.
fn memory(line: &str) -> Option<(HardwareError<'_>, u64)> {
    let (_, rest) = line.split_once(OF_MEMORY)?;
    let (controller, rest) = rest.split_once(": ")?;
    controller.parse::<u32>().ok()?;
    let (times, rest) = rest.split_once(' ')?;
    let (kind, rest) = rest.split_once(' ')?;
    let (_, place) = rest.split_once("on ")?;
    let place = place.split([' ', '(']).next().filter(|place| !place.is_empty())?;
    let is_corrected = match kind {
        "CE" => true,
        "UE" => false,
        _ => return None,
    };
    Some((HardwareError::Memory { is_corrected, place }, times.parse().ok()?))
}

/// `nvidia 0000:18:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)`.
fn pcie(line: &str) -> Option<(HardwareError<'_>, u64)> {
    let (before, rest) = line.split_once(OF_PCIE)?;
    let (severity, _) = rest.split_once(", type=")?;
    // Newer kernels have `AER: ` before it.
    let before = before.trim_end();
    let before = before.strip_suffix("AER:").unwrap_or(before).trim_end().strip_suffix(':')?;
    let device = before.rsplit(' ').next().filter(|device| device.contains(':'))?;
    Some((HardwareError::Pcie { severity, device }, 1))
}

/// `pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0`; newer kernels write `error
/// message received from 0000:00:03.0`.
fn fatal_message(line: &str) -> Option<(HardwareError<'_>, u64)> {
    let (_, rest) = line.split_once(": AER: ")?;
    let (_, rest) = rest.split_once(" (Fatal) error ")?;
    let device = rest.strip_prefix("received: ").or_else(|| rest.strip_prefix("message received from "))?;
    let device = device.split(' ').next().filter(|device| device.contains(':'))?;
    Some((HardwareError::FatalMessage { device }, 1))
}

#[cfg(test)]
mod tests {
    use super::super::output::{NodeOutput, read};

    fn only(text: &str) -> NodeOutput {
        let outputs = read(text).expect("read");
        assert_eq!(outputs.len(), 1, "{outputs:?}");
        outputs.into_iter().next().expect("one")
    }

    #[test]
    fn memory_that_was_not_corrected_is_a_failure_with_its_module() {
        let output = only(
            "[11189.970968] EDAC MC3: 1 UE memory read error on CPU_SrcID#1_MC#1_Chan#2_DIMM#0 (channel:2 slot:0 page:0xb757589)\n\
             [11190.1] EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0)\n\
             [11191.1] EDAC MC1: 2 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0)\n\
             [11192.1] EDAC skx MC3: HANDLING MCE MEMORY ERROR\n",
        );
        let rows: Vec<(&str, Option<f64>)> =
            output.rows.iter().map(|row| (row.what.as_str(), row.value)).collect();
        let expected = [
            ("uncorrected errors of memory CPU_SrcID#1_MC#1_Chan#2_DIMM#0", 1.0),
            ("corrected errors of memory CPU_SrcID#0_Ha#0_Chan#1_DIMM#0", 264.0),
        ];
        assert_eq!(rows, expected.map(|(what, errors)| (what, Some(errors))));
        let why = "memory CPU_SrcID#1_MC#1_Chan#2_DIMM#0 had an error that was not corrected";
        assert_eq!(output.failures, [why]);
    }

    #[test]
    fn a_kernel_that_starts_reports_no_error_of_memory() {
        let output = only(
            "[    0.5] EDAC MC: Ver: 3.0.0\n[    9.5] EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: DEV \
             0000:3a:0a.0 (INTERRUPT)\n[   12.5] NVRM: Xid (PCI:0000:53:00): 43, pid=1, name=python\n",
        );
        assert_eq!((output.rows.len(), output.findings.len()), (1, 0));
    }

    #[test]
    fn a_fatal_error_of_pcie_names_its_device_and_its_host() {
        let line = |host: &str, severity: &str| {
            format!(
                "May  7 06:45:12 {host} kernel: [21584690.5] nvidia 0000:18:00.0: PCIe Bus Error: severity={severity}, type=Physical Layer, \
                 (Receiver ID)\n"
            )
        };
        let output = only(&(line("n-1", "Corrected") + &line("n-2", "Uncorrected (Fatal)")));
        assert_eq!(output.failures, ["0000:18:00.0 on n-2 had a fatal error of PCIe"]);
        let newer = only(
            "[3.5] nvidia 0000:18:00.0: AER: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)\n",
        );
        assert_eq!(newer.rows[0].what, "PCIe errors of 0000:18:00.0: Correctable");
        assert!(newer.failures.is_empty());
    }

    /// As in https://github.com/rwth-i6/returnn/issues/1500, where the description may be missing.
    #[test]
    fn a_fatal_error_of_pcie_without_its_description_is_a_failure_once() {
        let message = "[  +0.000001] pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0\n";
        let description = "[  +0.000004] pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (x)\n";
        let failures = ["0000:00:03.0 had a fatal error of PCIe"];
        assert_eq!(only(message).failures, failures);
        assert_eq!(only(&message.repeat(2)).rows[0].value, Some(2.0));
        assert_eq!(only(&(message.to_owned() + description)).failures, failures);
        let newer = "[3.5] pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received from 0000:18:00.0\n";
        assert_eq!(only(newer).failures, ["0000:18:00.0 had a fatal error of PCIe"]);
    }
}
