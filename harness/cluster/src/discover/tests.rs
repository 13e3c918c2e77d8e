//! Answers of Slurm's commands as releases from 21.08 to 25.11 print them, and the inventories that come of them.

use super::*;
use crate::reach::{Answer, Command, Host, ReachError, Wait};
use config::inventory::{Inventory, ReachBy};
use std::cell::RefCell;
use std::path::Path;

/// Says of each command what was put in, by the beginning of its words.
struct Said {
    answers: Vec<(&'static str, Answer)>,
    asked: RefCell<Vec<String>>,
}

impl Reach for Said {
    fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        let line = command.argv.join(" ");
        self.asked.borrow_mut().push(line.clone());
        let answer =
            self.answers.iter().find(|(begin, _)| line.starts_with(begin)).map(|(_, answer)| answer.clone());
        let program = command.argv[0].clone();
        Box::pin(
            async move { answer.ok_or(ReachError::NoProgram { host: "this machine".to_owned(), program }) },
        )
    }

    fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        panic!("nothing is written on a cluster")
    }

    fn get<'a>(&'a self, _: &'a Host, _: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        panic!("nothing is read there")
    }
}

fn instances() -> Instances {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Instances::load(&home).expect("the profiles that ship")
}

pub(super) fn found(answers: Vec<(&'static str, Answer)>, request: &Request) -> Result<Discovered, Failure> {
    let said = Said { answers, asked: RefCell::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let found = runtime.expect("a runtime").block_on(discover(&said, request, &instances()));
    let asked = said.asked.into_inner();
    let reads = [
        "sinfo ",
        "scontrol --all --json show nodes",
        "scontrol --all --oneliner show partition ",
        "scontrol --oneliner show ",
        "scontrol show config",
        "scontrol show topology",
        "srun --mpi=list",
        "id -un",
        "sacctmgr --noheader --parsable2 show associations where user=alice ",
    ];
    assert!(asked.iter().all(|line| reads.iter().any(|read| line.starts_with(read))), "{asked:?}");
    found
}

pub(super) fn request() -> Request {
    Request { partition: "gpu".to_owned(), instance: Some("p5.48xlarge".to_owned()), ..Request::default() }
}

fn why(found: &Discovered) -> Vec<(String, String)> {
    found.left_out.iter().map(|left| (left.node.clone(), left.why.clone())).collect()
}

pub(super) const OLD: &str = "slurm-wlm 22.05.8\n";

/// What `sinfo` of 21.08 to 23.11 prints: marks behind states, reasons with bars and breaks in them.
pub(super) const LINES: &str = "\
p5-001|idle|p5,efa,rack1|gpu:h100:8(S:0-1)|Unknown|Unknown|none
p5-002|allocated|p5,efa,rack1|gpu:h100:8(S:0-1)|Unknown|Unknown|none
p5-003|drained|p5,efa,rack1|gpu:h100:8|2026-11-20T10:00:00|root(0)|fan is loud | see ticket
second line of it
p5-004|down*|p5,efa,rack2|gpu:h100:8|2026-11-20T11:00:00|slurm(64030)|Not responding
p5-005|mixed-|p5,efa,rack2|gpu:h100:8|Unknown|Unknown|none
p5-006|maint|p5,efa,rack2|gpu:h100:8|Unknown|Unknown|none
p5-007|reserved|p5,efa,rack2|gpu:h100:8|Unknown|Unknown|none
p5-008|failing*|p5,efa,rack2|gpu:h100:8|Unknown|Unknown|none
p5-009|idle~|p5,efa,rack2|gpu:h100:8|Unknown|Unknown|none
p5-010|idle|p5,efa,rack2|gpu:h100:4|Unknown|Unknown|none
p5-011|blorp|p5,efa,rack2|gpu:h100:8|Unknown|Unknown|none
p5-012|draining@|p5,rack2|gpu:h100:8|Unknown|Unknown|none
";

/// As `sinfo` of 24.05 and later has them.
#[test]
fn nodes_in_states_of_other_releases_are_left_out_where_they_take_no_jobs() {
    let lines = "\
p5-001|idle|p5|gpu:h100:8(S:0-1),shard:h100:64(S:0-1)|Unknown|Unknown|none
p5-002|reboot^|p5|gpu:h100:8|2026-11-20T10:00:00|root|firmware
p5-003|blocked|p5|gpu:h100:8|Unknown|Unknown|none
p5-004|inval|p5|gpu:h100:8|2026-11-20T10:00:00|slurm|gres/gpu count reported lower than configured (7 < 8)
p5-005|external|p5|gpu:h100:8|Unknown|Unknown|none
p5-006|idle!|p5|gpu:h100:8|Unknown|Unknown|none
p5-007|mixed$|p5|gpu:h100:8|Unknown|Unknown|none
";
    let found = found(
        vec![("sinfo --version", Answer::ok("slurm 25.11.2\n")), ("sinfo", Answer::ok(lines))],
        &request(),
    )
    .expect("found");
    assert_eq!(found.nodes, ["p5-001", "p5-003", "p5-006"]);
    let left: Vec<&str> = found.left_out.iter().map(|left| left.why.as_str()).collect();
    assert_eq!(
        left,
        [
            "reboot issued, reboot requested: firmware (root, 2026-11-20T10:00:00)",
            "invalid reg: gres/gpu count reported lower than configured (7 < 8) (slurm, 2026-11-20T10:00:00)",
            "external",
            "maint",
        ]
    );
}

#[test]
fn nodes_that_take_no_jobs_are_named_with_their_reasons_and_left_out() {
    let found = found(vec![("sinfo --version", Answer::ok(OLD)), ("sinfo", Answer::ok(LINES))], &request())
        .expect("found");
    assert_eq!(found.nodes, ["p5-001", "p5-002", "p5-005", "p5-009"]);
    assert_eq!(found.boot, ["p5-009"], "Slurm boots it for the first job on it");
    assert_eq!((found.instance.as_str(), found.gpus), ("p5", GpuRequest::Gres));
    assert_eq!(found.groups["rack1"], ["p5-001", "p5-002"]);
    assert_eq!(found.groups["rack2"], ["p5-005", "p5-009"]);
    assert!(!found.groups.contains_key("efa"), "all of them have it");
    let expected = [
        ("p5-003", "drained: fan is loud | see ticket second line of it (root(0), 2026-11-20T10:00:00)"),
        ("p5-004", "down, not responding: Not responding (slurm(64030), 2026-11-20T11:00:00)"),
        ("p5-006", "maint"),
        ("p5-007", "reserved"),
        ("p5-008", "not responding, failing"),
        ("p5-010", "its GRES has 4 GPUs, p5 has 8"),
        ("p5-011", "unknown state `blorp`"),
        ("p5-012", "draining, reboot requested"),
    ];
    assert_eq!(why(&found), expected.map(|(node, why)| (node.to_owned(), why.to_owned())));
}

#[test]
fn an_inventory_is_written_that_says_who_is_missing_and_reads_back() {
    let answers = vec![("sinfo --version", Answer::ok(OLD)), ("sinfo", Answer::ok(LINES))];
    let found = found(answers, &request()).expect("found");
    let text = render(&found, &request(), "/fsx/\"harness\"", None, "2026-11-21T21:00:00.000Z");
    assert!(text.contains("#   p5-003: drained: fan is loud | see ticket second line of it"), "{text}");
    assert!(text.starts_with(
        "# Written by `harness inventory discover` at 2026-11-21T21:00:00.000Z from slurm-wlm 22.05.8: "
    ));
    let read = Inventory::read(&text, "inventory/x.toml", &instances()).expect(&text);
    assert_eq!((read.nodes, read.groups), (found.nodes, found.groups));
    assert_eq!(read.paths.shared, "/fsx/\"harness\"");
    let ReachBy::Slurm(slurm) = read.reach else { panic!("not over Slurm") };
    assert_eq!((slurm.partition.as_deref(), slurm.reservation), (Some("gpu"), None));
}

#[test]
fn what_people_write_into_reasons_stays_a_comment() {
    let lines = "n1|idle|(null)|(null)|Unknown|Unknown|none\nn2|drained|(null)|(null)|x|y|\u{1b}[31m\r kind = \"simulated\"\nnodes = \"n9\"\n";
    let found = found(vec![("sinfo --version", Answer::ok(OLD)), ("sinfo", Answer::ok(lines))], &request())
        .expect("found");
    let text = render(&found, &request(), "/fsx", None, "now");
    let read = Inventory::read(&text, "inventory/x.toml", &instances()).expect(&text);
    assert_eq!(read.nodes, ["n1"]);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert_eq!(found.notes.len(), 1, "Slurm knows of no GPUs: {:?}", found.notes);
    assert!(text.contains("\ngpus = \"none\"\n"), "{text}");
}

/// A ParallelCluster: dynamic nodes in power saving, their type among the features, Slurm without GRES.
const DYNAMIC: &str = "\
p5-dy-gpu-1|idle~|dynamic,p5.48xlarge,gpu|(null)|Unknown|Unknown|none
p5-dy-gpu-2|idle%|dynamic,p5.48xlarge,gpu|(null)|Unknown|Unknown|none
p5-dy-gpu-3|down~|dynamic,p5.48xlarge,gpu|(null)|2026-11-20T11:00:00|slurm(401)|ResumeTimeout reached
p5-st-gpu-1|idle|static,p5.48xlarge,gpu|(null)|Unknown|Unknown|none
";

#[test]
fn nodes_in_power_saving_are_usable_and_reported_with_their_boot_time() {
    let config =
        "ResumeRate              = 0\nResumeTimeout           = 1800 sec\nReturnToService         = 1\n";
    let answers = |mpi: Answer| {
        vec![
            ("sinfo --version", Answer::ok(OLD)),
            ("sinfo", Answer::ok(DYNAMIC)),
            ("scontrol show config", Answer::ok(config)),
            ("srun --mpi=list", mpi),
        ]
    };
    let asked = Request { instance: None, ..request() };
    let list =
        "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n";
    let dynamic = found(answers(Answer::ok(list)), &asked).expect("found");
    assert_eq!(dynamic.nodes, ["p5-dy-gpu-1", "p5-dy-gpu-2", "p5-st-gpu-1"]);
    assert_eq!(dynamic.instance, "p5", "by the feature");
    assert_eq!(
        why(&dynamic),
        [(
            "p5-dy-gpu-3".to_owned(),
            "down: ResumeTimeout reached (slurm(401), 2026-11-20T11:00:00)".to_owned()
        )]
    );
    let note = "2 nodes powered down, the first job on each boots it, which may take 1800 sec (ResumeTimeout): p5-dy-gpu-[1-2]";
    assert!(dynamic.notes.contains(&note.to_owned()), "{:?}", dynamic.notes);
    let text = render(&dynamic, &asked, "/fsx", None, "now");
    assert!(text.contains("gpus = \"none\"\nmpi = \"pmix\""), "{text}");
    let read = Inventory::read(&text, "inventory/x.toml", &instances()).expect(&text);
    let ReachBy::Slurm(slurm) = read.reach else { panic!("not over Slurm") };
    assert_eq!((slurm.gpus, slurm.mpi.as_str()), (Some(GpuRequest::None), "pmix"));

    // Releases before 22.05 list on stderr.
    let old =
        Answer { stderr: b"srun: MPI types are...\nsrun: none\nsrun: pmi2\n".to_vec(), ..Answer::ok("") };
    let without = found(answers(old), &asked).expect("found");
    assert_eq!(without.mpi.as_deref(), Some("pmi2"));
    assert!(without.notes.iter().any(|note| note.contains("no pmix")), "{:?}", without.notes);
    let silent = found(answers(Answer::failed(1, "srun: fatal: no")), &asked).expect("found");
    assert_eq!(silent.mpi, None);
}

#[test]
fn gres_of_types_shards_and_suffixes_are_counted_and_mig_instances_are_no_whole_gpus() {
    let lines = "\
p5-001|idle|p5|gpu:h100:8(S:0-1),shard:h100:64K(S:0-1)|Unknown|Unknown|none
p5-002|idle|p5|gpu:nvidia_h100_80gb_hbm3:6(S:0-1),gpu:h100:2|Unknown|Unknown|none
p5-003|idle|p5|gpu:h100_7g.80gb:8(S:0-1)|Unknown|Unknown|none
p5-004|idle|p5|gpu:h100:1K|Unknown|Unknown|none
";
    let answers = vec![("sinfo --version", Answer::ok(OLD)), ("sinfo", Answer::ok(lines))];
    let found = found(answers, &request()).expect("found");
    assert_eq!(found.nodes, ["p5-001", "p5-002"]);
    let expected = [
        ("p5-003", "its GRES has MIG instances (7g.80gb), suites measure whole GPUs"),
        ("p5-004", "its GRES has 1024 GPUs, p5 has 8"),
    ];
    assert_eq!(why(&found), expected.map(|(node, why)| (node.to_owned(), why.to_owned())));
}

/// Of Slurm 22.05; the partition's own list of QOS stands for `{}`.
const PARTITION: &str = "PartitionName=gpu AllowGroups=ALL AllowAccounts=ALL AllowQos={} AllocNodes=ALL Default=NO \
QoS=N/A DefaultTime=NONE Nodes=p5-[001-012] State=UP SelectTypeParameters=NONE DefMemPerCPU=4096 MaxMemPerNode=UNLIMITED";

#[test]
fn a_qos_that_the_partition_demands_and_memory_that_slurm_shares_out_are_asked_for() {
    let discovered = |admitted: &str, own: Answer, types: &str| {
        let partition = PARTITION.replace("{}", admitted);
        let config =
            format!("SelectType              = select/cons_tres\nSelectTypeParameters    = {types}\n");
        let answers = vec![
            ("sinfo --version", Answer::ok(OLD)),
            ("sinfo", Answer::ok(LINES)),
            ("scontrol --all --oneliner show partition gpu", Answer::ok(partition)),
            ("scontrol show config", Answer::ok(config)),
            ("id -un", Answer::ok("alice\n")),
            ("sacctmgr", own),
        ];
        let found = found(answers, &request()).expect("found");
        let text = render(&found, &request(), "/fsx", None, "now");
        let read = Inventory::read(&text, "inventory/x.toml", &instances()).expect(&text);
        let ReachBy::Slurm(slurm) = read.reach else { panic!("not over Slurm") };
        let note = found.notes.into_iter().find(|note| note.contains("QOS"));
        (slurm.qos, slurm.mem, note)
    };
    let own = || Answer::ok("low,normal,p5|normal\n");
    assert_eq!(discovered("ALL", own(), "CR_CORE"), (None, None, None));
    assert_eq!(discovered("normal,high", own(), "CR_CORE"), (None, None, None), "the default is admitted");
    let (qos, mem, note) = discovered("high,p5,low", own(), "CR_CORE_MEMORY");
    assert_eq!((qos.as_deref(), mem.as_deref()), (Some("p5"), Some("0")));
    let admits = "partition `gpu` admits only the QOS `high`, `p5`, `low`";
    assert_eq!(note, Some(format!("{admits}; wrote qos = \"p5\"")));
    // Two associations with defaults of their own: which one a job gets depends on its account.
    let two = Answer::ok("normal|normal\nhigh|high\n");
    assert_eq!(discovered("high", two, "CR_CORE").0.as_deref(), Some("high"));
    for (own, says) in [
        (Answer::ok("normal|\n"), "and none of these is yours: its jobs will be refused"),
        (
            Answer::failed(1, "You are not running a supported accounting_storage plugin"),
            "which are yours is unknown",
        ),
    ] {
        let (qos, _, note) = discovered("high", own, "CR_CORE");
        assert_eq!(qos, None);
        assert!(note.as_ref().is_some_and(|note| note.contains(says)), "{note:?}");
    }
}

#[test]
fn a_partition_of_hyperpod_says_what_its_nodes_are_and_sagemakers_names_are_known() {
    let lines =
        "ip-10-1-4-190|idle|(null)|gpu:8|Unknown|Unknown|none\nip-10-1-5-138|idle|(null)|(null)|x|x|none\n";
    let answers = || vec![("sinfo --version", Answer::ok(OLD)), ("sinfo", Answer::ok(lines))];
    let asked = Request { partition: "ml.p5.48xlarge".to_owned(), ..Request::default() };
    let by_partition = found(answers(), &asked).expect("found");
    assert_eq!(
        (by_partition.instance.as_str(), by_partition.nodes.as_slice()),
        ("p5", ["ip-10-1-4-190".to_owned()].as_slice())
    );
    assert_eq!(why(&by_partition)[0].1, "its GRES names no GPU, but jobs request GPUs by GRES");
    let asked = Request { instance: Some("ml.p5en.48xlarge".to_owned()), ..request() };
    assert_eq!(found(answers(), &asked).expect("found").instance, "p5en");
    let inventory = "kind = \"real\"\ninstance = \"ml.p5.48xlarge\"\nnodes = \"n1\"\nreach = { via = \"local\" }\npaths = { shared = \"/f\" }\n";
    assert_eq!(Inventory::read(inventory, "x.toml", &instances()).expect("read").instance.name, "p5");
}

/// 24.11 to 25.11: states are lists, numbers are objects.
pub(super) const NODES: &str = r#"{"nodes": [
  {"name": "p5-001", "partitions": ["gpu"], "state": ["IDLE"], "active_features": ["p5", "efa"], "gres": "gpu:h100:8",
   "instance_type": "p5.48xlarge", "reason": "", "reason_changed_at": {"set": true, "infinite": false, "number": 0},
   "reason_set_by_user": ""},
  {"name": "p5-002", "partitions": ["gpu", "all"], "state": ["IDLE", "DRAIN"], "active_features": ["p5"],
   "gres": "gpu:h100:8", "instance_type": "p5.48xlarge", "reason": "xid 79\nsecond",
   "reason_changed_at": {"set": true, "infinite": false, "number": 1795226212}, "reason_set_by_user": "root"},
  {"name": "p5-003", "partitions": ["gpu"], "state": ["IDLE", "MAINTENANCE", "RESERVED"], "active_features": ["p5"],
   "gres": "gpu:h100:8", "instance_type": "p5.48xlarge", "reason": ""},
  {"name": "p5-004", "partitions": ["gpu"], "state": ["DOWN", "NOT_RESPONDING"], "active_features": [], "gres": "",
   "instance_type": "p5.48xlarge", "reason": "Not responding"},
  {"name": "p5-005", "partitions": ["gpu"], "state": ["MIXED", "PLANNED"], "active_features": ["p5"],
   "gres": "gpu:h100:8", "instance_type": "p4d.24xlarge", "reason": ""},
  {"name": "cpu-1", "partitions": ["cpu"], "state": ["IDLE"], "active_features": [], "gres": "", "reason": ""}
], "errors": [], "warnings": []}"#;

