//! The probe's script under a real bash: with tools that report, with tools that fail, and with none at all.

use crate::profile_script::trusted_folder;
use cluster::probe::ProbeRequest;
use config::facts::FACTS;
use config::suite::{PROBED_PROGRAMS, PYTORCH};
use model::artefact::HOST_ENGINE;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

struct Node {
    folder: tempfile::TempDir,
}

type ProbeAnswer = BTreeMap<String, Vec<String>>;

impl Node {
    fn new() -> Node {
        let node = Node { folder: trusted_folder() };
        fs::create_dir_all(node.at("bin")).expect("made");
        node
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn tool(&self, name: &str, text: &str) {
        let path = self.at("bin").join(name);
        fs::write(&path, format!("#!/bin/bash\n{text}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    }

    fn ask(&self) -> ProbeRequest {
        let path = |name: &str| self.at(name).display().to_string();
        ProbeRequest {
            node: "n1".into(),
            shared: path("shared/not/there/yet"),
            nccl_tests: path("nccl-tests"),
            counters: path("sys/{host}"),
            nics: 2,
            pause_s: 0,
            nsys: "find".into(),
            programs: Vec::new(),
            environment: BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), path("lib"))]),
        }
    }

    /// Runs it with these tools before the machine's own, or with these alone.
    fn run(&self, ask: &ProbeRequest, alone: bool) -> String {
        let argv = ask.argv();
        let own = self.at("bin").display().to_string();
        let path = match alone {
            true => own,
            false => format!("{own}:{}", std::env::var("PATH").unwrap_or_default()),
        };
        let shell = argv.iter().position(|word| word == "bash").expect("a shell");
        let mut command = Command::new("/bin/bash");
        command.args(&argv[shell + 1..]).env_clear().envs(&ask.environment).stdin(Stdio::null());
        command.env("PATH", path);
        command
            .env("NSYS_VENDOR_FOLDER", self.at("nvidia"))
            .env("NCCL_DEBUG", "INFO")
            .env("TOKEN", "planted");
        let output = command.current_dir(self.folder.path()).output().expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }
}

/// By word and key: `fact gpus`, `item nics`, `none cuda`. Every line bears the mark, and the last is `end`.
fn parse_answer(text: &str) -> ProbeAnswer {
    let mut reported = ProbeAnswer::new();
    assert!(text.ends_with("harness-probe\tend\n"), "{text}");
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(4, '\t').collect();
        assert_eq!(fields[0], "harness-probe", "{line}");
        assert!(line.len() < 300, "{line}");
        let key = fields[1..fields.len().min(3)].join(" ");
        reported.entry(key).or_default().extend(fields.get(3).map(|value| (*value).to_owned()));
    }
    for key in reported.keys() {
        let Some((word, key)) = key.split_once(' ') else { continue };
        let is_declared = FACTS.iter().any(|fact| fact.name == key) || (word != "fact" && key == "processes");
        assert!(is_declared || ["clock", "host"].contains(&word), "no such fact is declared: {word} {key}");
    }
    reported
}

const SMI: &str = r#"case "$*" in
*query-gpu*clocks*) echo '0, NVIDIA H100 80GB HBM3, 570.133.20, Enabled, 0, 1980, 2619, 0x0000000000000001'
  echo '1, NVIDIA H100 80GB HBM3, 570.133.20, Enabled, 0, 1980, 2619, 0x0000000000000001' ;;
*query-compute-apps*) echo '4711, python3' ;;
*) exit 1 ;;
esac"#;

