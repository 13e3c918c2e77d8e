//! Xids in lines of the kernel's log: which of them speak against hardware, and which may be a program's doing.

/// Memory, links, power and the bus of a GPU, and its own processors; health checks of AWS, Azure, Crusoe and OCI refuse
/// nodes for them. 13, 31, 43 and 45 are mostly a program's, or of one that was ended; 32, 68, 69 and 73 may be either.
const OF_HARDWARE: [u32; 26] = [
    48, 56, 57, 58, 62, 63, 64, 65, 71, 74, 79, 80, 81, 92, 94, 95, 119, 120, 140, 143, 144, 145, 146, 147,
    149, 150,
];

/// The number in `NVRM: Xid (PCI:0000:53:00): 79, ...`.
pub fn number(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("NVRM: Xid (")?;
    rest.split_once("): ")?.1.split([',', ' ']).next()?.parse().ok()
}

/// Of GPUs by their number; of NVSwitches (`SXid`) those that are fatal.
pub fn is_of_hardware(line: &str) -> bool {
    let is_of_switch = line.contains("SXid") && line.contains("Fatal") && !line.contains("Non-fatal");
    is_of_switch || number(line).is_some_and(|number| OF_HARDWARE.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_speaks_against_hardware_by_its_number_and_other_lines_do_not() {
        for (line, is) in [
            ("[Fri] NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', GPU has fallen off the bus.", true),
            ("NVRM: Xid (PCI:0000:04:00): 144, SAW_MVB Fatal XC0 i0 Link 00", true),
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
