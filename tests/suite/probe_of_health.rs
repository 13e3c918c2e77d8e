//! The probe's own script on this machine, with programs beside it that print what real drivers do: what it makes of
//! healthy GPUs, of broken ones, and of answers that make no sense.

use crate::project::{Project, ran};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

/// What `nvidia-smi -q` of driver 565 prints of one H100, as far as the probe reads it.
const HEALTHY: &str = "
Attached GPUs                             : 1
GPU 00000000:18:00.0
    Persistence Mode                      : Enabled
    GPU Reset Status
        Reset Required                    : No
    PCI
        GPU Link Info
            Link Width
                Max                       : 16x
        Bridge Chip
            Type                          : N/A
        Replays Since Reset               : 0
        Replay Number Rollovers           : 0
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            DRAM Uncorrectable            : 0
        Aggregate
            SRAM Correctable              : 1
            SRAM Uncorrectable Parity     : 0
            SRAM Uncorrectable SEC-DED    : 0
            DRAM Correctable              : 2
            DRAM Uncorrectable            : 0
            SRAM Threshold Exceeded       : No
        Aggregate Uncorrectable SRAM Sources
            SRAM L2                       : 0
    Retired Pages
        Double Bit ECC                    : N/A
        Pending Page Blacklist            : N/A
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 0
        Pending                           : No
        Remapping Failure Occurred        : No
        Bank Remap Availability Histogram
            Max                           : 2560 bank(s)
            High                          : 0 bank(s)
            Partial                       : 0 bank(s)
            Low                           : 0 bank(s)
            None                          : 0 bank(s)
    GPU Power Readings
        Power Draw                        : 100.89 W
        Current Power Limit               : 700.00 W
        Requested Power Limit             : 700.00 W
        Default Power Limit               : 700.00 W
    Module Power Readings
        Current Power Limit               : N/A
        Default Power Limit               : N/A
    Applications Clocks
        Graphics                          : 1980 MHz
        Memory                            : 2619 MHz
    Default Applications Clocks
        Graphics                          : 1095 MHz
        Memory                            : 2619 MHz
    Fabric
        State                             : Completed
        Status                            : Success
";

const INVENTORY: &str = "kind = \"real\"\ninstance = \"p5\"\nnodes = \"here\"\nreach = { via = \"local\" }\n";

/// The facts of this machine where `nvidia-smi -q` prints that.
fn facts(health: &str) -> Value {
    facts_with(health, "cat 'health.txt'", "")
}

/// The same where `nvidia-smi -q` is that command, beside the kernel's log.
fn facts_with(health: &str, query: &str, log: &str) -> Value {
    facts_beside(health, query, log, &[])
}

/// The same beside more programs, by what their scripts do.
fn facts_beside(health: &str, query: &str, log: &str, programs: &[(&str, &str)]) -> Value {
    let project = Project::new();
    let folder = project.path().to_owned();
    let shown = folder.display();
    project.write(
        "inventory/here.toml",
        &format!("{INVENTORY}paths = {{ shared = \"{shown}/shared\", counters = \"{shown}/none\" }}\n"),
    );
    project.write("health.txt", health);
    project.write(
        "bin/nvidia-smi",
        &format!(
            "#!/bin/bash\ncase $1 in\n-q) cd '{shown}' && {query} ;;\nnvlink) printf '\\t Link 0: 26.562 GB/s\\n\\t Link 1: <inactive>\\n' ;;\n\
             --query-gpu=index,name*) echo '0, NVIDIA H100 80GB HBM3, 565.57.01' ;;\n*) exit 2 ;;\nesac\n"
        ),
    );
    project.write("log.txt", log);
    project.write("bin/dmesg", &format!("#!/bin/bash\ncat '{shown}/log.txt'\n"));
    for (name, script) in programs {
        project.write(&format!("bin/{name}"), &format!("#!/bin/bash\n{script}\n"));
    }
    for name in ["nvidia-smi", "dmesg"].into_iter().chain(programs.iter().map(|(name, _)| *name)) {
        let program = folder.join("bin").join(name);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
    }
    let path = format!("{shown}/bin:{}", project.programs_but("nvidia-smi").display());
    let mut command = project.command(&["inventory", "probe", "--inventory", "here", "--json"]);
    let ran = ran(command.env("PATH", path).output().expect("starts"));
    let probe: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.all()));
    probe["nodes"][0]["facts"].clone()
}

