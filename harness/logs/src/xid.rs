//! Xids in lines of the kernel's log: which of them speak against hardware, and which may be a program's doing.

/// Memory, links, power and the bus of a GPU, and its own processors: those for which NVIDIA's catalogue asks for a reset
/// or worse, and those for which health checks of AWS, Azure, Crusoe and OCI refuse nodes. 13, 31, 43, 45 and 109 are
/// mostly a program's, or of one that was ended; 32, 68, 69 and 73 may be either. NVIDIA ignores 63 (a row was remapped)
/// and 92 (many corrected errors): the rows and errors themselves are judged.
const OF_HARDWARE: [u32; 30] = [
    46, 48, 56, 57, 58, 62, 64, 65, 71, 74, 79, 80, 81, 94, 95, 110, 119, 120, 136, 140, 143, 155, 156, 157,
    158, 167, 168, 169, 171, 172,
];

/// The number in `NVRM: Xid (PCI:0000:53:00): 79, ...`.
pub fn number(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("NVRM: Xid (")?;
    rest.split_once("): ")?.1.split([',', ' ']).next()?.parse().ok()
}

/// Of GPUs by their number; of NVSwitches (`SXid`) those that are fatal. Those of NVLink 5 say whether they are: others
/// were corrected, or are a program's that used the memory of a GPU that was gone.
pub fn is_of_hardware(line: &str) -> bool {
    let is_of_switch = line.contains("SXid") && line.contains("Fatal") && !line.contains("Non-fatal");
    is_of_switch
        || match number(line) {
            Some(OF_NVLINK_5..=LAST_OF_NVLINK_5) => !line.contains(" Nonfatal "),
            Some(RECOVERY) => asks_for_reset(line),
            Some(number) => OF_HARDWARE.contains(&number),
            None => false,
        }
}

const OF_NVLINK_5: u32 = 144;
const LAST_OF_NVLINK_5: u32 = 150;
/// How the GPU has to be recovered has changed.
const RECOVERY: u32 = 154;

/// `GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)`; a line without it asks for one, too.
fn asks_for_reset(line: &str) -> bool {
    line.rsplit_once(" to ").is_none_or(|(_, to)| !to.starts_with("0x0 "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_speaks_against_hardware_by_its_number_and_other_lines_do_not() {
        for (line, is) in [
            ("[Fri] NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', GPU has fallen off the bus.", true),
            ("NVRM: Xid (PCI:0000:04:00): 144, SAW_MVB Fatal XC0 i0 Link 00", true),
            (
                "NVRM: Xid (PCI:0000:04:00): 144, SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000004)",
                false,
            ),
            ("NVRM: Xid (PCI:0000:5f:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 02", false),
            ("NVRM: Xid (PCI:0000:04:00): 148, NVLPW_CTRL/NVLPW Fatal XC0 i0 Link 00", true),
            ("NVRM: Xid (PCI:0000:04:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 01", false),
            ("NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT/NETIR_LINK_DOWN Fatal XC0 i0 Link 00", true),
            ("NVRM: Xid (PCI:0000:04:00): 150, MSE_WATCH", true),
            (
                "NVRM: Xid (PCI:0000:5f:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
                true,
            ),
            (
                "NVRM: Xid (PCI:0000:5f:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
                true,
            ),
            (
                "NVRM: Xid (PCI:0000:5f:00): 154, GPU recovery action changed from 0x1 (PF FLR) to 0x0 (None)",
                false,
            ),
            ("NVRM: Xid (PCI:0000:5f:00): 136, x", true),
            ("NVRM: Xid (PCI:0000:5f:00): 158, x", true),
            ("NVRM: Xid (PCI:0000:5f:00): 171, x", true),
            ("NVRM: Xid (PCI:0000:5f:00): 109, pid=1, CTX SWITCH TIMEOUT", false),
            (
                "NVRM: Xid (PCI:0000:5f:00): 63, Row Remapper: New row marked for remapping, reset gpu to activate.",
                false,
            ),
            ("NVRM: Xid (PCI:0000:5f:00): 92, x", false),
            ("NVRM: Xid (PCI:0000:5f:00): 94, Contained memory error", true),
            ("[Fri] NVRM: Xid (PCI:000d:00:00): 31, pid=3234, MMU fault", false),
            ("NVRM: Xid (PCI:0000:53:00): 69, pid=1, Class Error", false),
            ("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up", true),
            ("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 12028, Non-fatal, Link 48", false),
            ("NVRM: Xid (PCI:0000:53:00", false),
            ("NVRM: Xid (PCI:0000:53:00): 99999999999999, x", false),
            ("79", false),
            ("", false),
        ] {
            assert_eq!(is_of_hardware(line), is, "{line}");
        }
    }
}
