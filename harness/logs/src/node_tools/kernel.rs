//! Lines of NVIDIA's driver in a kernel log: Xids, and the GPUs that it lost, of which some never get the number of an Xid.

use super::NoResult;
use super::output::{KERNEL, NodeOutput, Row};
use std::collections::{BTreeMap, BTreeSet};

/// A message of the driver may take so many lines, of which the first names the GPU.
const LINES: usize = 3;
pub(super) const LOST: &str = "fallen off the bus";
pub(super) const NOT_STARTED: &str = "probe routine failed";
/// In newer drivers with the GPU's address before it.
pub(super) const FAILED_STARTS: [&str; 2] = ["RmInitAdapter failed", "rm_init_adapter failed"];
pub(super) const OF_GSP: &str = "GSP Timeout";
/// Errors with which the driver answers for a GPU that is gone or stands still; they may be all that a log holds of it.
pub(super) const ANSWERS: [&str; 2] = ["NV_ERR_GPU_IS_LOST", "NV_ERR_RESET_REQUIRED"];

/// How often each Xid stands in a log of the kernel, by device; GPUs that it lost, and Xids of hardware, are failures. Where
/// the lines are of several hosts, so are the devices.
pub(super) fn read(text: &str) -> Result<NodeOutput, NoResult> {
    let hosts: BTreeSet<&str> = text.lines().filter(|line| is_of_driver(line)).map(host).collect();
    let at = |host: &str| at_host(hosts.len(), host);
    let mut all: BTreeMap<(&str, &str, u32, &str), u32> = BTreeMap::new();
    let mut faults: BTreeSet<(&str, &str, u32, &str)> = BTreeSet::new();
    let mut causes: BTreeMap<(&str, u32, &str), u32> = BTreeMap::new();
    let mut events: BTreeMap<(&str, String), u32> = BTreeMap::new();
    let mut lost: BTreeSet<String> = BTreeSet::new();
    let mut answers: BTreeSet<String> = BTreeSet::new();
    let mut failed_starts: BTreeSet<String> = BTreeSet::new();
    let mut failed_probes: BTreeMap<&str, u32> = BTreeMap::new();
    // By host the GPU that the driver named last, and how many of its lines ago.
    let mut named: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for line in text.lines() {
        let host = host(line);
        if let Some((kind, device, number)) = xid(line) {
            *all.entry((kind, device, number, host)).or_default() += 1;
            // A GPU that is lost is a failure below.
            if crate::xid::is_of_hardware(line) && !line.contains(LOST) {
                faults.insert((kind, device, number, host));
            }
            if let Some(cause) = cause(line) {
                *causes.entry((device, cause, host)).or_default() += 1;
            }
        }
        let Some((_, message)) = line.split_once("NVRM: ") else { continue };
        let last = match message.split_whitespace().find_map(device) {
            Some(device) => Some((device, 0)),
            None => {
                let before = named.get(host).copied();
                before.map(|(device, lines)| (device, lines + 1)).filter(|(_, lines)| *lines < LINES)
            }
        };
        match last {
            Some(last) => {
                named.insert(host, last);
            }
            None => {
                named.remove(host);
            }
        }
        let on_host = |gpu: &str| format!("{gpu}{}", at(host));
        let gpu = || on_host(last.map_or(UNNAMED, |(device, _)| device));
        if message.contains(LOST) {
            lost.insert(gpu());
            *events.entry((LOST, gpu())).or_default() += 1;
        } else if message.contains(NOT_STARTED) {
            *failed_probes.entry(host).or_default() += 1;
        } else if FAILED_STARTS.iter().any(|words| message.contains(words)) {
            // Other lines may be of another GPU.
            let gpu = on_host(message.split_whitespace().find_map(device).unwrap_or(UNNAMED));
            failed_starts.insert(gpu.clone());
            *events.entry((FAILED_STARTS[0], gpu)).or_default() += 1;
        } else if message.contains(OF_GSP) {
            *events.entry(("GSP timeout", on_host(numbered(message)))).or_default() += 1;
        } else if let Some(answer) = ANSWERS.into_iter().find(|answer| message.contains(*answer)) {
            let address = message.split_whitespace().find_map(device);
            let gpu = on_host(address.unwrap_or_else(|| numbered(message)));
            answers.insert(format!("the driver answers `{answer}` for {gpu}"));
            *events.entry((answer, gpu)).or_default() += 1;
        }
    }
    let row = |what: String, times: u32| Row {
        what,
        value: Some(f64::from(times)),
        unit: "lines",
        ..Row::default()
    };
    let of_xid = |((kind, device, number, host), times): ((&str, &str, u32, &str), u32)| {
        row(format!("{kind} {number} of {device}{}", at(host)), times)
    };
    // The lines of the cause itself may be gone from the log.
    causes.retain(|(device, cause, host), _| !all.contains_key(&("Xid", *device, *cause, *host)));
    let mut rows: Vec<Row> = all.into_iter().map(of_xid).collect();
    rows.extend(causes.into_iter().map(|((device, cause, host), times)| {
        row(format!("Xid {cause} of {device}{}, named as a cause", at(host)), times)
    }));
    rows.extend(events.into_iter().map(|((what, gpu), times)| row(format!("{what}: {gpu}"), times)));
    let mut failures: Vec<String> = lost.into_iter().map(|gpu| format!("{gpu} has {LOST}")).collect();
    let not_started = |gpu: String| format!("the driver could not start {gpu}: `{}`", FAILED_STARTS[0]);
    failures.extend(failed_starts.into_iter().map(not_started));
    failures.extend(faults.into_iter().map(|(kind, device, number, host)| {
        format!("{device}{} had {kind} {number}, which speaks against hardware", at(host))
    }));
    for (host, times) in failed_probes {
        rows.push(row(format!("{NOT_STARTED}{}", at(host)), times));
        failures.push(format!("the driver could not start a GPU{}: `{NOT_STARTED}`", at(host)));
    }
    // What other lines name is why the driver answers so.
    if failures.is_empty() {
        failures.extend(answers);
    }
    match rows.is_empty() {
        true => Err("no line of an Xid is complete, and no GPU was lost".to_owned()),
        false => Ok(NodeOutput { program: KERNEL, rows, failures, ..NodeOutput::default() }),
    }
}