fn changed(pairs: &[(&str, &str)]) -> String {
    let mut text = HEALTHY.to_owned();
    for (good, bad) in pairs {
        assert!(text.contains(good), "{good}");
        text = text.replacen(good, bad, 1);
    }
    text
}

#[test]
fn what_a_driver_reports_of_a_healthy_gpu_is_read_as_healthy() {
    let facts = facts(HEALTHY);
    for (fact, expected) in [
        ("gpu_persistence", serde_json::json!("Enabled")),
        ("gpu_fabric", serde_json::json!("Completed, Success")),
        ("gpu_power_limits", serde_json::json!("700.00 W")),
        ("gpu_app_clocks", serde_json::json!("1980/2619")),
        ("rows_remapped", serde_json::json!(0)),
        ("ecc_corrected", serde_json::json!(3)),
        ("nvlinks", serde_json::json!(["1 at 26.562 GB/s", "1 at <inactive>"])),
    ] {
        assert_eq!(facts[fact], expected, "{fact}: {facts}");
    }
    for fact in [
        "gpu_errors",
        "gpu_power_reduced",
        "sram_errors",
        "rows_pending",
        "rows_spent",
        "pcie_replays",
        "pci_lost",
    ] {
        assert_eq!(facts[fact], serde_json::json!([]), "{fact}: {facts}");
    }
    for fact in ["cpus", "memory", "clock_source", "swap", "ethernet", "open_files"] {
        assert!(!facts[fact].is_null(), "{fact}: {facts}");
    }
}

#[test]
fn each_fault_that_a_driver_reports_is_in_the_fact_that_is_asked_for() {
    let bad = changed(&[
        ("Reset Required                    : No", "Reset Required                    : Yes"),
        ("Replays Since Reset               : 0", "Replays Since Reset               : 900000000000"),
        (
            "SRAM Uncorrectable SEC-DED    : 0\n            DRAM Correctable              : 2",
            "SRAM Uncorrectable SEC-DED    : 4\n            DRAM Correctable              : 2",
        ),
        ("        Uncorrectable Error               : 0", "        Uncorrectable Error               : 12"),
        ("        Pending                           : No", "        Pending                           : Yes"),
        ("Low                           : 0 bank(s)", "Low                           : 1 bank(s)"),
        (
            "        Power Draw                        : 100.89 W",
            "        Power Draw                        : Unknown Error",
        ),
        ("Current Power Limit               : 700.00 W", "Current Power Limit               : 500.00 W"),
        ("State                             : Completed", "State                             : In Progress"),
    ]);
    let facts = facts(&bad);
    for (fact, expected) in [
        ("gpu_errors", serde_json::json!(["gpu0 Power Draw: Unknown Error", "gpu0 Reset Required: Yes"])),
        ("sram_errors", serde_json::json!(["gpu0 Uncorrectable SEC-DED: 4"])),
        ("rows_remapped", serde_json::json!(12)),
        ("rows_pending", serde_json::json!(["gpu0 Pending"])),
        ("rows_spent", serde_json::json!(["gpu0 1 banks: Low"])),
        ("gpu_power_reduced", serde_json::json!(["gpu0 500.00 W of 700.00 W"])),
        ("gpu_fabric", serde_json::json!("In Progress, Success")),
    ] {
        assert_eq!(facts[fact], expected, "{fact}: {facts}");
    }
    let replays = facts["pcie_replays"][0].as_str().unwrap_or_default();
    assert!(replays.starts_with("gpu0 900000000000 replays in "), "{facts}");
}

/// Eight GPUs, of which some print other rows.
fn eight(others: &[(usize, &[(&str, &str)])]) -> String {
    let (head, gpu) = HEALTHY.split_once("GPU 0").expect("a GPU");
    let one = |at: usize| {
        let mut text = format!("GPU 0{gpu}");
        for (good, bad) in others.iter().filter(|(other, _)| *other == at).flat_map(|(_, pairs)| *pairs) {
            assert!(text.contains(good), "{good}");
            text = text.replacen(good, bad, 1);
        }
        text
    };
    head.to_owned() + &(0..8).map(one).collect::<String>()
}