fn equip(node: &Node) {
    node.tool("nvidia-smi", SMI);
    node.tool("dmesg", "echo '[1.0] NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus'; echo other");
    node.tool("fi_info", "echo 'fi_info: 2.1.0'; echo 'libfabric: 2.1.0amzn4.0'; echo 'libfabric api: 2.1'");
    node.tool("modinfo", "echo 2.17.2g");
    node.tool("systemctl", "echo active");
    node.tool("enroot", "echo 3.5.0");
    node.tool("srun", "echo '      --container-image=IMAGE'");
    for device in ["rdmap79s0", "rdmap80s0"] {
        fs::create_dir_all(node.at(&format!("sys/n1/{device}/ports/1"))).expect("made");
    }
    fs::write(node.at("sys/n1/rdmap79s0/ports/1/state"), "4: ACTIVE\n").expect("written");
    fs::write(node.at("sys/n1/rdmap80s0/ports/1/state"), "1: DOWN\n").expect("written");
    fs::create_dir_all(node.at("nccl-tests")).expect("made");
    fs::write(node.at("nccl-tests/all_reduce_perf"), "").expect("written");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(node.at("nccl-tests/all_reduce_perf"), executable.clone()).expect("made executable");
    fs::write(node.at("nccl-tests/README_perf"), "").expect("written");
    fs::create_dir_all(node.at("lib")).expect("made");
    fs::write(node.at("lib/libnccl.so.2.27.7"), "").expect("written");
    fs::write(node.at("lib/libnccl-profiler-inspector.so"), "").expect("written");
    let plugin = b"\x7fELF\0\0NET/OFI Initializing aws-ofi-nccl 1.16.2-aws\n\0";
    fs::write(node.at("lib/libnccl-net.so"), plugin).expect("written");
    for version in ["2024.10.1", "2024.9.1"] {
        let folder = node.at(&format!("nvidia/nsight-systems/{version}/target-linux-x64"));
        fs::create_dir_all(folder.join("plugins/efa_metrics")).expect("made");
        fs::write(
            folder.join("nsys"),
            format!("#!/bin/bash\necho 'NVIDIA Nsight Systems version {version}.23-1v0'\n"),
        )
        .expect("written");
        fs::set_permissions(folder.join("nsys"), executable.clone()).expect("made executable");
    }
}

#[test]
fn everything_that_tools_report_is_reported() {
    let node = Node::new();
    equip(&node);
    fs::create_dir_all(node.at("shared")).expect("made");
    let output = parse_answer(&node.run(&node.ask(), false));
    let of = |key: &str| {
        output.get(key).map(|values| values.join("; ")).unwrap_or_else(|| panic!("{key}: {output:#?}"))
    };
    assert_eq!(output["item gpus"].len(), 2);
    assert_eq!(of("item processes"), "4711, python3");
    assert_eq!(of("item xid"), "[1.0] NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus");
    assert_eq!(of("item nics"), "rdmap79s0; rdmap80s0");
    let own = fs::read_to_string("/proc/sys/kernel/hostname").expect("read");
    assert_eq!(of("host name"), own.trim());
    assert_eq!(of("item nics_down"), "rdmap80s0 1: DOWN");
    assert_eq!(of("fact efa"), "2.17.2g");
    assert_eq!(of("fact libfabric"), "2.1.0amzn4.0");
    assert_eq!(of("fact ofi_nccl"), "1.16.2-aws");
    assert_eq!(of("fact nccl"), "2.27.7");
    assert!(of("fact nccl_inspector").ends_with("/lib/libnccl-profiler-inspector.so"));
    assert_eq!(of("item nccl_tests"), "all_reduce_perf");
    // By number, as a job finds it.
    assert_eq!(of("fact nsys"), "2024.10.1.23-1v0");
    assert!(of("fact nsys_path").ends_with("/nvidia/nsight-systems/2024.10.1/target-linux-x64/nsys"));
    assert_eq!(of("item nsys_plugins"), "efa_metrics");
    assert_eq!(of("fact fabric_manager"), "active");
    assert_eq!(of("item containers"), "enroot 3.5.0; pyxis");
    assert_eq!(of("fact shared"), "writable");
    assert!(of("fact shared_free").parse::<u64>().is_ok());
    assert_eq!(of("item environment"), "NCCL_DEBUG=INFO", "nothing else of the environment");
    let moment = |key: &str| of(key).parse::<f64>().expect("seconds");
    assert!(moment("clock begin") > 1.5e9 && moment("clock end") >= moment("clock begin"));
}