const UNNAMED: &str = "a GPU that is not named";

/// The GPU in `GPU5 _kgspLogRpcTimeout: ...`.
fn numbered(message: &str) -> &str {
    let word = message.split_whitespace().next().unwrap_or_default();
    if word.len() > "GPU".len() && word.starts_with("GPU") { word } else { UNNAMED }
}

/// Which of several hosts.
pub(super) fn at_host(hosts: usize, host: &str) -> String {
    match (hosts, host) {
        (..=1, _) => String::new(),
        (_, "") => " on a host that is not named".to_owned(),
        (_, host) if host.ends_with(':') => format!(" in {}", host.trim_end_matches(':')),
        _ => format!(" on {host}"),
    }
}

/// A line of NVIDIA's driver.
fn is_of_driver(line: &str) -> bool {
    line.contains("NVRM: ") || line.contains("Xid (PCI:")
}

/// The host in `Nov 20 10:00:01 p5-001 kernel: ...`, as syslog and the journal write it, in the journal's JSON, or in
/// `p5-001: [ 12.5] ...`, where the time may have another form or be left out; behind `[p5-001] `, `p5-001 | ` or a tab; or
/// the file of `logs/p5-001.txt:12:[ 12.5] ...` with its colon, as grep writes it. Empty where none is named.
pub(super) fn host(line: &str) -> &str {
    // What the driver says holds names of processes, which anybody chooses.
    let message = line.find("NVRM: ").or_else(|| line.find("Xid (PCI:"));
    let before = &line[..message.unwrap_or(line.len())];
    let of_syslog = || {
        let (front, _) = before.split_once(" kernel:").or_else(|| before.split_once(" kernel - "))?;
        front.rsplit(' ').next()
    };
    let of_label = || {
        let (front, rest) = before.split_once(": ")?;
        let is_front = rest.is_empty()
            || rest.starts_with(|c: char| c == '[' || c.is_ascii_digit())
            || ["kernel: ", "nvidia-nvswitch"].iter().any(|start| rest.starts_with(start));
        (is_front && front != "kernel").then_some(front)
    };
    // Within a value its quotes are escaped.
    let of_journal =
        || line.trim_start().strip_prefix('{')?.split_once("\"_HOSTNAME\":\"")?.1.split('"').next();
    let found =
        of_syslog().filter(|word| is_name(word)).or_else(|| of_journal().filter(|word| is_name(word)));
    let found = found.or_else(|| of_label().filter(|word| is_name(word)));
    found.or_else(|| framed(before)).or_else(|| file(before)).unwrap_or_default()
}