/// As H100, A100 and B300 print it where CUDA ends with error 802.
const STUCK: [(&str, &str); 2] = [
    ("State                             : Completed", "State                             : In Progress"),
    ("Status                            : Success", "Status                            : N/A"),
];

#[test]
fn a_gpu_whose_fabric_is_stuck_or_silent_is_no_silent_gpu() {
    let fabric = |text: &str| facts(text)["gpu_fabric"].clone();
    let silent = [
        ("State                             : Completed", "State                             : N/A"),
        STUCK[1],
    ];
    assert_eq!(fabric(&eight(&[(3, &STUCK)])), "Completed, Success and In Progress, N/A");
    assert_eq!(fabric(&eight(&[(7, &STUCK)])), "Completed, Success and In Progress, N/A");
    assert_eq!(fabric(&eight(&[(0, &silent)])), "not reported and Completed, Success");
    assert_eq!(fabric(&eight(&[])), "Completed, Success");
    assert_eq!(fabric(&changed(&STUCK)), "In Progress, N/A");
    assert!(fabric(&changed(&silent)).is_null(), "GPUs without a fabric");
    let other = [
        ("Persistence Mode                      : Enabled", "Persistence Mode                      : N/A"),
        (
            "        Graphics                          : 1980 MHz",
            "        Graphics                          : N/A",
        ),
    ];
    let facts = facts(&eight(&[(2, &other)]));
    assert_eq!(facts["gpu_persistence"], "Enabled and not reported");
    assert_eq!(facts["gpu_app_clocks"], "1980/2619 and not reported");
}

/// As drivers 570 to 590 print it.
#[test]
fn what_newer_drivers_report_of_a_gpu_that_needs_a_reset_is_read() {
    let deprecated = "Requested functionality has been deprecated";
    let newer = |action: &str, repair: &str, summary: &str| {
        changed(&[
            (
                "Required                    : No\n",
                &format!(
                    "Required                    : {deprecated}\n    GPU Recovery Action                   : {action}\n"
                ),
            ),
            (
                "    Retired Pages\n",
                &format!(
                    "        Channel Repair Pending            : No\n        TPC Repair Pending                : {repair}\n\
                     \x20       Unrepairable Memory               : {repair}\n    Retired Pages\n"
                ),
            ),
            (
                "        Graphics                          : 1980 MHz",
                &format!("        Graphics                          : {deprecated}"),
            ),
            (
                "        Memory                            : 2619 MHz",
                &format!("        Memory                            : {deprecated}"),
            ),
            (
                "Status                            : Success\n",
                &format!(
                    "Status                            : Success\n        Health\n            Summary                       : {summary}\n"
                ),
            ),
        ])
    };
    for summary in ["N/A", "Healthy", "Not Supported"] {
        let facts = facts(&newer("None", "No", summary));
        assert_eq!(
            (&facts["gpu_errors"], &facts["rows_pending"]),
            (&serde_json::json!([]), &serde_json::json!([]))
        );
        assert!(facts["gpu_app_clocks"].is_null(), "{facts}");
        assert_eq!(facts["gpu_fabric"], "Completed, Success");
    }
    let broken = facts(&newer("Drain and Reset", "Yes", "Unhealthy"));
    assert_eq!(
        broken["gpu_errors"],
        serde_json::json!([
            "gpu0 Fabric Health: Unhealthy",
            "gpu0 GPU Recovery Action: Drain and Reset",
            "gpu0 Unrepairable Memory: Yes"
        ])
    );
    assert_eq!(broken["rows_pending"], serde_json::json!(["gpu0 TPC Repair Pending"]));
    let reset = facts(&newer("Reset", "No", "N/A"));
    assert_eq!(reset["gpu_errors"], serde_json::json!(["gpu0 GPU Recovery Action: Reset"]));
}