#[test]
fn where_there_is_no_tool_nothing_is_reported_and_nothing_is_0() {
    let node = Node::new();
    let mut ask = node.ask();
    ask.nsys = "/no/such/nsys".into();
    let output = parse_answer(&node.run(&ask, true));
    for fact in ["gpus", "processes", "nics", "nics_down", "libfabric", "ofi_nccl", "nccl_tests", "nsys"] {
        let why = output.get(&format!("none {fact}")).unwrap_or_else(|| panic!("{fact}: {output:#?}"));
        assert!(!why[0].is_empty());
        assert!(
            !output.contains_key(&format!("fact {fact}")) && !output.contains_key(&format!("list {fact}"))
        );
    }
    assert!(output["none gpus"][0].contains("no nvidia-smi"));
    assert!(output["none nsys"][0].contains("/no/such/nsys"));
}

#[test]
fn the_plugin_of_the_inspector_is_the_one_that_the_inventory_names() {
    let node = Node::new();
    equip(&node);
    let own = node.at("own/libinspector.so");
    let mut ask = node.ask();
    ask.programs = vec![node.at("bin").display().to_string(), own.display().to_string()];
    let output = parse_answer(&node.run(&ask, false));
    let why = format!("no such file, or not readable: {}", own.display());
    assert_eq!(output["none nccl_inspector"], [why]);
    fs::create_dir_all(node.at("own")).expect("made");
    fs::write(&own, "").expect("written");
    let output = parse_answer(&node.run(&ask, false));
    assert_eq!(output["fact nccl_inspector"], [own.display().to_string()]);
    fs::remove_file(node.at("lib/libnccl-profiler-inspector.so")).expect("removed");
    let output = parse_answer(&node.run(&node.ask(), false));
    assert!(
        output["none nccl_inspector"][0].starts_with("no libnccl-profiler-inspector.so in "),
        "{output:?}"
    );
}

#[test]
fn a_tool_that_fails_says_that_it_is_broken() {
    let node = Node::new();
    node.tool("nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not communicate'; exit 9");
    let output = parse_answer(&node.run(&node.ask(), false));
    assert_eq!(
        output["bad gpus"],
        ["nvidia-smi ended with 9: NVIDIA-SMI has failed because it could not communicate"]
    );
    assert!(output["none processes"][0].starts_with("nvidia-smi cannot list processes"));
}

#[test]
fn which_hardware_it_is_is_reported_and_what_has_no_number_is_left_out() {
    let node = Node::new();
    node.tool(
        "nvidia-smi",
        "case \"$*\" in *uuid*) echo '0, GPU-5e3fa1b2-0000-1111-2222-333344445555, 1650123456789, 96.00.74.00.1F'\n\
         echo '1, GPU-6e3fa1b2-0000-1111-2222-333344445555, [N/A], 96.00.74.00.1F' ;; *) exit 1 ;; esac",
    );
    for (device, guid) in [("rdmap79s0", Some("fe80:0000:0000:0001")), ("rdmap80s0", None)] {
        fs::create_dir_all(node.at(&format!("sys/n1/{device}"))).expect("made");
        if let Some(guid) = guid {
            fs::write(node.at(&format!("sys/n1/{device}/node_guid")), format!("{guid}\n")).expect("written");
            fs::write(node.at(&format!("sys/n1/{device}/fw_ver")), "0.0.0.0\n").expect("written");
            fs::create_dir_all(node.at("pci/0000:4f:00.0")).expect("made");
            let device = node.at(&format!("sys/n1/{device}/device"));
            std::os::unix::fs::symlink(node.at("pci/0000:4f:00.0"), device).expect("linked");
        }
    }
    let output = parse_answer(&node.run(&node.ask(), false));
    assert_eq!(
        output["item gpu_ids"],
        [
            "gpu0 GPU-5e3fa1b2-0000-1111-2222-333344445555 1650123456789",
            "gpu1 GPU-6e3fa1b2-0000-1111-2222-333344445555"
        ]
    );
    assert_eq!(output["item gpu_vbios"], ["96.00.74.00.1F"]);
    assert_eq!(output["item nic_ids"], ["rdmap79s0 fe80:0000:0000:0001 0000:4f:00.0"]);
    assert_eq!(output["item nic_firmware"], ["0.0.0.0"]);
    // A driver that knows none of it, and devices without a number.
    node.tool("nvidia-smi", "echo 'Field \"uuid\" is not a valid field to query.'; exit 2");
    fs::remove_dir_all(node.at("sys/n1/rdmap79s0")).expect("removed");
    let output = parse_answer(&node.run(&node.ask(), false));
    assert!(output["none gpu_ids"][0].starts_with("nvidia-smi reports none: Field"), "{output:#?}");
    assert_eq!(output["none nic_ids"], ["no device has one"]);
}