fn is_name(word: &str) -> bool {
    !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

/// The host of `[p5-001] ...`, of `p5-001 | ...` and of the tab of `parallel --tag`.
fn framed(before: &str) -> Option<&str> {
    let bracketed = before.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let (front, rest) = bracketed.or_else(|| before.split_once(['|', '\t']))?;
    let front = front.trim();
    // The kernel writes seconds, and which thread or processor a line is from, in brackets, too: `[12345.678901]`, `[T77]`.
    let is_address = front.split('.').count() == 4;
    let is_level = ["DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL"].contains(&front);
    let is_of_kernel = !front.starts_with(|c: char| c.is_ascii_alphabetic())
        || (front.starts_with(['T', 'C']) && front.bytes().skip(1).all(|byte| byte.is_ascii_digit()));
    (is_name(front) && (is_address || !is_of_kernel) && !is_level && is_dated(rest)).then_some(front)
}

/// The file that grep names before a line, with its colon: it may hold the log of one host.
fn file(before: &str) -> Option<&str> {
    let (front, rest) = before.split_once(':')?;
    let is_one = front.split('/').all(|part| part.is_empty() || is_name(part))
        && front.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '.')
        && front != "kernel";
    let number = rest.split_once(':').filter(|(number, _)| number.parse::<u64>().is_ok());
    let rest = number.map_or(rest, |(_, rest)| rest);
    (is_one && !rest.starts_with(' ') && is_dated(rest)).then_some(&before[..=front.len()])
}

/// Whether nothing is left before the message, or what the kernel and syslog write there: `[ 12.5] `, `[Thu Nov 20 `,
/// `2026-11-20T`, `kernel: `.
fn is_dated(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '[']);
    let is_day = || {
        let word = rest.split(' ').next().unwrap_or_default();
        word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    rest.is_empty()
        || rest.starts_with(|c: char| c.is_ascii_digit())
        || ["kernel:", "nvidia-nvswitch"].iter().any(|start| rest.starts_with(start))
        || is_day()
}