/// Drivers 470 to 525 have no `Current Power Limit`, and those with a first form of the fabric's health no summary of it.
#[test]
fn what_older_drivers_call_otherwise_is_read() {
    let older = |limit: &str, bandwidth: &str, route: &str| {
        let text = changed(&[
            ("    GPU Power Readings\n", "    Power Readings\n"),
            (
                "        Current Power Limit               : 700.00 W\n        Requested Power Limit             : 700.00 W\n",
                &format!("        Power Limit                       : {limit}\n"),
            ),
        ]);
        let health = format!(
            "        Health\n            Bandwidth                     : {bandwidth}\n            \
             Route Recovery in progress    : False\n            Route Unhealthy               : {route}\n            \
             Access Timeout Recovery       : {route}\n"
        );
        let facts = facts(&(text + &health));
        ["gpu_power_limits", "gpu_power_reduced", "gpu_errors"].map(|fact| facts[fact].clone())
    };
    let none = serde_json::json!([]);
    assert_eq!(older("700.00 W", "Full", "False"), [serde_json::json!("700.00 W"), none.clone(), none]);
    let errors = serde_json::json!([
        "gpu0 Fabric Access Timeout Recovery: True",
        "gpu0 Fabric Bandwidth: Degraded",
        "gpu0 Fabric Route Unhealthy: True"
    ]);
    let reduced = serde_json::json!(["gpu0 400.00 W of 700.00 W"]);
    assert_eq!(older("400.00 W", "Degraded", "True"), [serde_json::json!("400.00 W"), reduced, errors]);
}

#[test]
fn a_driver_that_knows_only_the_newer_name_of_a_field_reports_all_others_as_well() {
    let query = "cat 'health.txt' ;;\n\
                 *clocks_throttle*) echo 'Field \"clocks_throttle_reasons.active\" is not a valid field to query.'; exit 2 ;;\n\
                 *clocks_event*) echo '0, NVIDIA H100 80GB HBM3, 595.71.05, Enabled, 7, 1980, 2619, 0x0000000000000040'";
    let facts = facts_with(HEALTHY, query, "");
    assert_eq!((&facts["ecc"], &facts["ecc_errors"]), (&"Enabled".into(), &7.into()));
    assert_eq!(facts["gpu_throttled"], serde_json::json!(["gpu0 0x40"]));
}

/// As nvidia-smi lists one GPU whose links are all down.
#[test]
fn a_gpu_without_a_link_beside_others_with_links_is_an_error() {
    let none = "NVML: Unable to retrieve Nvlink information as all links are inActive";
    let of = |first: &str| {
        let query =
            format!("cat 'health.txt' ;;\nnvlink) printf 'GPU 0: x\\n{first}\\nGPU 4: x\\n{none}\\n'");
        let facts = facts_with(HEALTHY, &query, "");
        (facts["nvlinks"].clone(), facts["gpu_errors"].clone())
    };
    let (links, errors) = of("\\t Link 0: 26.562 GB/s");
    assert_eq!(links, serde_json::json!(["1 at 26.562 GB/s", "gpu4 has none"]));
    assert_eq!(errors, serde_json::json!(["gpu4: all NVLinks are inactive"]));
    let (links, errors) = of(none);
    assert!(links.is_null() && errors == serde_json::json!([]), "{links} {errors}");
}

#[test]
fn a_clock_that_chrony_keeps_is_synchronised_whatever_an_older_timedatectl_prints() {
    let tracking = |id: &str, leap: &str| {
        format!("printf 'Reference ID    : {id}\\nStratum : 4\\nLeap status     : {leap}\\n'")
    };
    let state = |timedatectl: &str, chronyc: &str| {
        let programs = [("timedatectl", timedatectl), ("chronyc", chronyc)];
        facts_beside(HEALTHY, "cat 'health.txt'", "", &programs)["clock_synchronised"].clone()
    };
    assert_eq!(state("echo no", &tracking("A9FEA97B (169.254.169.123)", "Normal")), "yes");
    assert_eq!(state("echo no", &tracking("00000000 ()", "Not synchronised")), "no");
    assert_eq!(state("echo no", &tracking("7F7F0101 ()", "Normal")), "no");
}