#[test]
fn a_library_whose_name_reports_no_version_may_hold_one() {
    let node = Node::new();
    fs::create_dir_all(node.at("lib")).expect("made");
    fs::write(node.at("lib/libnccl.so.2"), b"\x7fELF\0NCCL version 2.26.2+cuda12.8\0").expect("written");
    assert_eq!(parse_answer(&node.run(&node.ask(), false))["fact nccl"], ["2.26.2"]);
}

/// Plugins of AWS's own images are built from a checkout.
#[test]
fn a_plugin_that_was_built_from_a_checkout_is_there() {
    let node = Node::new();
    fs::create_dir_all(node.at("lib")).expect("made");
    for version in ["git-6e504db", "GitHub-dev"] {
        let text = format!("\x7fELF\0NET/OFI Initializing aws-ofi-nccl {version}\n\0");
        fs::write(node.at("lib/libnccl-net.so"), text).expect("written");
        let why = &parse_answer(&node.run(&node.ask(), false))["none ofi_nccl"][0];
        assert!(why.starts_with(&format!("aws-ofi-nccl {version} of /")), "{why}");
    }
    fs::write(node.at("lib/libnccl-net-ofi.so"), "Initializing aws-ofi-nccl 1.16.2-aws\n").expect("written");
    assert_eq!(parse_answer(&node.run(&node.ask(), false))["fact ofi_nccl"], ["1.16.2-aws"]);
}

#[test]
fn an_nsys_is_called_by_the_name_that_a_job_calls_it_by() {
    let node = Node::new();
    node.tool("many", "[[ ${0##*/} == nsys ]] && echo 'version 2025.3.1'");
    std::os::unix::fs::symlink(node.at("bin/many"), node.at("bin/nsys")).expect("linked");
    let ask = ProbeRequest { nsys: node.at("bin/nsys").display().to_string(), ..node.ask() };
    let output = parse_answer(&node.run(&ask, false));
    assert_eq!(output["fact nsys"], ["2025.3.1"]);
    assert!(output["fact nsys_path"][0].ends_with("bin/many"), "{output:?}");
    node.tool("many", "exit 1");
    let why = &self::parse_answer(&node.run(&ask, false))["none nsys"][0];
    assert!(why.starts_with("it prints no version"), "no GPU is worse for it: {why}");
}