const NEW: &str = "slurm 25.11.1\n";

pub(super) fn new(nodes: &str) -> Vec<(&'static str, Answer)> {
    vec![
        ("sinfo --version", Answer::ok(NEW)),
        ("scontrol --all --json", Answer::ok(nodes)),
        ("sinfo", Answer::ok(LINES)),
    ]
}

#[test]
fn newer_releases_are_asked_in_json() {
    let asked = Request { instance: Some("p5".to_owned()), ..request() };
    let found = found(new(NODES), &asked).expect("found");
    assert_eq!(found.nodes, ["p5-001"]);
    let expected = [
        ("p5-002", "drain: xid 79\nsecond (root, 2026-11-21T00:36:52Z)"),
        ("p5-003", "maint, reserved"),
        ("p5-004", "down, not responding: Not responding"),
        ("p5-005", "its type is `p4d.24xlarge`, expected p5"),
    ];
    let reasons = why(&found);
    assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
    for ((node, why), (expected_node, expected_why)) in reasons.iter().zip(expected) {
        assert_eq!(node, expected_node);
        // The moment depends on the calendar.
        let shown: String = why.split(" (").next().unwrap_or_default().to_owned();
        assert_eq!(shown, expected_why.split(" (").next().unwrap_or_default(), "{why}");
    }
    assert!(reasons[0].1.ends_with("Z)"), "{reasons:?}");
}