#[test]
fn a_fatal_xid_is_not_hidden_by_a_later_one_that_is_not() {
    let fatal = "NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040)";
    let corrected =
        "NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 02 (0x00000004 0x00000100)";
    let facts = facts_with(HEALTHY, "cat 'health.txt'", &[fatal, corrected].join("\n"));
    assert_eq!(facts["xid"], serde_json::json!([fatal, corrected]));
    assert_eq!(facts["xid_faults"], serde_json::json!([fatal]));
}

#[test]
fn answers_that_make_no_sense_are_unknown_or_bounded_and_never_healthy() {
    let endless = "GPU 00000000:18:00.0\n    X : ERR!\n".repeat(5000);
    for text in ["", "\u{0}\u{1b}[2J$(touch x)`id`\n: : :\n", "No devices were found\n", &endless] {
        let facts = facts(text);
        for fact in ["rows_remapped", "ecc_corrected", "sram_errors", "rows_pending", "gpu_fabric"] {
            assert!(facts[fact].is_null(), "{fact}: {facts}");
        }
        let errors = facts["gpu_errors"].as_array().map_or(0, Vec::len);
        assert!(errors <= 64, "{errors}");
    }
}

/// As Linux prints them, on AMD, on Intel and by firmware.
#[test]
fn errors_that_the_host_corrected_are_none_and_those_that_it_did_not_are_listed() {
    let corrected = [
        "mce: [Hardware Error]: Machine check events logged",
        "[Hardware Error]: Corrected error, no action required.",
        "[Hardware Error]: CPU:8 (19:1:1) MC17_STATUS[Over|CE|MiscV|AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000000011b",
        "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 514",
        "{1}[Hardware Error]: event severity: corrected",
        "pcieport 0000:40:01.1: AER: Corrected error message received from 0000:41:00.0",
        "blk_update_request: I/O error, dev sr0, sector 0",
        "nvme nvme3: 16/0/0 default/read/poll queues",
        "XFS (nvme2n1): Ending clean mount",
        "EXT4-fs (nvme2n1): mounted filesystem with ordered data mode. Quota mode: none.",
    ];
    let broken = [
        "[Hardware Error]: Uncorrected, software restartable error.",
        "[Hardware Error]: CPU:2 (19:1:1) MC0_STATUS[-|UE|MiscV|AddrV|-|TCC|SyndV|-|-|-]: 0xbc00000001010135",
        "{2}[Hardware Error]: event severity: recoverable",
        "pcieport 0000:40:01.1: AER: Uncorrected (Fatal) error message received from 0000:41:00.0",
        "nvme nvme3: controller is down; will reset: CSTS=0xffffffff",
        "nvme nvme3: I/O 123 QID 4 timeout, reset controller",
        "nvme nvme3: Removing after probe failure status: -19",
        "Buffer I/O error on dev nvme2n1, logical block 0, async page read",
        "md/raid:md0: Disk failure on nvme2n1, disabling device.",
        "XFS (nvme2n1): Metadata corruption detected at xfs_agf_read_verify+0x6c/0xd0 [xfs], xfs_agf block 0x1",
        "XFS (nvme2n1): Metadata CRC error detected at xfs_agi_read_verify+0x5e/0x110 [xfs], xfs_agi block 0x2",
        "XFS (nvme2n1): log I/O error -5",
        "XFS (nvme2n1): Filesystem has been shut down due to log error (0x2).",
        "EXT4-fs (nvme2n1): Remounting filesystem read-only",
        "mce: Uncorrected hardware memory error in user-access at 3f2a40",
    ];
    let log = [&corrected[..], &broken[..]].concat().join("\n");
    assert_eq!(facts_with(HEALTHY, "cat 'health.txt'", &log)["kernel_errors"], serde_json::json!(broken));
}

/// Lines with an Xid are in `xid`.
#[test]
fn gpus_that_the_driver_lost_or_could_not_start_are_errors_of_the_kernels_log() {
    let other = [
        "[1.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.133.20",
        "[2.0] NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus.",
    ];
    let broken = [
        "[3.0] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "[4.0] NVRM: fallen off the bus and is not responding to commands.",
        "[5.0] NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x62:0x65:1842)",
        "[6.0] NVRM: GPU 0000:5d:00.0: rm_init_adapter failed, device minor number 3",
        "[7.0] NVRM: RmInitAdapter failed! (0x26:0x38:1096)",
    ];
    let log = [&other[..], &broken[..]].concat().join("\n");
    assert_eq!(facts_with(HEALTHY, "cat 'health.txt'", &log)["kernel_errors"], serde_json::json!(broken));
}