#[test]
fn programs_of_tests_of_a_node_are_listed_and_one_of_another_maker_is_not() {
    let node = Node::new();
    let listed = |node: &Node| {
        parse_answer(&node.run(&node.ask(), true)).remove("item node_programs").unwrap_or_default()
    };
    PROBED_PROGRAMS.into_iter().for_each(|program| node.tool(program, "exit 0"));
    assert_eq!(listed(&node)[..PROBED_PROGRAMS.len()], PROBED_PROGRAMS);
    for (code, found) in [(0, true), (1, false)] {
        node.tool("python3", &format!("exit {code}"));
        assert_eq!(listed(&node).contains(&PYTORCH.to_owned()), found);
    }
    // ImageMagick's `stream`, as Debian links it.
    node.tool("stream-im6.q16", "exit 0");
    fs::remove_file(node.at("bin/stream")).expect("removed");
    std::os::unix::fs::symlink(node.at("bin/stream-im6.q16"), node.at("bin/stream")).expect("linked");
    let readlink = ["/usr/bin/readlink", "/bin/readlink"].into_iter().find(|path| Path::new(path).exists());
    std::os::unix::fs::symlink(readlink.expect("coreutils"), node.at("bin/readlink")).expect("linked");
    assert!(!listed(&node).contains(&"stream".to_owned()), "{:?}", listed(&node));
}

#[test]
fn the_daemon_of_dcgm_is_absent_only_where_dcgmi_says_that_it_reaches_none() {
    let node = Node::new();
    let runs = |node: &Node| {
        let listed = parse_answer(&node.run(&node.ask(), false)).remove("item node_programs");
        listed.unwrap_or_default().contains(&HOST_ENGINE.to_owned())
    };
    let none = "[[ $* != 'discovery -l' ]] || echo 'Error: Unable to connect to host engine. Host engine connection \
                invalid/disconnected.'; exit 235";
    for (text, expected) in
        [("echo '8 GPUs found.'", true), (none, false), ("echo 'Error: other'; exit 1", true)]
    {
        node.tool("dcgmi", text);
        assert_eq!(runs(&node), expected, "{text}");
    }
    // A machine may have a dcgmi of its own, so that these tools are alone.
    fs::remove_file(node.at("bin/dcgmi")).expect("removed");
    let listed = parse_answer(&node.run(&node.ask(), true)).remove("item node_programs");
    assert!(!listed.unwrap_or_default().contains(&HOST_ENGINE.to_owned()));
}

#[test]
fn programs_that_every_user_can_write_are_listed_by_the_first_open_place() {
    let node = Node::new();
    let set = |name: &str, mode: u32| {
        fs::set_permissions(node.at(name), fs::Permissions::from_mode(mode)).expect("set");
    };
    for name in ["open/bin", "mine", "nccl-tests"] {
        fs::create_dir_all(node.at(name)).expect("made");
        set(name, 0o755);
    }
    node.tool("torchrun", "exit 0");
    set("bin", 0o755);
    fs::copy(node.at("bin/torchrun"), node.at("open/bin/mpirun")).expect("copied");
    std::os::unix::fs::symlink(node.at("open/bin/mpirun"), node.at("mine/mpirun")).expect("linked");
    fs::write(node.at("nccl-tests/all_reduce_perf"), "").expect("written");
    set("nccl-tests/all_reduce_perf", 0o755);
    let place = |name: &str| node.at(name).display().to_string();
    let programs: Vec<String> =
        ["nccl-tests", "bin/torchrun", "open/bin/mpirun", "mine/mpirun", "none"].map(place).to_vec();
    let open = || {
        let ask = ProbeRequest { programs: programs.clone(), ..node.ask() };
        parse_answer(&node.run(&ask, false)).remove("item open_programs").unwrap_or_default()
    };
    assert_eq!(open(), [] as [&str; 0]);
    set("open", 0o777);
    assert_eq!(open(), [place("open")]);
    // No other user can replace what is there.
    set("open", 0o1777);
    assert_eq!(open(), [] as [&str; 0]);
    set("bin/torchrun", 0o777);
    set("nccl-tests/all_reduce_perf", 0o757);
    assert_eq!(open(), ["nccl-tests/all_reduce_perf", "bin/torchrun"].map(place));
    set("nccl-tests", 0o777);
    assert_eq!(open(), ["nccl-tests", "bin/torchrun"].map(place));
}

