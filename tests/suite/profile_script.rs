//! The wrapper round each rank under a real bash, with a stand-in for nsys: who is profiled, what the account says, and
//! that nothing which goes wrong with the profiler changes what the workload does.

use job::profile::account::{self, Account};
use job::script::PROFILE_SH;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Writes down how it was called; profiles by running the command, and exports two tables.
const NSYS: &str = r#"#!/bin/bash
case $1 in
  --version) echo "NVIDIA Nsight Systems version ${FAKE_VERSION:-2025.3.1}.90-253135822126v0" ;;
  profile)
    printf '%s\n' "$*" >> calls
    shift
    while [[ $1 == --* ]]; do [[ $1 == --output=* ]] && output=${1#--output=}; shift; done
    "$@"
    status=$?
    case ${FAKE:-} in
      no-report) echo 'No reports were generated' ;;
      qdstrm) echo part > "$output.qdstrm" ;;
      empty) : > "$output.nsys-rep" ;;
      *) echo report > "$output.nsys-rep" ;;
    esac
    exit "$status"
    ;;
  export)
    printf '%s\n' "$*" >> calls
    [[ ${FAKE:-} == export-fails ]] && exit 1
    [[ ${FAKE:-} == no-arrow && $* == *--type=arrow* ]] && exit 1
    for word in "$@"; do [[ $word == --output=* ]] && output=${word#--output=}; done
    if [[ $output != *_pqtdir ]]; then echo tables > "$output"; exit 0; fi
    mkdir "$output"
    echo kernels > "$output/CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    echo strings > "$output/StringIds.parquet"
    ;;
esac
"#;

/// Where only the user and root can write: in the home folder, where this tree lies below /tmp.
pub(crate) fn trusted_folder() -> TempDir {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let is_open = |folder: &Path| fs::metadata(folder).is_ok_and(|facts| facts.mode() & 0o022 != 0);
    let home = std::env::var_os("HOME").filter(|_| built.ancestors().any(is_open));
    let place = home.map_or_else(|| built.to_owned(), PathBuf::from);
    let private = fs::Permissions::from_mode(0o755);
    tempfile::Builder::new().permissions(private).tempdir_in(place).expect("a folder")
}

struct Node {
    folder: TempDir,
}

impl Node {
    fn new() -> Node {
        Node::below(tempfile::tempdir().expect("a folder"))
    }

    fn trusted() -> Node {
        Node::below(trusted_folder())
    }

    fn below(folder: TempDir) -> Node {
        let node = Node { folder };
        node.executable("tools/nsys", NSYS);
        node.executable("tools/workload", "#!/bin/bash\necho \"ran: $#: $*\"\nexit ${WORKLOAD_EXIT:-0}\n");
        fs::create_dir(node.path().join("job")).expect("made");
        fs::write(node.path().join("job/profile.sh"), PROFILE_SH).expect("written");
        node
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn executable(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    }

    /// The wrapper round `workload a 'b c'`, as rank 3 of 16 under Slurm unless `environment` says otherwise.
    fn run(&self, wrapper: &str, environment: &[(&str, &str)]) -> (Option<i32>, String, String) {
        let mut command = Command::new("bash");
        command.arg("profile.sh").args(wrapper.split(' ')).args(["workload", "a", "b c"]);
        command.current_dir(self.path().join("job")).stdin(Stdio::null()).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path().join("tools").display()));
        command.env("NSYS_VENDOR_FOLDER", self.path().join("vendor"));
        for (name, value) in environment {
            command.env(name, value);
        }
        let output = command.output().expect("bash starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn account(&self, rank: u32) -> Option<Account> {
        let text = fs::read_to_string(self.path().join("job").join(account::file_name(rank))).ok()?;
        Some(account::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path().join("job/calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

const ALL: &str =
    "nsys 2025.3 16 all local:0 c.j parquetdir StringIds --trace=cuda -- --enable=efa_metrics --";
const SLURM: [(&str, &str); 3] =
    [("SLURM_PROCID", "3"), ("SLURM_LOCALID", "3"), ("SLURMD_NODENAME", "p5-001")];

#[test]
fn a_profiled_rank_leaves_its_report_its_tables_and_a_whole_account() {
    let node = Node::new();
    let (code, stdout, stderr) = node.run(ALL, &SLURM);
    assert_eq!((code, stdout.as_str()), (Some(0), "ran: 2: a b c\n"), "{stderr}");
    let account = node.account(3).expect("an account");
    assert!(account.complete && !account.node_sampling, "{account:?}");
    assert_eq!((account.node.as_str(), account.nsys.as_deref()), ("p5-001", Some("2025.3.1.90")));
    let report = account.report.expect("a report");
    assert_eq!((report.name.as_str(), report.bytes), ("c.j.step0.try0.rank3.p5-001.nsys-rep", 7));
    assert_eq!(report.sha256, base::digest::sha256(b"report\n"));
    let tables: Vec<&str> = account.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(
        tables,
        [
            "c.j.step0.try0.rank3.p5-001_pqtdir/CUPTI_ACTIVITY_KIND_KERNEL.parquet",
            "c.j.step0.try0.rank3.p5-001_pqtdir/StringIds.parquet"
        ]
    );
    assert_eq!(
        node.calls(),
        [
            "profile --trace=cuda --output=c.j.step0.try0.rank3.p5-001 workload a b c",
            "export --type=parquetdir --lazy=true --force-overwrite=false --tables=StringIds \
             --output=c.j.step0.try0.rank3.p5-001_pqtdir c.j.step0.try0.rank3.p5-001.nsys-rep"
        ]
    );
}

#[test]
fn ranks_that_are_not_chosen_run_bare() {
    let node = Node::new();
    let wrapper = ALL.replace(" all ", " 0,8 ");
    let (code, stdout, _) = node.run(&wrapper, &SLURM);
    assert_eq!((code, stdout.as_str()), (Some(0), "ran: 2: a b c\n"));
    assert_eq!((node.account(3), node.calls().len()), (None, 0));
    for (ranks, rank, local, chosen) in [
        ("local:0", "8", "0", true),
        ("local:0", "9", "1", false),
        ("every:4", "12", "4", true),
        ("every:4", "13", "5", false),
        ("0,8", "8", "0", true),
        ("none", "0", "0", false),
    ] {
        let node = Node::new();
        let wrapper = ALL.replace(" all ", &format!(" {ranks} "));
        node.run(&wrapper, &[("SLURM_PROCID", rank), ("SLURM_LOCALID", local)]);
        assert_eq!(!node.calls().is_empty(), chosen, "{ranks} {rank} {local}");
    }
}

#[test]
fn the_node_is_sampled_by_one_rank_alone_though_several_would_be_its_first() {
    let node = Node::new();
    let first = [("SLURM_PROCID", "0"), ("SLURM_LOCALID", "0"), ("SLURMD_NODENAME", "p5-001")];
    let other = [("SLURM_PROCID", "8"), ("SLURM_LOCALID", "0"), ("SLURMD_NODENAME", "p5-001")];
    node.run(ALL, &first);
    node.run(ALL, &other);
    let sampled: Vec<bool> = node
        .calls()
        .iter()
        .filter(|call| call.starts_with("profile"))
        .map(|call| call.contains("efa_metrics"))
        .collect();
    assert_eq!(sampled, [true, false]);
    assert!(node.account(0).is_some_and(|account| account.node_sampling));
    assert!(node.account(8).is_some_and(|account| !account.node_sampling));
}

#[test]
fn torchrun_under_srun_numbers_ranks_by_torchrun() {
    let node = Node::new();
    let torchrun = [
        ("TORCHELASTIC_RUN_ID", "x"),
        ("RANK", "13"),
        ("LOCAL_RANK", "5"),
        ("SLURM_PROCID", "1"),
        ("SLURM_LOCALID", "0"),
    ];
    node.run(ALL, &torchrun);
    assert!(
        node.account(13).is_some_and(|account| !account.node_sampling),
        "local rank 5 is not its node's first"
    );
    let mpirun = [
        ("OMPI_COMM_WORLD_RANK", "9"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
        ("SLURM_PROCID", "0"),
        ("SLURM_LOCALID", "0"),
    ];
    node.run(ALL, &mpirun);
    assert!(node.account(9).is_some());
    assert!(node.account(0).is_none());
}

#[test]
fn a_rank_without_a_number_runs_bare_and_is_not_taken_for_rank_0() {
    let node = Node::new();
    let (code, stdout, stderr) = node.run(ALL, &[("PET_NODE_RANK", "1")]);
    assert_eq!((code, stdout.as_str()), (Some(0), "ran: 2: a b c\n"));
    assert!(stderr.contains("rank unknown: not set by torchrun, mpirun or srun"), "{stderr}");
    assert_eq!(node.account(0), None);
    let alone = ALL.replace(" 16 ", " 1 ");
    node.run(&alone, &[]);
    assert!(node.account(0).is_some_and(|account| account.complete), "a job of one task has rank 0");
}

#[test]
fn the_exit_code_is_the_commands_whatever_becomes_of_the_profiler() {
    for fake in ["", "no-report", "empty", "export-fails", "qdstrm"] {
        let node = Node::new();
        let mut environment = SLURM.to_vec();
        environment.extend([("WORKLOAD_EXIT", "7"), ("FAKE", fake)]);
        assert_eq!(node.run(ALL, &environment).0, Some(7), "{fake}");
        assert!(node.account(3).is_some_and(|account| account.complete), "{fake}");
    }
}

#[test]
fn what_went_wrong_with_a_report_stands_in_the_account() {
    let of = |fake: &str| {
        let node = Node::new();
        let mut environment = SLURM.to_vec();
        environment.push(("FAKE", fake));
        node.run(ALL, &environment);
        node.account(3).expect("an account")
    };
    let missing = of("no-report");
    assert!(missing.report.is_none() && missing.missing.is_some_and(|why| why.contains("nsys left no")));
    assert_eq!(of("empty").report.map(|report| report.bytes), Some(0));
    assert_eq!(of("export-fails").export, Some(("parquetdir".to_owned(), 1)));
    let left = of("qdstrm");
    assert!(left.report.is_none());
    assert!(left.unrecovered.is_some_and(|why| why.contains("no importer beside nsys")));
}

#[test]
fn a_release_without_parquet_exports_arrow_and_where_it_knows_none_sqlite() {
    for (fake, form, file) in [("", "arrow", "arrows"), ("no-arrow", "sqlite", "sqlite")] {
        let node = Node::new();
        let mut environment = SLURM.to_vec();
        environment.push(("FAKE", fake));
        let (code, _, stderr) = node.run(&ALL.replace(" parquetdir ", " arrow,sqlite "), &environment);
        assert_eq!(code, Some(0), "{stderr}");
        let account = node.account(3).expect("an account");
        assert_eq!(account.export, Some((form.to_owned(), 0)), "{fake}");
        let tables: Vec<&str> = account.tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(tables, [format!("c.j.step0.try0.rank3.p5-001.{file}")]);
    }
}

#[test]
fn an_unfinished_collection_is_recovered_by_the_importer_beside_nsys() {
    let node = Node::trusted();
    node.executable(
        "tools/QdstrmImporter",
        "#!/bin/bash\n[[ $1 == --input-file ]] && mv \"$2\" \"${2%.qdstrm}.nsys-rep\"\n",
    );
    let mut environment = SLURM.to_vec();
    environment.push(("FAKE", "qdstrm"));
    node.run(ALL, &environment);
    let account = node.account(3).expect("an account");
    assert_eq!(account.recovered.as_deref(), Some("c.j.step0.try0.rank3.p5-001.qdstrm"));
    assert!(account.report.is_some() && account.tables.len() == 2);
    // Not by one that others could have put there.
    for open in ["tools", "tools/QdstrmImporter"] {
        let path = node.path().join(open);
        for name in fs::read_dir(node.path().join("job")).expect("a folder").flatten() {
            if name.file_name() != "profile.sh" {
                let path = name.path();
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
                    .expect("removed");
            }
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("opened");
        node.run(ALL, &environment);
        let account = node.account(3).expect("an account");
        assert!(account.report.is_none() && account.recovered.is_none(), "{open}");
        assert!(account.unrecovered.is_some_and(|why| why.contains("is not trusted")), "{open}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("closed");
    }
}

#[test]
fn without_nsys_or_with_one_too_old_the_workload_runs_bare_and_the_account_says_so() {
    let node = Node::new();
    let absent = ALL.replacen("nsys ", "/nowhere/nsys ", 1);
    let (code, stdout, _) = node.run(&absent, &SLURM);
    assert_eq!((code, stdout.as_str()), (Some(0), "ran: 2: a b c\n"));
    let bare = |node: &Node| node.account(3).and_then(|account| account.bare).map(|(cause, _)| cause);
    assert_eq!(bare(&node).as_deref(), Some("nsys-missing"));
    for (found, old) in
        [("2024.10", true), ("2025.2.9", true), ("2025.3.0", false), ("2025.10", false), ("2026.1", false)]
    {
        let node = Node::new();
        let mut environment = SLURM.to_vec();
        environment.push(("FAKE_VERSION", found));
        node.run(ALL, &environment);
        assert_eq!(bare(&node).as_deref() == Some("nsys-old"), old, "{found}");
    }
}

#[test]
fn the_newest_nsys_of_the_vendor_s_folders_is_found_by_number() {
    let node = Node::trusted();
    for version in ["2024.9.1", "2024.10.1", "2023.4.4"] {
        let text = NSYS.replace("${FAKE_VERSION:-2025.3.1}", version);
        node.executable(&format!("vendor/nsight-systems/{version}/bin/nsys"), &text);
    }
    let wrapper = ALL.replacen("nsys 2025.3", "find 2024.4", 1);
    node.run(&wrapper, &SLURM);
    let found = |node: &Node| node.account(3).and_then(|account| account.nsys);
    assert_eq!(found(&node).as_deref(), Some("2024.10.1.90"));
    // Not one that others could have put there.
    for open in ["vendor", "vendor/nsight-systems", "vendor/nsight-systems/2024.10.1/bin/nsys"] {
        let path = node.path().join(open);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o775)).expect("opened");
        let (_, _, stderr) = node.run(&wrapper, &SLURM);
        let other = if open.ends_with("nsys") { "2024.9.1.90" } else { "2025.3.1.90" };
        assert_eq!(found(&node).as_deref(), Some(other), "{open}: {stderr}");
        assert!(stderr.contains("is writable by its group or by others"), "{stderr}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("closed");
    }
}

#[test]
fn an_nsys_on_the_folder_of_the_jobs_is_found_where_the_vendor_has_none() {
    let node = Node::trusted();
    for version in ["2024.9.1", "2024.10.1"] {
        let text = NSYS.replace("${FAKE_VERSION:-2025.3.1}", version);
        node.executable(&format!("nsight-systems/{version}/target-linux-x64/nsys"), &text);
    }
    let wrapper = ALL.replacen("nsys 2025.3", "find 2024.4", 1);
    node.run(&wrapper, &SLURM);
    let found = |node: &Node| node.account(3).and_then(|account| account.nsys);
    assert_eq!(found(&node).as_deref(), Some("2024.10.1.90"));
    // Not where anybody may have put it.
    fs::set_permissions(node.path(), fs::Permissions::from_mode(0o1777)).expect("made everybody's");
    node.run(&wrapper, &SLURM);
    assert_eq!(found(&node).as_deref(), Some("2025.3.1.90"), "the one on PATH");
    fs::set_permissions(node.path(), fs::Permissions::from_mode(0o755)).expect("the user's again");
    let text = NSYS.replace("${FAKE_VERSION:-2025.3.1}", "2024.5.1");
    node.executable("vendor/nsight-systems/2024.5.1/bin/nsys", &text);
    node.run(&wrapper, &SLURM);
    assert_eq!(found(&node).as_deref(), Some("2024.5.1.90"), "the vendor's folder comes first");
}

#[test]
fn an_nsys_that_others_could_have_put_there_is_not_run() {
    let wrapper = ALL.replacen("nsys 2025.3", "find 2024.4", 1);
    let found = |node: &Node| {
        node.run(&wrapper, &SLURM);
        node.account(3).and_then(|account| account.nsys)
    };
    let path = "nsight-systems/9999.9/bin/nsys";
    for open in ["", "nsight-systems", "nsight-systems/9999.9/bin", path] {
        for mode in [0o777, 0o775, 0o1777] {
            let node = Node::trusted();
            node.executable(path, &NSYS.replace("${FAKE_VERSION:-2025.3.1}", "9999.9"));
            assert_eq!(found(&node).as_deref(), Some("9999.9.90"), "only root and the user can write");
            fs::set_permissions(node.path().join(open), fs::Permissions::from_mode(mode)).expect("opened");
            assert_eq!(found(&node).as_deref(), Some("2025.3.1.90"), "{mode:o} `{open}`: the one on PATH");
        }
    }
    // Below a folder that anybody can write to, whoever owns it.
    let node = Node::new();
    node.executable(path, &NSYS.replace("${FAKE_VERSION:-2025.3.1}", "9999.9"));
    assert_eq!(found(&node).as_deref(), Some("2025.3.1.90"), "the one on PATH");
    // Reached through a link.
    let node = Node::trusted();
    fs::create_dir(node.path().join("nsight-systems")).expect("made");
    let elsewhere = Node::new();
    elsewhere.executable("9999.9/bin/nsys", &NSYS.replace("${FAKE_VERSION:-2025.3.1}", "9999.9"));
    let link = node.path().join("nsight-systems/9999.9");
    std::os::unix::fs::symlink(elsewhere.path().join("9999.9"), link).expect("linked");
    assert_eq!(found(&node).as_deref(), Some("2025.3.1.90"), "the one on PATH");
}

#[test]
fn names_do_not_collide_and_need_no_variable_that_may_be_unset() {
    let node = Node::new();
    let mut environment = SLURM.to_vec();
    environment.extend([("SLURM_STEP_ID", "2"), ("SLURM_RESTART_COUNT", "1")]);
    node.run(ALL, &environment);
    let name = node.account(3).and_then(|account| account.report).map(|report| report.name);
    assert_eq!(name.as_deref(), Some("c.j.step2.try1.rank3.p5-001.nsys-rep"));
    let node = Node::new();
    // Neither Slurm's name of the node nor bash's own variable: the kernel knows.
    node.run(ALL, &[("SLURM_PROCID", "3"), ("SLURM_LOCALID", "3")]);
    let account = node.account(3).expect("an account");
    assert!(!account.node.is_empty());
    assert!(account.report.is_some_and(|report| report.name.contains(&format!("rank3.{}", account.node))));
}

#[test]
fn arguments_are_not_split_and_nothing_of_the_command_line_is_traced_to_stderr() {
    let node = Node::new();
    let (_, stdout, stderr) = node.run(ALL, &SLURM);
    assert_eq!(stdout, "ran: 2: a b c\n", "two arguments, the second with a blank");
    assert!(!stderr.contains("workload"), "{stderr}");
    // It is given to bash by name, so it need not be executable by anybody.
    let mode = fs::metadata(node.path().join("job/profile.sh")).expect("there").permissions().mode();
    assert_eq!(mode & 0o111, 0);
}