#[test]
fn a_driver_that_does_not_answer_in_time_is_unknown_and_no_error_of_a_gpu() {
    // `timeout` ends with that.
    let facts = facts_with(HEALTHY, "exit 124", "");
    assert!(facts["gpu_errors"].is_null() && facts["gpu_fabric"].is_null(), "{facts}");
    let facts =
        facts_with(HEALTHY, "{ echo 'Unable to determine the device handle: GPU is lost'; exit 15; }", "");
    let errors = serde_json::json!(["nvidia-smi -q: Unable to determine the device handle: GPU is lost"]);
    assert_eq!(facts["gpu_errors"], errors);
}

/// What functions of the probe's part about the host print, in a folder with these files and programs.
fn host_function(files: &[(&str, &str)], call: &str) -> Vec<String> {
    let project = Project::new();
    let folder = project.path().to_owned();
    for (name, text) in files {
        project.write(name, text);
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755)).expect("set");
    }
    let host = concat!(env!("CARGO_MANIFEST_DIR"), "/cluster/src/probe/host.sh");
    let shell = format!(
        "set -u; PATH=$PWD/bin:$PATH; item() {{ echo \"$1: $2\"; }}; none() {{ echo \"no $1: $2\"; }}; list() {{ :; }}\n\
         has() {{ command -v \"$1\" > /dev/null; }}; bounded() {{ \"$@\"; }}\n\
         some() {{ local key=$1 row; shift 2; for row; do item \"$key\" \"$row\"; done; }}\n. '{host}'\n{call}"
    );
    let output = std::process::Command::new("bash").args(["-c", &shell]).current_dir(&folder).output();
    ran(output.expect("starts")).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn what_is_mounted_when_somebody_looks_or_by_a_user_is_no_file_system_of_the_node() {
    let mounts = "/dev/none1 / ext4 rw 0 0\n10.0.0.5:/fsx /home nfs4 rw 0 0\n10.0.0.5:/fsx/alice /home/alice nfs4 rw 0 0\n\
                  10.0.0.5:/fsx/data /data nfs4 rw 0 0\n10.0.0.6:/ /scratch nfs4 rw 0 0\n10.0.0.6:/x /scratch/x nfs4 rw 0 0\n\
                  10.0.0.7:/fsx/opt /opt/site nfs rw 0 0\n10.0.0.9@tcp:/a /lustre lustre rw 0 0\n\
                  squashfuse /tmp/enroot/pyxis_1234 fuse.squashfuse ro 0 0\n\
                  alice@bastion:/ /home/alice/mnt fuse.sshfs rw 0 0\nbucket /models fuse.mountpoint-s3 ro 0 0\n";
    let fstab = "# a comment\n10.0.0.5:/fsx/data /data nfs4 defaults 0 0\nbucket /models mount-s3 ro 0 0\n";
    let read = host_function(&[("mounts", mounts), ("fstab", fstab)], "file_systems mounts fstab");
    let is_mount = |row: &&String| row.starts_with("mounts: ");
    let seen: Vec<&String> = read.iter().filter(is_mount).collect();
    let wanted = ["/ ext4", "/home nfs4", "/data nfs4", "/scratch nfs4", "/opt/site nfs", "/lustre lustre"];
    let wanted = wanted.iter().chain(&["/models fuse.mountpoint-s3"]).map(|row| format!("mounts: {row}"));
    assert_eq!(seen, wanted.collect::<Vec<_>>().iter().collect::<Vec<_>>(), "{read:?}");
}

#[test]
fn a_service_that_a_timer_starts_may_fail_by_chance_and_no_other() {
    let systemctl = "#!/bin/bash\ncase \"$*\" in\n\
        list-units*) printf '%s.service loaded failed failed x\\n' fwupd-refresh nvidia-fabricmanager odd ;;\n\
        show*) printf 'Id=fwupd-refresh.service\\nTriggeredBy=fwupd-refresh.timer\\n\\nId=nvidia-fabricmanager.service\\nTriggeredBy=\\n' ;;\n\
        esac\n";
    let failed = host_function(&[("bin/systemctl", systemctl)], "failed_services");
    let wanted =
        ["nvidia-fabricmanager.service", "odd.service"].map(|unit| format!("services_failed: {unit}"));
    assert_eq!(failed, wanted);
}