#[test]
fn an_older_driver_is_asked_for_less() {
    let node = Node::new();
    node.tool(
        "nvidia-smi",
        "case \"$*\" in *clocks*) echo 'Field \"x\" is not a valid field to query.'; exit 2 ;;\n\
         *query-gpu*) echo '0, NVIDIA A100, 470.1' ;; *) exit 2 ;; esac",
    );
    assert_eq!(parse_answer(&node.run(&node.ask(), false))["item gpus"], ["0, NVIDIA A100, 470.1"]);
}

#[test]
fn nics_that_come_late_are_waited_for() {
    let node = Node::new();
    fs::create_dir_all(node.at("sys/n1/rdmap79s0")).expect("made");
    // What waits makes the second one appear.
    node.tool("sleep", &format!("mkdir -p {}", node.at("sys/n1/rdmap80s0").display()));
    let output = parse_answer(&node.run(&node.ask(), false));
    assert_eq!(output["item nics"], ["rdmap79s0", "rdmap80s0"]);
    assert_eq!(output["none nics_down"], ["no device reports its link state"]);
}

#[test]
fn a_value_is_one_bounded_line_whatever_a_tool_prints() {
    let node = Node::new();
    let long = "x".repeat(5000);
    node.tool("nvidia-smi", &format!("printf '0,\\ta\\033[31m\\r{long}\\n\\xff\\xfe1, b\\n'"));
    let path = node.at("bin").display().to_string();
    let argv = node.ask().argv();
    let mut command = Command::new("/usr/bin/env");
    command.args(&argv[1..]).env("PATH", format!("{path}:{}", std::env::var("PATH").unwrap_or_default()));
    let output = command.stdin(Stdio::null()).output().expect("runs");
    for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        assert!(line.starts_with(b"harness-probe\t") && line.len() < 300);
        assert!(!line[14..].iter().any(|byte| *byte < 0x20 && *byte != b'\t'), "{line:?}");
    }
}

#[test]
fn the_shared_folder_is_reported_by_what_is_there() {
    let node = Node::new();
    let file = node.at("file");
    fs::write(&file, "").expect("written");
    let state = |shared: &Path| {
        let ask = ProbeRequest { shared: shared.display().to_string(), ..node.ask() };
        parse_answer(&node.run(&ask, false))["fact shared"][0].clone()
    };
    assert_eq!(state(&node.at("not/there")), "writable");
    assert!(state(&file).starts_with("no folder: "));
    // No user writes there, root neither: it is refused by what it is mounted as.
    let odd = state(Path::new("/proc/none"));
    assert!(odd == "writable" || odd.starts_with("not writable: /proc"), "{odd}");
}

