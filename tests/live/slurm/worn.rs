//! Nodes that give out under a job: a disk that is full, a folder that takes nothing more, a report that was cut off.

use super::bench::{Bench, RUN, case, ended};
use super::whole::ALL_REDUCE;
use crate::bed::StandIns;
use crate::fact::Fact;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const FACTS: &[Fact] = &[
    ("a_full_disk_of_a_node_fails_what_writes_there_and_nothing_else", disk_full),
    ("a_shared_folder_that_is_full_is_an_error_and_no_nodes_fault", folder_full),
    ("a_report_that_was_cut_off_is_inconclusive_and_its_node_is_named", report_cut),
];

/// A file system of its own in memory.
struct Small(PathBuf);

impl Small {
    fn new(folder: &Path, bytes: &str) -> Small {
        fs::create_dir_all(folder).expect("made");
        let size = format!("size={bytes}");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder);
        assert!(command.status().expect("mount starts").success(), "{}", folder.display());
        Small(folder.to_owned())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn disk_full() {
    let writes = "[[case]]\nname = \"writes\"\nplacement = \"each\"\nrecipes = [\"nccl_tests\"]\n\
        workload = { kind = \"nccl-tests\", op = \"all_reduce\", from = \"1GiB\", to = \"1GiB\", factor = 2 }\n\
        [[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n";
    let bench = Bench::new(&format!("{writes}{}", case("after", "\"each\"", "well", "")));
    // What the others write goes elsewhere: each node has a disk of its own.
    let _disk = Small::new(&bench.project.path().join("disk/n3"), "256k");
    for node in ["n1", "n2", "n4"] {
        bench.project.write(&format!("disk/{node}/here"), "");
    }
    let scratch = "head -c 1M /dev/zero >\"BENCH/disk/$SLURMD_NODENAME/scratch.$SLURM_PROCID\" || exit 1\n";
    bench.program("all_reduce_perf", &format!("{scratch}{}", for_eight_ranks(ALL_REDUCE)));
    bench.program("well", "exit 0");
    // A probe would find so little room before anything is launched; here it fills up meanwhile.
    let ran = ended(bench.start_with(&[RUN.as_slice(), &["--no-probe"]].concat()));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(bench.project.reported().contains("No space left on device"), "{}", ran.all());
    bench.came_to("a full disk of one node, Slurm", &ran, ["1 error disk-full", "none", "7 pass"]);
}

/// The bandwidth on the bus that eight ranks have, in place of that of 32.
fn for_eight_ranks(printed: &str) -> String {
    printed.replace("416.08", "375.81")
}

/// A job fills the folder that all nodes and this machine share. It does well itself; the next one has no place.
fn folder_full() {
    let cases = [case("fills", "1", "fills", ""), case("next", "2", "well", "after = [\"fills\"]")];
    let bench = Bench::new(&cases.concat());
    let shared = bench.project.path().join("shared");
    let _disk = Small::new(&shared, "512k");
    bench.program("fills", "head -c 1M /dev/zero >\"BENCH/shared/filler\" 2>/dev/null; exit 0");
    bench.program("well", "exit 0");
    // A probe would find so little room before anything is launched; here it fills up meanwhile.
    let ran = ended(bench.start_with(&[RUN.as_slice(), &["--no-probe"]].concat()));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(bench.project.reported().contains("No space left on device"), "{}", ran.all());
    bench.came_to("a shared folder that is full, Slurm", &ran, ["1 error folder-failed", "none", "1 pass"]);
}

fn report_cut() {
    let programs = StandIns::new("n[1-4]", "faults = [\"n2:report-truncated\"]");
    let profiled = "[[case]]\nname = \"profiled\"\nplacement = \"all\"\nrecipes = [\"nccl_tests\", \"cuda_gpu_kern_sum\"]\n\
        workload = { kind = \"nccl-tests\", op = \"scatter\", from = \"64MiB\", to = \"256MiB\", factor = 2 }\n\
        profile = { ranks = \"one-per-node\" }\n\
        [[case.assert]]\nmetric = \"kernel.class_share\"\nclass = \"nccl\"\nat_least = \"95 %\"\n\
        [[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n";
    let bench = Bench::with(&programs, 4, &format!("{profiled}{}", case("after", "\"each\"", "well", "")));
    bench.program("well", "exit 0");
    let ran = bench.run();
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    bench.came_to(
        "a report that was cut off, Slurm",
        &ran,
        ["1 inconclusive report-unreadable", "culprit n2 node", "5 pass"],
    );
}