/// The lines that a function of devices.sh prints, by the probe's own words, where these files are.
fn printed(files: &[(&str, &str)], call: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
    }
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/cluster/src/probe");
    let shell = format!(". '{scripts}/probe.sh'; . '{scripts}/devices.sh'; PATH=$PWD/bin:$PATH; {call}");
    let output = std::process::Command::new("bash").args(["-c", &shell]).current_dir(&folder).output();
    let ran = ran(output.expect("starts"));
    assert_eq!(ran.stderr, "");
    ran.stdout.lines().map(|line| line.trim_start_matches("harness-probe\t").replace('\t', " ")).collect()
}

#[test]
fn firmware_of_nvswitches_is_read_once_and_a_switch_without_one_differs() {
    let switches = |texts: &[&str]| {
        let names: Vec<String> =
            (0..texts.len()).map(|at| format!("devices/0000:{at:02x}:00.0/information")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().copied()).collect();
        printed(&files, "nvswitches devices")
    };
    let one = "BIOS Version: 96.10.57.00.01\n";
    let list = "list nvswitch_firmware";
    assert_eq!(switches(&[one, one]), [list, "item nvswitch_firmware 96.10.57.00.01"]);
    let other = "Firmware Version:   96.10.6d.00.01\n";
    assert_eq!(
        switches(&[one, other, "BIOS Version: N/A\n"]),
        [
            list,
            "item nvswitch_firmware 96.10.57.00.01",
            "item nvswitch_firmware 96.10.6d.00.01",
            "item nvswitch_firmware not reported"
        ]
    );
    let none = "none nvswitch_firmware no NVSwitch reports it in devices";
    assert_eq!(switches(&[]), [none]);
    assert_eq!(switches(&["BIOS Version: N/A\n", "odd"]), [none]);
}

/// As `dcgmi health -g 0 -c -j` of DCGM 3 and 4 prints it, by jsoncpp.
fn dcgm_report(overall: &str) -> String {
    format!(
        "{{\n\t\"body\" : \n\t{{\n\t\t\"Overall Health\" : \n\t\t{{\n\t\t\t\"value\" : \"{overall}\"\n\t\t}},\n\
         \t\t\"GPU\" : \n\t\t{{\n\t\t\t\"children\" : \n\t\t\t{{\n\t\t\t\t\"0\" : {{ \"value\" : \"Healthy\" }}\n\t\t\t}}\n\t\t}}\n\
         \t}},\n\t\"header\" : \n\t[\n\t\t\"Health Monitor Report\"\n\t]\n}}\n"
    )
}

#[test]
fn what_dcgm_watches_is_healthy_only_where_it_says_so() {
    let answer = |text: &str, code: i32| {
        let dcgmi = format!(
            "#!/bin/bash\n[[ $* == 'health -g 0 -c -j' ]] || exit 64\ncat <<'END'\n{text}\nEND\nexit {code}\n"
        );
        printed(&[("bin/dcgmi", dcgmi.as_str())], "dcgm_health").join("; ")
    };
    for overall in ["Healthy", "Warning", "Failure"] {
        assert_eq!(answer(&dcgm_report(overall), 0), format!("fact dcgm_health {overall}"));
    }
    // A failure counts whatever the exit code is; health does not.
    assert_eq!(answer(&dcgm_report("Failure"), 1), "fact dcgm_health Failure");
    for (text, code, why) in [
        (dcgm_report("Healthy"), 3, "dcgmi health ended with 3: {"),
        (dcgm_report("Internal error"), 0, "dcgmi health ended with 0: {"),
        (
            "Error: Health watches not enabled. Please enable watches. ".to_owned(),
            253,
            "DCGM watches no GPU: `dcgmi health -g 0 -s a` turns it on",
        ),
        (
            "Error: unable to establish a connection to the specified host: localhost".to_owned(),
            255,
            "dcgmi health ended with 255: Error: unable to establish a connection to the specified host: localhost",
        ),
        (String::new(), 124, "dcgmi health did not answer in time"),
    ] {
        assert_eq!(answer(&text, code), format!("none dcgm_health {why}"));
    }
}

