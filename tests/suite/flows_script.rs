//! The script of `nic-pairs` under a real shell: both nodes as two processes in one folder, with stand-ins for the
//! tools. What the outputs mean is tested beside their reader.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const FLOWS_SH: &str = harness::script::FLOWS_SH;

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

/// Stays until it is told to stop, as a server without a client does.
const STAYS: &str = "#!/bin/bash\necho $$ >> pids\nexec sleep 600\n";

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

    fn start(&self, node: &str, arguments: &[&str]) -> Child {
        Command::new("bash")
            .args(["-c", FLOWS_SH, "flows.sh"])
            .args(arguments)
            .current_dir(self.folder.path())
            .env("PATH", self.tools.path())
            .env("SLURMD_NODENAME", node)
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Both nodes, server first; their exit codes.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, Option<i32>) {
        let mut server = self.start("a", arguments);
        let mut client = self.start("b", arguments);
        (server.wait().unwrap().code(), client.wait().unwrap().code())
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

fn arguments<'a>(tool: &'a str, op: &'a str, limit: &'a str, devices: &[&'a str]) -> Vec<&'a str> {
    [&[tool, op, "a", "b", "18600", "1048576", "60000", limit][..], devices].concat()
}

#[test]
fn one_device_that_does_not_connect_leaves_the_others_their_rates() {
    let pair = Pair::with(&[("fi_rma_bw", FI_RMA_BW)]);
    let codes = pair.run(&arguments("fi_rma_bw", "write", "8", &["rdmap79s0", "rdmap81s0", "rdmap96s0"]));
    assert_eq!(codes, (Some(0), Some(0)));
    for device in ["rdmap79s0", "rdmap96s0"] {
        assert!(pair.text(&format!("{device}.out")).contains("MB/sec: 12000.000000"), "{device}");
    }
    assert!(pair.text("rdmap81s0.out").starts_with("not-connected no rate in 8 s, attempts: "));
    assert!(pair.text("rdmap81s0.err").contains("Connection refused"));
    let server = pair.text("calls.a");
    assert!(
        server.contains("-e rdm -o writedata -S 1048576 -I 60000 -m -E=18602 -p efa -d rdmap96s0-rdm\n"),
        "{server}"
    );
    assert!(pair.text("calls.b").contains("-E=18600 -p efa -d rdmap79s0-rdm a\n"));
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
fn a_script_told_to_stop_leaves_nothing_running() {
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
    let code = |node: &str, words: &[&str]| pair.start(node, words).wait().unwrap().code();
    assert_eq!(code("a", &["fi_rma_bw"]), Some(2));
    assert_eq!(code("a", &arguments("fi_rma_bw", "copy", "5", &["mlx5_0"])), Some(2));
    assert_eq!(code("a", &arguments("nccl", "write", "5", &["mlx5_0"])), Some(2));
    assert_eq!(code("a", &arguments("fi_rma_bw", "write", "soon", &["mlx5_0"])), Some(2));
    assert_eq!(code("c", &arguments("fi_rma_bw", "write", "5", &["mlx5_0"])), Some(4));
}