#[test]
fn a_node_with_a_gpu_that_slurm_has_drained_is_left_out() {
    let asked = Request { instance: Some("p5".to_owned()), ..request() };
    let drained = |gres: &str| {
        let with = format!("\"gres\": \"gpu:h100:8\", \"gres_drained\": \"{gres}\"");
        NODES.replacen("\"gres\": \"gpu:h100:8\"", &with, 1)
    };
    for none in ["N/A", "", "gpu:h100:0(IDX:N/A)"] {
        assert_eq!(found(new(&drained(none)), &asked).expect("found").nodes, ["p5-001"], "{none}");
    }
    let Err(Failure::NoUsableNode(left)) = found(new(&drained("gpu:1(IDX:3)")), &asked) else {
        panic!("a node of seven GPUs was taken")
    };
    let expected = ("p5-001", "Slurm has drained 1 of its GPUs (gres_drained)");
    assert_eq!((left[0].node.as_str(), left[0].why.as_str()), expected);
}

#[test]
fn a_release_that_cannot_speak_json_after_all_is_asked_in_text() {
    let broken = [
        "",
        "not json",
        "{}",
        r#"{"nodes": [{"name": "a"}]}"#,
        r#"{"nodes": [{"partitions": ["gpu"], "state": ["IDLE"]}]}"#,
        r#"{"nodes": [], "errors": [{"error": "no serializer"}]}"#,
    ];
    for broken in broken {
        let found = found(new(broken), &request()).expect(broken);
        assert_eq!(found.nodes, ["p5-001", "p5-002", "p5-005", "p5-009"], "{broken}");
    }
}