/// `NVRM: Xid (PCI:0000:53:00): 48, pid=1, ...`.
fn xid(line: &str) -> Option<(&'static str, &str, u32)> {
    let (before, rest) = line.split_once("Xid (")?;
    let (device, rest) = rest.split_once("): ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let number = rest.get(..digits)?.parse().ok()?;
    Some((if before.ends_with('S') { "SXid" } else { "Xid" }, device, number))
}

/// The Xid in `45, pid=7, name=python3, Ch 00000001 caused by previous Xid 149`: the driver ended a program because of it.
fn cause(line: &str) -> Option<u32> {
    let (_, rest) = line.rsplit_once(" caused by previous Xid ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..digits)?.parse().ok()
}

/// The PCI address in `0000:b3:00.0`, `(PCI:0000:b3:00):` and the like, without its function.
pub(super) fn device(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| matches!(c, '(' | ')' | ':' | ','));
    let word = word.strip_prefix("PCI:").unwrap_or(word);
    let word = word.split('.').next()?;
    let mut parts = word.split(':');
    let is_hex = |part: Option<&str>, lengths: &[usize]| {
        part.is_some_and(|part| {
            lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let is_one = is_hex(parts.next(), &[4, 8]) && is_hex(parts.next(), &[2]) && is_hex(parts.next(), &[2]);
    (is_one && parts.next().is_none()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::super::output::read;

    #[test]
    fn xids_are_counted_by_device_and_number() {
        let text = "[1.0] NVRM: Xid (PCI:0000:53:00): 48, pid=1, name=x, DBE\n\
                    NVRM: Xid (PCI:0000:53:00): 48, again\n\
                    nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48\n\
                    NVRM: Xid (PCI:0000:53:00): cut";
        let outputs = read(text).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        let rows: Vec<(&str, Option<f64>)> =
            output.rows.iter().map(|row| (row.what.as_str(), row.value)).collect();
        let expected = [("SXid 20034 of PCI:0000:06:00.0", 1.0), ("Xid 48 of PCI:0000:53:00", 2.0)];
        assert_eq!(rows, expected.map(|(what, value)| (what, Some(value))));
        let failures = [
            "PCI:0000:06:00.0 had SXid 20034, which speaks against hardware",
            "PCI:0000:53:00 had Xid 48, which speaks against hardware",
        ];
        assert_eq!(output.failures, failures);
        assert!(read("NVRM: Xid (PCI:").is_err());
    }

    /// As in https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1150
    #[test]
    fn the_xid_because_of_which_the_driver_ended_a_program_is_counted() {
        let ended = |gpu: &str, cause: u32| {
            format!(
                "NVRM: Xid (PCI:0000:{gpu}:00): 45, pid=7, name=python3, Ch 0000000c caused by previous Xid {cause}\n"
            )
        };
        let known = "NVRM: Xid (PCI:0000:ed:00): 31, pid=7, name=python3, MMU Fault\n";
        let outputs = read(&(ended("dc", 149) + &ended("dc", 149) + known + &ended("ed", 31))).expect("read");
        let rows: Vec<(&str, Option<f64>)> =
            outputs[0].rows.iter().map(|row| (row.what.as_str(), row.value)).collect();
        let expected = [
            ("Xid 45 of PCI:0000:dc:00", 2.0),
            ("Xid 31 of PCI:0000:ed:00", 1.0),
            ("Xid 45 of PCI:0000:ed:00", 1.0),
            ("Xid 149 of PCI:0000:dc:00, named as a cause", 2.0),
        ];
        assert_eq!(rows, expected.map(|(what, value)| (what, Some(value))));
        assert!(outputs[0].failures.is_empty());
    }

    #[test]
    fn a_lost_gpu_without_an_xid_is_a_failure() {
        let text = "[ 12.5] NVRM: The NVIDIA GPU 0000:c1:00.0\n\
                    NVRM: (PCI ID: 10de:2330) installed in this system has\n\
                    NVRM: fallen off the bus and is not responding to commands.\n\
                    [ 12.6] NVRM: The NVIDIA probe routine failed for 1 device(s).\n\
                    [ 13.0] NVRM: Xid (PCI:0000:44:00): 43, pid=1, name=python\n";
        let outputs = read(text).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        assert_eq!(
            output.failures,
            ["0000:c1:00 has fallen off the bus", "the driver could not start a GPU: `probe routine failed`"]
        );
        let of_gsp = "NVRM: GPU5 _kgspLogRpcTimeout: *** GSP Timeout ***\n";
        let outputs = read(of_gsp).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        assert_eq!(output.rows[0].what, "GSP timeout: GPU5");
    }

    /// As in https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/982
    #[test]
    fn answers_of_the_driver_are_failures_where_nothing_else_is() {
        let answer = "[3.5] NVRM: GPU2 nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)\n";
        let outputs = read(&answer.repeat(2)).expect("read");
        assert_eq!(
            (outputs[0].rows[0].what.as_str(), outputs[0].rows[0].value),
            ("NV_ERR_RESET_REQUIRED: GPU2", Some(2.0))
        );
        assert_eq!(outputs[0].failures, ["the driver answers `NV_ERR_RESET_REQUIRED` for GPU2"]);
        let xid = "[3.4] NVRM: Xid (PCI:0000:53:00): 48, pid=77, DBE\n";
        let outputs = read(&(xid.to_owned() + answer)).expect("read");
        assert_eq!(outputs[0].failures, ["PCI:0000:53:00 had Xid 48, which speaks against hardware"]);
    }

    #[test]
    fn a_gpu_that_the_driver_cannot_start_is_a_failure_with_its_address() {
        let text = "[ 1.0] NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x62:0x65:1842)\n\
                    [ 1.0] NVRM: GPU 0000:5d:00.0: rm_init_adapter failed, device minor number 3\n\
                    [ 2.0] NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x62:0x65:1842)\n";
        let outputs = read(text).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        let rows: Vec<(&str, Option<f64>)> =
            output.rows.iter().map(|row| (row.what.as_str(), row.value)).collect();
        assert_eq!(rows, [("RmInitAdapter failed: 0000:5d:00", Some(3.0))]);
        assert_eq!(output.failures, ["the driver could not start 0000:5d:00: `RmInitAdapter failed`"]);
        let unnamed = "NVRM: Xid (PCI:0000:44:00): 43, pid=1\nNVRM: rm_init_adapter failed for device bearing minor number 0\n";
        let outputs = read(unnamed).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        assert_eq!(
            output.failures,
            ["the driver could not start a GPU that is not named: `RmInitAdapter failed`"]
        );
    }

    #[test]
    fn gpus_at_one_address_of_several_hosts_are_kept_apart() {
        let messages = [
            ("p5-001", "NVRM: GPU 0000:53:00.0: GPU serial number is 1650523000000."),
            ("p5-002", "NVRM: Xid (PCI:0000:53:00): 48, pid=77, name=python, DBE"),
            ("p5-001", "NVRM: The GPU has fallen off the bus."),
        ];
        let forms: [fn(&str, &str) -> String; 11] = [
            |host, text| format!("Nov 20 10:00:01 {host} kernel: {text}\n"),
            |host, text| format!("2026-11-20T10:00:01.123456+00:00 {host} kernel: [  123.456] {text}\n"),
            |host, text| format!("{host}: [  123.456] {text}\n"),
            // pdsh before `dmesg --notime`, `dmesg --time-format iso` and `journalctl -o cat` or `short-iso`
            |host, text| format!("{host}: {text}\n"),
            |host, text| format!("{host}: 2026-11-20T10:00:01,123456+00:00 {text}\n"),
            |host, text| format!("{host}: kernel: {text}\n"),
            |host, text| format!("{{\"_HOSTNAME\":\"{host}\",\"PRIORITY\":\"3\",\"MESSAGE\":\"{text}\"}}\n"),
            // what collectors put before lines, and syslog of RFC 5424
            |host, text| format!("[{host}] [12345.678901] {text}\n"),
            |host, text| format!("{host}  | [Thu Nov 20 10:00:01 2026] {text}\n"),
            |host, text| format!("{host}\t[  123.456] {text}\n"),
            |host, text| format!("<3>1 2026-11-20T10:00:01.1Z {host} kernel - - - {text}\n"),
        ];
        for form in forms {
            let text: String = messages.iter().map(|(host, message)| form(host, message)).collect();
            let outputs = read(&text).expect("read");
            let [output] = &outputs[..] else { panic!("{outputs:?}") };
            let rows: Vec<&str> = output.rows.iter().map(|row| row.what.as_str()).collect();
            let expected = ["Xid 48 of PCI:0000:53:00 on p5-002", "fallen off the bus: 0000:53:00 on p5-001"];
            assert_eq!(rows, expected, "{text}");
            let failures = [
                "0000:53:00 on p5-001 has fallen off the bus",
                "PCI:0000:53:00 on p5-002 had Xid 48, which speaks against hardware",
            ];
            assert_eq!(output.failures, failures, "{text}");
        }
    }

    #[test]
    fn gpus_at_one_address_in_several_files_of_grep_are_kept_apart() {
        let xid = "NVRM: Xid (PCI:0000:53:00): 48, pid=77, DBE";
        for (one, other) in
            [("p5-1", "p5-2"), ("logs/p5-1/dmesg.txt", "logs/p5-2/dmesg.txt"), ("/a.log", "/b.log")]
        {
            for (front, behind) in [("", "[ 12.5] "), ("7:", "[12345.678901] "), ("7:", "")] {
                let text = format!("{one}:{front}{behind}{xid}\n{other}:{front}{behind}{xid}\n");
                let outputs = read(&text).expect("read");
                let rows: Vec<&str> = outputs[0].rows.iter().map(|row| row.what.as_str()).collect();
                let row = |file: &str| format!("Xid 48 of PCI:0000:53:00 in {file}");
                assert_eq!(rows, [row(one), row(other)], "{text}");
            }
        }
    }

    #[test]
    fn what_looks_like_a_label_names_no_host() {
        let xid = "Xid (PCI:0000:53:00): 48, DBE";
        let fronts = [
            "",
            "kernel: ",
            "kernel:",
            "[    1.5] ",
            "[12345.678901] ",
            "[T77] ",
            "[ 1.5][T77] ",
            "kern  :err   : [ 1.5] ",
            "[gpu-health] [WARN] XID: ",
            "[ERROR] 2026-11-20T10:00:01 ",
            "10:00:01 ",
            "nvidia-nvswitch3: S",
            "2026-11-20T10:00:01,1+00:00 ",
        ];
        for front in fronts {
            let driver = if front.ends_with('S') { "" } else { "NVRM: " };
            assert_eq!(super::host(&format!("{front}{driver}{xid}")), "", "{front}");
        }
        assert_eq!(super::host(&format!("p5-1: nvidia-nvswitch3: S{xid}")), "p5-1");
    }

    #[test]
    fn a_process_that_is_called_like_a_line_of_another_host_names_none() {
        let xid = |name: &str| format!("[ 12.5] NVRM: Xid (PCI:0000:53:00): 48, pid=77, name={name}, DBE\n");
        let outputs = read(&(xid("a p5-9 kernel:") + &xid("python"))).expect("read");
        let rows: Vec<&str> = outputs[0].rows.iter().map(|row| row.what.as_str()).collect();
        assert_eq!(rows, ["Xid 48 of PCI:0000:53:00"]);
    }

    #[test]
    fn a_lost_gpu_that_no_line_before_names_gets_no_other_gpus_name() {
        let text =
            "NVRM: Xid (PCI:0000:44:00): 43, pid=1\nNVRM: a\nNVRM: b\nNVRM: c\nNVRM: fallen off the bus\n";
        let outputs = read(text).expect("read");
        let [output] = &outputs[..] else { panic!("of one program") };
        assert_eq!(output.failures, ["a GPU that is not named has fallen off the bus"]);
    }
}
