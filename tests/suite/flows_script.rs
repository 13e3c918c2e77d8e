//! The script of `nic-pairs` under a real shell: both nodes as two processes in one folder, with stand-ins for the
//! tools. What the outputs mean is tested beside their reader.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const FLOWS_SH: &str = job::script::FLOWS_SH;

/// Prints what fi_rma_bw prints as a client; as a server it ends at once. It never connects through `rdmap81s0`.
const FI_RMA_BW: &str = r#"#!/bin/bash
printf '%s\n' "$*" >> "calls.$SLURMD_NODENAME"
case " $* " in
  *" a ") ;;
  *) exit 0 ;;
esac
case " $* " in
  *" rdmap81s0-rdm "*) echo "connect: Connection refused" >&2; exit 111 ;;
esac
printf -- '---\n%s :\n' "$0 $*"
echo -n "- { xfer_size: 1048576, iterations: 60000, total: 62914560000, time: 5.242880, "
echo "MB/sec: 12000.000000, usec/xfer: 87.381332, Mxfers/sec: 0.011444 }"
"#;

const IB_BW: &str = r#"#!/bin/bash
echo "${0##*/} $*" >> "calls.$SLURMD_NODENAME"
case " $* " in
  *" a ") ;;
  *) exit 0 ;;
esac
echo " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]"
echo " 1048576    60000            0.00               11444.09                  0.011444"
"#;

/// Stays until it is asked to stop, as a server without a client does.
const STAYS: &str = "#!/bin/bash\necho $$ >> pids\nexec sleep 600\n";

/// Knows CUDA, and notes when each flow begins and ends.
const CUDA_RMA_BW: &str = r#"#!/bin/bash
if [[ " $* " == *" harness-none "* ]]; then echo "fi_getinfo(): common/shared.c:1, ret=-61 (No data)" >&2; exit 61; fi
printf '%s\n' "$*" >> "calls.$SLURMD_NODENAME"
[[ " $* " == *" a " ]] || exit 0
[[ "$*" =~ -d\ ([a-z0-9]+) ]] && device=${BASH_REMATCH[1]}
echo "begin $device" >> spans
sleep 0.4
echo "end $device" >> spans
echo -n "- { xfer_size: 1048576, iterations: 60000, total: 62914560000, time: 5.242880, "
echo "MB/sec: 12000.000000, usec/xfer: 87.381332, Mxfers/sec: 0.011444 }"
"#;

/// The same tool without CUDA: it fails before it looks for a provider.
fn without_cuda() -> String {
    CUDA_RMA_BW
        .replace("fi_getinfo(): common/shared.c:1, ret=-61", "ft_hmem_init(): common/shared.c:1, ret=-38")
}

struct Pair {
    folder: TempDir,
    tools: TempDir,
}