/// 21.08 and 22.05 write `state` as a text with flags beside it, and plain numbers.
#[test]
fn json_of_older_releases_is_read_too() {
    let nodes = r#"{"meta": {"Slurm": {"version": {"major": 21, "micro": 5, "minor": 8}}}, "errors": [], "nodes": [
      {"name": "n1", "partitions": ["gpu"], "state": "idle", "state_flags": ["DRAIN"], "active_features": "p5,efa",
       "gres": "gpu:8", "reason": "fan", "reason_changed_at": 1795226212, "reason_set_by_user": null},
      {"name": "n2", "partitions": ["gpu"], "state": "mixed", "state_flags": [], "active_features": "", "gres": ""}]}"#;
    let nodes = json::read(nodes, "gpu").expect("read");
    assert!(nodes[0].state.has("drain") && nodes[0].state.has("idle"));
    assert_eq!(nodes[0].gpus, Some(8));
    assert_eq!(nodes[0].features.iter().map(String::as_str).collect::<Vec<_>>(), ["efa", "p5"]);
    assert!(nodes[0].reason.as_ref().is_some_and(|reason| reason.since.is_some() && reason.by.is_none()));
    assert_eq!((nodes[1].gpus, &nodes[1].reason), (None, &None));
}

#[test]
fn the_type_of_the_nodes_is_taken_from_slurm_where_it_says_so() {
    let asked = Request { instance: None, ..request() };
    let one = NODES.replace("p4d.24xlarge", "p5.48xlarge");
    assert_eq!(found(new(&one), &asked).expect("found").nodes, ["p5-001", "p5-005"]);
    let refusal = |nodes: &str, asked: &Request| match found(new(nodes), asked) {
        Err(Failure::InvalidRequest(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(refusal(NODES, &asked).contains("several types: `p4d.24xlarge`, `p5.48xlarge`; set --instance"));
    let small = one.replace("p5.48xlarge", "p5.4xlarge");
    assert!(refusal(&small, &asked).contains("no profile for the nodes' type `p5.4xlarge`"));
    assert!(refusal("", &asked).contains("Slurm does not report the type of the nodes"));
    let wrong =
        |instance: &str| refusal(NODES, &Request { instance: Some(instance.to_owned()), ..request() });
    assert!(wrong("p5x").contains("did you mean `p5"), "{}", wrong("p5x"));
    assert!(wrong("p5.4xlarge").contains("whole machines"), "{}", wrong("p5.4xlarge"));
    assert!(wrong("sim-p5").contains("no profile"), "{}", wrong("sim-p5"));
}

#[test]
fn features_and_reservations_narrow_the_nodes() {
    let reserved = "ReservationName=accept StartTime=2026-11-21T00:00:00 EndTime=2027-11-21T00:00:00 \
                    Duration=365-00:00:00 Nodes=p5-[006-007] NodeCnt=2 Flags=MAINT State=ACTIVE\n";
    let answers = |reservation: Answer| {
        vec![
            ("sinfo --version", Answer::ok(OLD)),
            ("sinfo", Answer::ok(LINES)),
            ("scontrol --oneliner show reservation accept", reservation),
        ]
    };
    let asked = Request { reservation: Some("accept".to_owned()), ..request() };
    let inside = found(answers(Answer::ok(reserved)), &asked).expect("found");
    assert_eq!(inside.nodes, ["p5-006", "p5-007"], "they are set aside for who asks");
    let text = render(&inside, &asked, "/fsx", None, "now");
    assert!(text.contains("reservation = \"accept\""), "{text}");
    let later = found(answers(Answer::ok(reserved.replace("ACTIVE", "INACTIVE"))), &asked).expect("found");
    assert_eq!(later.notes, ["the reservation `accept` is inactive, it begins at 2026-11-21T00:00:00"]);
    let none = found(answers(Answer::failed(1, "Reservation accept not found\n")), &asked);
    assert!(
        matches!(&none, Err(Failure::InvalidRequest(why)) if why.contains("no reservation named `accept`")),
        "{none:?}"
    );
    for nodes in ["other-1", "(null)", ""] {
        let elsewhere = found(answers(Answer::ok(reserved.replace("p5-[006-007]", nodes))), &asked);
        assert!(
            matches!(&elsewhere, Err(Failure::InvalidRequest(why)) if why.contains("no node of partition")),
            "{nodes}: {elsewhere:?}"
        );
    }

    let with = |features: &[&str]| {
        let features = features.iter().map(|feature| (*feature).to_owned()).collect();
        found(answers(Answer::ok("")), &Request { features, ..request() })
    };
    assert_eq!(with(&["rack1"]).expect("found").nodes, ["p5-001", "p5-002"]);
    assert_eq!(with(&["rack2", "efa"]).expect("found").nodes, ["p5-005", "p5-009"]);
    assert!(
        matches!(with(&["rack3"]), Err(Failure::InvalidRequest(why)) if why.contains("did you mean `rack"))
    );
    assert!(
        matches!(with(&["rack1", "rack2"]), Err(Failure::InvalidRequest(why)) if why.contains("has all of `rack1`, `rack2`"))
    );
}

#[test]
fn no_answer_is_never_taken_for_no_nodes() {
    let silent = found(vec![], &request());
    assert!(matches!(&silent, Err(Failure::NoAnswer(why)) if why.contains("in 3 tries")), "{silent:?}");
    let away = Answer::failed(1, "slurm_load_node: Unable to contact slurm controller (connect failure)\n");
    let away = found(vec![("sinfo --version", Answer::ok(OLD)), ("sinfo", away)], &request());
    assert!(matches!(&away, Err(Failure::NoAnswer(why)) if why.contains("Unable to contact")), "{away:?}");
    let garbled = found(
        vec![("sinfo --version", Answer::ok(OLD)), ("sinfo", Answer::ok("what is this\n"))],
        &request(),
    );
    assert!(matches!(&garbled, Err(Failure::NoAnswer(why)) if why.contains("cannot be read")), "{garbled:?}");
}

#[test]
fn an_unknown_partition_is_reported_with_the_nearest() {
    let answers = vec![
        ("sinfo --version", Answer::ok(OLD)),
        ("sinfo --noheader --all --format=%R", Answer::ok("gpus\ncpu\n")),
        ("sinfo", Answer::ok("")),
    ];
    let none = found(answers, &request());
    let refusal = "--partition: no partition named `gpu`; did you mean `gpus`?";
    assert_eq!(none, Err(Failure::InvalidRequest(refusal.to_owned())));
}

#[test]
fn where_no_node_takes_jobs_nothing_is_made_of_it() {
    let lines = "n1|drained|p5|gpu:8|x|root|fan\nn2|down*|p5|gpu:8|x|root|power\n";
    let none = found(vec![("sinfo --version", Answer::ok(OLD)), ("sinfo", Answer::ok(lines))], &request());
    assert!(matches!(&none, Err(Failure::NoUsableNode(left)) if left.len() == 2), "{none:?}");
}

#[test]
#[ignore = "reads collected answers of Slurm: `tests/run` runs it where they are"]
fn recorded_answers_of_real_clusters_are_read() {
    let corpus = std::env::var_os("HARNESS_TEST_CORPUS").expect("HARNESS_TEST_CORPUS");
    let corpus = Path::new(&corpus);
    let read = |path: std::path::PathBuf| {
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let fixtures = ["nodes-24.11.json", "nodes-26.05.json", "sinfo-22.05.json"];
    for name in fixtures {
        let answer = read(corpus.join("../testbed/slurm/fixtures").join(name));
        let nodes = json::read(&answer, "main").unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(nodes.len(), 4, "{name}");
        assert!(
            nodes.iter().all(|node| node.gpus == Some(8) && node.features.contains("efa")),
            "{name}: {nodes:?}"
        );
    }
    let answer = read(corpus.join("slurm/rivos-sinfo_out.json"));
    let nodes = json::read(&answer, "hw").expect("read");
    assert!(!nodes.is_empty() && nodes.iter().all(|node| node.state.unknown.is_empty()), "{nodes:?}");
}

proptest::proptest! {
    #[test]
    fn no_answer_at_all_makes_the_readers_panic(answer in "[\\PC\n|]{0,120}") {
        let _ = text::read(&answer);
        let _ = json::read(&answer, "gpu");
    }
}