#[test]
fn it_writes_nothing() {
    let node = Node::new();
    equip(&node);
    let files = || {
        let mut found = Vec::new();
        let mut open = vec![node.folder.path().to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).expect("read").flatten() {
                if entry.path().is_dir() {
                    open.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found.sort();
        found
    };
    let before = files();
    node.run(&node.ask(), false);
    assert_eq!(files(), before);
}

#[test]
fn nsys_of_an_arm64_node_is_found_with_its_plugins() {
    let node = Node::new();
    equip(&node);
    for version in ["2024.10.1", "2024.9.1"] {
        let folder = node.at(&format!("nvidia/nsight-systems/{version}"));
        fs::rename(folder.join("target-linux-x64"), folder.join("target-linux-sbsa-armv8")).expect("renamed");
    }
    let output = parse_answer(&node.run(&node.ask(), false));
    let path = &output["fact nsys_path"][0];
    assert!(path.ends_with("/nsight-systems/2024.10.1/target-linux-sbsa-armv8/nsys"), "{path}");
    assert!(output["item nsys_plugins"] == ["efa_metrics"], "{output:#?}");
}

#[test]
fn a_node_without_the_plugin_shows_no_version_of_it_though_libfabric_has_one() {
    let node = Node::new();
    equip(&node);
    fs::remove_file(node.at("lib/libnccl-net.so")).expect("removed");
    let output = parse_answer(&node.run(&node.ask(), false));
    assert_eq!(output["fact libfabric"], ["2.1.0amzn4.0"]);
    assert!(output.contains_key("none ofi_nccl") && !output.contains_key("fact ofi_nccl"), "{output:#?}");
}

#[test]
fn devices_of_other_makers_are_not_counted_where_there_are_efa_devices() {
    let node = Node::new();
    equip(&node);
    let maker = |device: &str, vendor: &str| {
        fs::create_dir_all(node.at(&format!("sys/n1/{device}/device"))).expect("made");
        fs::create_dir_all(node.at(&format!("sys/n1/{device}/ports/1"))).expect("made");
        fs::write(node.at(&format!("sys/n1/{device}/device/vendor")), format!("{vendor}\n"))
            .expect("written");
    };
    maker("rdmap79s0", "0x1d0f");
    maker("rdmap80s0", "0x1d0f");
    for device in ["ibp115s0f0", "ibp116s0f0"] {
        maker(device, "0x15b3");
        fs::write(node.at(&format!("sys/n1/{device}/ports/1/state")), "1: DOWN\n").expect("written");
    }
    let listed = |node: &Node| parse_answer(&node.run(&node.ask(), false));
    let reported = listed(&node);
    assert_eq!(reported["item nics"], ["rdmap79s0", "rdmap80s0"]);
    assert_eq!(reported["item nics_down"], ["rdmap80s0 1: DOWN"]);
    assert_eq!(reported["item other_rdma_devices"], ["ibp115s0f0", "ibp116s0f0"]);
    // A machine without EFA: its devices are what it has.
    maker("rdmap79s0", "0x15b3");
    maker("rdmap80s0", "0x15b3");
    assert_eq!(listed(&node)["item nics"].len(), 4);
}

#[test]
fn the_tools_of_flows_are_tried_for_cuda_and_srd() {
    let node = Node::new();
    let listed = |node: &Node| {
        parse_answer(&node.run(&node.ask(), true)).remove("item flow_tools").unwrap_or_default()
    };
    assert_eq!(listed(&node), [] as [&str; 0]);
    node.tool(
        "fi_rma_bw",
        "echo 'fi_getinfo(): common/shared.c:790, ret=-61 (No data available)' >&2; exit 61",
    );
    node.tool(
        "ib_write_bw",
        "[[ $1 == --help ]] && echo '  --use_cuda=<cuda device id>' || echo ' Did not detect devices '; exit 1",
    );
    assert_eq!(
        listed(&node),
        ["fi_rma_bw", "fi_rma_bw:cuda", "ib_write_bw", "ib_write_bw:cuda", "ib_write_bw:srd"]
    );
    // As Debian's perftest 4.5, and fabtests without CUDA.
    node.tool(
        "fi_rma_bw",
        "echo 'ft_hmem_init(): common/shared.c:583, ret=-38 (Function not implemented)' >&2; exit 38",
    );
    node.tool(
        "ib_write_bw",
        "[[ $1 == --help ]] && echo 'Usage:' || echo ' SRD connection only possible in SEND/READ verbs' >&2; exit 1",
    );
    assert_eq!(listed(&node), ["fi_rma_bw", "ib_write_bw"]);
}

#[test]
fn libraries_that_a_program_of_nccl_tests_does_not_find_are_listed() {
    let node = Node::new();
    equip(&node);
    node.tool("ldd", "echo '  libnccl.so.2 => not found'; echo '  libc.so.6 => /lib/libc.so.6 (0x1)'");
    node.tool("mpirun", "exit 0");
    let output = parse_answer(&node.run(&node.ask(), false));
    assert_eq!(output["item nccl_tests_missing_libraries"], ["libnccl.so.2"]);
    let mpirun = format!("mpirun {}", node.at("bin/mpirun").display());
    assert!(output["item launchers"].contains(&mpirun), "{output:#?}");
}