impl Pair {
    fn with(tools: &[(&str, &str)]) -> Self {
        let pair = Pair { folder: TempDir::new().unwrap(), tools: TempDir::new().unwrap() };
        // Only these, so that a tool which the machine happens to have is missing all the same.
        for name in ["bash", "cat", "date", "grep", "ls", "mv", "rm", "sleep", "timeout", "uname"] {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
            let found = found.iter().find(|path| path.exists()).unwrap();
            std::os::unix::fs::symlink(found, pair.tools.path().join(name)).unwrap();
        }
        for (name, text) in tools {
            let path = pair.tools.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        pair
    }

    fn start(&self, node: &str, arguments: &[String]) -> Child {
        let sys = self.folder.path().join("sys");
        let text = FLOWS_SH.replace("\nsys=/sys\n", &format!("\nsys={}\n", sys.display()));
        assert_ne!(text, FLOWS_SH);
        Command::new("bash")
            .args(["-c", &text, "flows.sh"])
            .args(arguments)
            .current_dir(self.folder.path())
            .env("PATH", self.tools.path())
            .env("SLURMD_NODENAME", node)
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Both nodes, server first; their exit codes.
    fn run(&self, arguments: &[String]) -> (Option<i32>, Option<i32>) {
        let mut server = self.start("a", arguments);
        let mut client = self.start("b", arguments);
        (server.wait().unwrap().code(), client.wait().unwrap().code())
    }

    /// A node's PCIe tree: two switches, each with a GPU and two NICs below it, as sysfs shows it.
    fn with_pcie_tree(self) -> Self {
        let sys = self.folder.path().join("sys");
        let link = |from: &str, to: &Path| {
            let from = sys.join(from);
            fs::create_dir_all(from.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(to, from).unwrap();
        };
        for (root, gpu, nics) in [
            ("44", "53:00.0", ["4f:00.0 rdmap79s0", "50:00.0 rdmap80s0"]),
            ("55", "64:00.0", ["60:00.0 rdmap96s0", "61:00.0 rdmap97s0"]),
        ] {
            let switch = sys.join(format!("devices/pci0000:{root}/0000:{root}:00.0/0000:{root}:01.0"));
            let add = |slot: &str, vendor: &str, class: &str| {
                let folder = switch.join(format!("0000:{root}:02.0/0000:{slot}"));
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join("vendor"), format!("{vendor}\n")).unwrap();
                fs::write(folder.join("class"), format!("{class}\n")).unwrap();
                link(&format!("bus/pci/devices/0000:{slot}"), &folder);
                folder
            };
            add(gpu, "0x10de", "0x030200");
            // An NVSwitch has the same maker, and is no GPU.
            add(&gpu.replace(".0", ".1"), "0x10de", "0x068000");
            for nic in nics {
                let (slot, name) = nic.split_once(' ').unwrap();
                let folder = add(slot, "0x1d0f", "0x020000");
                link(&format!("class/infiniband/{name}/device"), &folder);
            }
        }
        self
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

/// Of host memory, each device behind a switch of its own.
fn arguments(tool: &str, op: &str, limit: &str, devices: &[&str]) -> Vec<String> {
    let devices: Vec<String> = devices.iter().enumerate().map(|(at, name)| format!("{name}={at}")).collect();
    with_memory(tool, op, limit, "host", &devices.iter().map(String::as_str).collect::<Vec<_>>())
}

fn with_memory(tool: &str, op: &str, limit: &str, memory: &str, devices: &[&str]) -> Vec<String> {
    let words = [&[tool, op, "a", "b", "18600", "1048576", "60000", limit, memory][..], devices].concat();
    words.into_iter().map(str::to_owned).collect()
}

#[test]
fn one_device_that_does_not_connect_leaves_the_others_their_rates() {
    let pair = Pair::with(&[("fi_rma_bw", FI_RMA_BW)]);
    let codes = pair.run(&arguments("fi_rma_bw", "write", "8", &["rdmap79s0", "rdmap81s0", "rdmap96s0"]));
    assert_eq!(codes, (Some(0), Some(0)));
    for device in ["rdmap79s0", "rdmap96s0"] {
        assert!(pair.text(&format!("{device}.out")).contains("MB/sec: 12000.000000"), "{device}");
    }
    assert!(pair.text("rdmap81s0.out").contains("\nnot-connected no rate in 8 s, attempts: "));
    assert!(pair.text("rdmap81s0.err").contains("Connection refused"));
    let server = pair.text("calls.a");
    assert!(
        server.contains("-e rdm -o writedata -S 1048576 -I 60000 -m -E=18602 -p efa -d rdmap96s0-rdm\n"),
        "{server}"
    );
    assert!(pair.text("calls.b").contains("-E=18600 -p efa -d rdmap79s0-rdm a\n"));
}

#[test]
fn tools_of_an_old_libfabric_write_by_rdma_too() {
    let prints = "echo \"${FI_EFA_USE_DEVICE_RDMA-unset}\" >> \"rdma.$SLURMD_NODENAME\"\n";
    let tool = FI_RMA_BW.replacen('\n', &format!("\n{prints}"), 1);
    let pair = Pair::with(&[("fi_rma_bw", &tool)]);
    assert_eq!(pair.run(&arguments("fi_rma_bw", "write", "8", &["rdmap79s0"])), (Some(0), Some(0)));
    assert_eq!(pair.text("rdma.b"), "1\n");
    assert!(pair.text("rdma.a").lines().all(|value| value == "1"), "{}", pair.text("rdma.a"));
}

#[test]
fn a_read_asks_for_the_reading_form_of_either_tool() {
    let pair = Pair::with(&[("fi_rma_bw", FI_RMA_BW), ("ib_read_bw", IB_BW)]);
    assert_eq!(pair.run(&arguments("fi_rma_bw", "read", "30", &["mlx5_0"])), (Some(0), Some(0)));
    assert!(pair.text("calls.b").contains("-o read "));
    assert!(pair.text("calls.b").contains("-p verbs;ofi_rxm -d mlx5_0 a\n"));
    let pair = Pair::with(&[("ib_read_bw", IB_BW)]);
    assert_eq!(
        pair.run(&arguments("ib_write_bw", "read", "30", &["mlx5_0", "rdmap79s0"])),
        (Some(0), Some(0))
    );
    let calls = pair.text("calls.b");
    assert!(calls.contains("ib_read_bw -F -d mlx5_0 -p 18600 -s 1048576 -n 60000 a\n"), "{calls}");
    assert!(
        calls.contains("ib_read_bw -F -d rdmap79s0 -p 18601 -s 1048576 -n 60000 -c SRD -x 0 a\n"),
        "{calls}"
    );
    assert!(pair.text("mlx5_0.out").contains("11444.09"));
}

#[test]
fn a_missing_tool_is_said_in_the_output_of_every_flow_and_by_the_exit_code() {
    let pair = Pair::with(&[]);
    let words = arguments("ib_write_bw", "write", "30", &["mlx5_0", "mlx5_1"]);
    assert_eq!(pair.run(&words), (Some(3), Some(3)));
    assert_eq!(pair.text("mlx5_1.out"), "tool-missing ib_write_bw b\n");

    let pair = Pair::with(&[]);
    assert_eq!(pair.start("a", &words).wait().unwrap().code(), Some(3));
    fs::write(pair.tools.path().join("ib_write_bw"), IB_BW).unwrap();
    fs::set_permissions(pair.tools.path().join("ib_write_bw"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(pair.start("b", &words).wait().unwrap().code(), Some(0));
    assert_eq!(pair.text("mlx5_0.out"), "tool-missing ib_write_bw a\n");
}

#[test]
fn a_client_whose_server_never_comes_says_so_and_ends() {
    let pair = Pair::with(&[("ib_write_bw", IB_BW)]);
    let words = arguments("ib_write_bw", "write", "1", &["mlx5_0"]);
    assert_eq!(pair.start("b", &words).wait().unwrap().code(), Some(0));
    assert_eq!(pair.text("mlx5_0.out"), "not-started server a was not ready after 1 s\n");
}

#[test]
fn a_script_asked_to_stop_leaves_nothing_running() {
    let pair = Pair::with(&[("ib_write_bw", STAYS)]);
    let words = arguments("ib_write_bw", "write", "600", &["mlx5_0", "mlx5_1"]);
    let mut server = pair.start("a", &words);
    let mut client = pair.start("b", &words);
    while pair.text("pids").lines().count() < 4 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    for node in [&mut server, &mut client] {
        Command::new("kill").args(["-TERM", &node.id().to_string()]).status().unwrap();
        assert_eq!(node.wait().unwrap().code(), Some(143));
    }
    for pid in pair.text("pids").lines() {
        assert!(!Path::new("/proc").join(pid).exists(), "still running: {pid}");
    }
}

#[test]
fn servers_end_once_the_clients_are_done() {
    let pair = Pair::with(&[("ib_write_bw", "#!/bin/bash\n[[ ${!#} == a ]] && exit 0\nexec sleep 600\n")]);
    assert_eq!(pair.run(&arguments("ib_write_bw", "write", "300", &["mlx5_0"])), (Some(0), Some(0)));
}

#[test]
fn wrong_arguments_and_a_strange_node_have_exit_codes_of_their_own() {
    let pair = Pair::with(&[]);
    let code = |node: &str, words: &[String]| pair.start(node, words).wait().unwrap().code();
    assert_eq!(code("a", &["fi_rma_bw".to_owned()]), Some(2));
    assert_eq!(code("a", &arguments("fi_rma_bw", "copy", "5", &["mlx5_0"])), Some(2));
    assert_eq!(code("a", &arguments("nccl", "write", "5", &["mlx5_0"])), Some(2));
    assert_eq!(code("a", &arguments("fi_rma_bw", "write", "soon", &["mlx5_0"])), Some(2));
    assert_eq!(code("a", &with_memory("fi_rma_bw", "write", "5", "disk", &["mlx5_0=0"])), Some(2));
    assert_eq!(code("a", &with_memory("fi_rma_bw", "write", "5", "auto", &["mlx5_0"])), Some(2));
    assert_eq!(code("c", &arguments("fi_rma_bw", "write", "5", &["mlx5_0"])), Some(4));
}

const FOUR: [&str; 4] = ["rdmap79s0=0", "rdmap80s0=0", "rdmap96s0=0", "rdmap97s0=0"];

fn auto(tool: &str, limit: &str) -> Vec<String> {
    with_memory(tool, "write", limit, "auto", &FOUR)
}

/// How many flows ran at once behind each of the two switches, at most.
fn most_at_once(spans: &str) -> [i32; 2] {
    let (mut now, mut most) = ([0, 0], [0, 0]);
    for line in spans.lines() {
        let switch = usize::from(line.contains("rdmap9"));
        now[switch] += if line.starts_with("begin") { 1 } else { -1 };
        most[switch] = most[switch].max(now[switch]);
    }
    most
}

#[test]
fn flows_move_the_memory_of_the_gpu_behind_the_same_switch_all_at_once() {
    let pair = Pair::with(&[("fi_rma_bw", CUDA_RMA_BW)]).with_pcie_tree();
    assert_eq!(pair.run(&auto("fi_rma_bw", "30")), (Some(0), Some(0)));
    // The profile's own guess was GPU 0 for all.
    for (device, gpu) in [("rdmap79s0", 0), ("rdmap80s0", 0), ("rdmap96s0", 1), ("rdmap97s0", 1)] {
        let out = pair.text(&format!("{device}.out"));
        assert!(out.starts_with(&format!("path gpu {gpu} sysfs\n- {{")), "{out}");
        for calls in ["calls.a", "calls.b"] {
            let words = format!("-p efa -d {device}-rdm -D cuda -i {gpu}");
            assert!(pair.text(calls).contains(&words), "{}", pair.text(calls));
        }
    }
    assert_eq!(most_at_once(&pair.text("spans")), [2, 2]);
}

#[test]
fn nodes_that_do_not_show_their_pcie_tree_take_the_profiles_gpus() {
    let pair = Pair::with(&[("fi_rma_bw", CUDA_RMA_BW), ("nvidia-smi", "#!/bin/bash\n")]);
    let words = with_memory("fi_rma_bw", "write", "30", "auto", &["rdmap79s0=0", "rdmap96s0=1"]);
    assert_eq!(pair.run(&words), (Some(0), Some(0)));
    assert!(pair.text("rdmap96s0.out").starts_with("path gpu 1 profile\n"), "{}", pair.text("rdmap96s0.out"));
}

#[test]
fn without_cuda_one_nic_of_each_switch_runs_at_a_time() {
    let pair = Pair::with(&[("fi_rma_bw", &without_cuda())]).with_pcie_tree();
    assert_eq!(pair.run(&auto("fi_rma_bw", "30")), (Some(0), Some(0)));
    assert_eq!(most_at_once(&pair.text("spans")), [1, 1], "{}", pair.text("spans"));
    for (device, turn) in
        [("rdmap79s0", "1/2"), ("rdmap80s0", "2/2"), ("rdmap96s0", "1/2"), ("rdmap97s0", "2/2")]
    {
        let out = pair.text(&format!("{device}.out"));
        assert!(out.starts_with(&format!("path host {turn} fi_rma_bw on b cannot use CUDA\n")), "{out}");
        assert!(out.contains("MB/sec: 12000.000000"));
    }
    assert!(!pair.text("calls.b").contains("cuda"));
}

#[test]
fn a_client_with_cuda_takes_turns_where_its_server_has_none() {
    let pair = Pair::with(&[("fi_rma_bw", &without_cuda())]).with_pcie_tree();
    let mut server = pair.start("a", &auto("fi_rma_bw", "30"));
    while pair.text("servers.ready").is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    fs::write(pair.tools.path().join("fi_rma_bw"), CUDA_RMA_BW).unwrap();
    let mut client = pair.start("b", &auto("fi_rma_bw", "30"));
    assert_eq!((server.wait().unwrap().code(), client.wait().unwrap().code()), (Some(0), Some(0)));
    let out = pair.text("rdmap80s0.out");
    assert!(out.starts_with("path host 2/2 fi_rma_bw on a cannot use CUDA\n"), "{out}");
    assert_eq!(most_at_once(&pair.text("spans")), [1, 1]);
}

#[test]
fn gpu_memory_that_is_asked_for_and_cannot_be_had_is_a_refusal() {
    let pair = Pair::with(&[("fi_rma_bw", &without_cuda())]).with_pcie_tree();
    let words = with_memory("fi_rma_bw", "write", "30", "gpu", &FOUR);
    assert_eq!(pair.run(&words), (Some(5), Some(5)));
    assert_eq!(pair.text("rdmap97s0.out"), "tool-refused fi_rma_bw on b cannot use CUDA\n");
}

/// As perftest prints its help; it sends like `IB_BW`.
fn cuda_ib_bw() -> String {
    let help = "if [[ $1 == --help ]]; then echo '  --use_cuda=<id>  --use_cuda_dmabuf'; exit 1; fi\n";
    IB_BW.replacen("#!/bin/bash\n", &format!("#!/bin/bash\n{help}"), 1)
}

#[test]
fn perftest_is_given_the_gpu_before_the_dma_buffer() {
    let pair = Pair::with(&[("ib_write_bw", &cuda_ib_bw())]).with_pcie_tree();
    assert_eq!(pair.run(&auto("ib_write_bw", "30")), (Some(0), Some(0)));
    let calls = pair.text("calls.b");
    assert!(
        calls.contains(
            "-d rdmap96s0 -p 18602 -s 1048576 -n 60000 -c SRD -x 0 --use_cuda=1 --use_cuda_dmabuf a\n"
        ),
        "{calls}"
    );
    // A module that opens GPU memory to NICs makes the DMA buffer needless.
    let pair = Pair::with(&[("ib_write_bw", &cuda_ib_bw())]).with_pcie_tree();
    fs::create_dir_all(pair.folder.path().join("sys/module/efa_nv_peermem")).unwrap();
    assert_eq!(pair.run(&auto("ib_write_bw", "30")), (Some(0), Some(0)));
    assert!(pair.text("calls.b").contains("--use_cuda=1 a\n"), "{}", pair.text("calls.b"));
}

/// Debian's perftest 4.5, asked for writes over SRD.
const OLD_IB_WRITE_BW: &str =
    "#!/bin/bash\necho ' SRD connection only possible in SEND/READ verbs' >&2\nexit 1\n";

#[test]
fn a_tool_that_refuses_its_arguments_is_not_tried_until_the_limit() {
    let pair = Pair::with(&[("ib_write_bw", OLD_IB_WRITE_BW)]);
    let began = std::time::Instant::now();
    assert_eq!(
        pair.run(&arguments("ib_write_bw", "write", "110", &["rdmap79s0", "rdmap96s0"])),
        (Some(5), Some(5))
    );
    assert!(began.elapsed().as_secs() < 40, "{:?}", began.elapsed());
    for device in ["rdmap79s0", "rdmap96s0"] {
        let out = pair.text(&format!("{device}.out"));
        let refused = "tool-refused ib_write_bw on ";
        assert!(
            out.starts_with(refused) && out.contains("SRD connection only possible in SEND/READ verbs"),
            "{out}"
        );
    }
}

#[test]
fn what_ends_every_client_at_once_is_the_tools_and_no_devices() {
    let breaks =
        "#!/bin/bash\n[[ ${!#} == a ]] || exec sleep 600\necho 'no memory for widgets' >&2\nexit 7\n";
    let pair = Pair::with(&[("ib_write_bw", breaks)]);
    let began = std::time::Instant::now();
    let codes = pair.run(&arguments("ib_write_bw", "write", "110", &["mlx5_0", "mlx5_1"]));
    assert_eq!(codes.1, Some(5));
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    assert_eq!(pair.text("mlx5_1.out"), "tool-refused ib_write_bw on b: no memory for widgets\n");
}