/// Controllers `nvme0` and `nvme1`, and a volume of the network; `nvme` or `smartctl` runs these lines for a device.
fn smart(tool: &str, lines: &str) -> Vec<String> {
    let tool = format!("bin/{tool}");
    let lines = format!("#!/bin/bash\ncase \"$*\" in\n{lines}\n*) exit 64 ;;\nesac\n");
    let files = [
        ("nvme/nvme0/model", "Amazon EC2 NVMe Instance Storage\n"),
        ("nvme/nvme1/model", "Amazon EC2 NVMe Instance Storage\n"),
        ("nvme/nvme2/model", "Amazon Elastic Block Store\n"),
        (tool.as_str(), lines.as_str()),
    ];
    // Neither program of this machine is in the way.
    let has = format!("has() {{ [[ $1 == {} ]]; }}", tool.trim_start_matches("bin/"));
    printed(&files, &format!("{has}; smart nvme dev"))
}

#[test]
fn smart_of_drives_is_read_whole_or_not_at_all() {
    let good =
        "'smart-log -o json dev/nvme0') printf '{\n  \"critical_warning\":0,\n  \"media_errors\":0,\n}' ;;";
    let other = |warning: &str, errors: &str| {
        let json = format!("{{\n  \"critical_warning\" : {warning},\n  \"media_errors\" : {errors},\n}}");
        smart("nvme", &format!("{good}\n'smart-log -o json dev/nvme1') printf '{json}' ;;"))
    };
    let (critical, media) = ("list nvme_critical", "list nvme_media_errors");
    assert_eq!(other("0", "0"), [critical, media]);
    assert_eq!(
        other("4", "12"),
        [
            critical,
            "item nvme_critical nvme1 critical warning 4",
            media,
            "item nvme_media_errors nvme1 media errors 12"
        ]
    );
    // A number that is none is no 0.
    let odd = other("0", "1.5e+03");
    assert!(odd.len() == 2 && odd.iter().all(|line| line.starts_with("none nvme_")), "{odd:?}");
    let refused = "*) echo 'Failed to open dev/nvme1: Permission denied' >&2; exit 1 ;;";
    let why = "nvme1: ended with 1: Failed to open dev/nvme1: Permission denied";
    assert_eq!(
        smart("nvme", &format!("{good}\n{refused}")),
        [format!("none nvme_critical {why}"), format!("none nvme_media_errors {why}")]
    );
    // What the other drive reports is enough against the node.
    let bad = good.replacen("warning\":0", "warning\":1", 1);
    assert_eq!(
        smart("nvme", &format!("{bad}\n{refused}")),
        [
            critical.to_owned(),
            "item nvme_critical nvme0 critical warning 1".to_owned(),
            format!("none nvme_media_errors {why}")
        ]
    );
    let late = smart("nvme", "*) exit 124 ;;");
    assert_eq!(late[0], "none nvme_critical nvme0: SMART did not answer in time");
}

#[test]
fn smartctl_is_asked_where_there_is_no_nvme() {
    let report = "*nvme0) printf '{ \"nvme_smart_health_information_log\": { \"critical_warning\": 0, \
                  \"media_errors\": 3 } }'; exit 64 ;;";
    let denied = "*) printf '{ \"smartctl\": { \"messages\": [ { \"string\": \
                  \"Smartctl open device: dev/nvme1 failed: Permission denied\" } ] } }'; exit 2 ;;";
    let why = "nvme1: Smartctl open device: dev/nvme1 failed: Permission denied";
    assert_eq!(
        smart("smartctl", &format!("{report}\n{denied}")),
        [
            format!("none nvme_critical {why}"),
            "list nvme_media_errors".to_owned(),
            "item nvme_media_errors nvme0 media errors 3".to_owned(),
        ]
    );
    let neither = smart("no-such-tool", "*) exit 64 ;;");
    assert_eq!(neither[0], "none nvme_critical nvme0: no nvme and no smartctl on PATH");
}
