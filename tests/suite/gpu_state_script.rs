//! The script that reads the state of GPUs around a program, under a real bash with a stand-in for nvidia-smi, read back by the
//! reader of such files.

use job::script::GPU_STATE_SH;
use logs::node_tools::gpu_state::{self, GpuStates, Phase};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A driver that does not know the new name of the reasons, nor rows that are remapped. Its second GPU has an error more with
/// each reading.
const NVIDIA_SMI: &str = r#"#!/bin/bash
case $1 in
  --query-gpu=*)
    list=${1#--query-gpu=}
    IFS=, read -ra fields <<< "$list"
    for field in "${fields[@]}"; do
      case $field in
        clocks_event_reasons.*|remapped_rows.*) echo "Field \"$field\" is not a valid field to query."; exit 2 ;;
      esac
    done
    echo x >> readings
    for gpu in 0 1; do
      row=
      IFS=, read -ra fields <<< "$list"
      for field in "${fields[@]}"; do
        case $field in
          index) value=$gpu ;;
          pcie.link.width.*) value=16 ;;
          pcie.link.gen.*) value=5 ;;
          temperature.gpu) value=60 ;;
          clocks_throttle_reasons.active) value=0x0000000000000040 ;;
          ecc.errors.uncorrected.volatile.total) value=$((gpu * $(cat readings 2> /dev/null | wc -l))) ;;
          *) value='[N/A]' ;;
        esac
        row+="${row:+, }$value"
      done
      echo "$row"
    done ;;
  nvlink) printf 'GPU 0: NVIDIA (UUID: x)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n\t Link 1: Replay Errors: %s\n' "$(cat readings | wc -l)" ;;
esac
"#;

fn folder(nvidia_smi: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("gpu_state.sh"), GPU_STATE_SH).expect("written");
    fs::create_dir(folder.path().join("bin")).expect("made");
    if let Some(text) = nvidia_smi {
        let path = folder.path().join("bin/nvidia-smi");
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    folder
}

fn command(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new("bash");
    let path =
        format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
    command.arg("gpu_state.sh").args(arguments).env("PATH", path).current_dir(folder.path());
    command
}

fn run(folder: &TempDir, arguments: &[&str]) -> (Output, Result<GpuStates, String>) {
    let ran = command(folder, arguments).output().expect("bash");
    let bytes = fs::read(folder.path().join("out.txt")).expect("a file");
    (ran, gpu_state::read(bytes.as_slice()).expect("in memory"))
}

#[test]
fn an_older_driver_is_asked_for_the_fields_that_it_knows() {
    let folder = folder(Some(NVIDIA_SMI));
    let (ran, states) =
        run(&folder, &["0.2", "out.txt", "sh", "-c", "echo out; echo err >&2; sleep 3; exit 7"]);
    assert_eq!(ran.status.code(), Some(7));
    assert_eq!((ran.stdout.as_slice(), ran.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    let states = states.expect("read");
    assert!(states.complete && states.failed.is_empty(), "{states:?}");
    let (first, second) = (&states.gpus[&0], &states.gpus[&1]);
    assert!(first.readings.iter().filter(|reading| reading.phase == Phase::During).count() >= 2, "{first:?}");
    let reading = &first.readings[0];
    assert_eq!((reading.width, reading.reasons), (Some((16.0, 16.0)), Some(0x40)));
    assert_eq!((reading.temperature, reading.memory_pending), (Some(60.0), None));
    let counts: Vec<u64> = second.readings.iter().filter_map(|reading| reading.uncorrected).collect();
    assert!(
        counts.len() == second.readings.len() && counts.is_sorted() && counts[0] < counts[counts.len() - 1]
    );
    assert_eq!(first.links, Some(1));
    assert!(first.link_errors.is_some_and(|errors| errors > 0), "{first:?}");
}

#[test]
fn a_window_of_a_soak_knows_what_went_before_it_and_what_the_kernel_holds() {
    let folder = folder(Some(NVIDIA_SMI));
    let (ran, states) = run(&folder, &["0@7200", "out.txt", "echo", "ran"]);
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), &b"ran\n"[..]));
    let states = states.expect("read");
    assert_eq!((states.complete, states.soaked_s), (true, 7200.0));
    let phases: Vec<Phase> = states.host.kernel_memory.iter().map(|(phase, _)| *phase).collect();
    assert_eq!(phases, [Phase::Before, Phase::After], "{states:?}");
    assert!(states.host.kernel_memory.iter().all(|(_, bytes)| *bytes > 0.0), "{states:?}");
}

#[test]
fn without_nvidia_smi_the_program_runs_all_the_same() {
    let folder = folder(None);
    let (ran, states) = run(&folder, &["10", "out.txt", "echo", "ran"]);
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), &b"ran\n"[..]));
    if Command::new("nvidia-smi").output().is_err() {
        assert_eq!(states.expect_err("none"), "nvidia-smi is not on PATH");
    }
}

#[test]
fn a_program_that_is_not_there_and_a_builtin_have_the_code_of_a_shell() {
    let folder = folder(Some(NVIDIA_SMI));
    let (ran, _) = run(&folder, &["0", "out.txt", "no-such-program", "x"]);
    assert_eq!(ran.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("no-such-program"), "{ran:?}");
    assert_eq!(run(&folder, &["0", "out.txt", "exec"]).0.status.code(), Some(127));
}

#[test]
fn who_ends_the_script_ends_its_program_and_its_readings() {
    let folder = folder(Some(NVIDIA_SMI));
    let mut child = command(&folder, &["0.1", "out.txt", "sh", "-c", "echo $$; exec sleep 600"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash");
    let mut digits = Vec::new();
    let mut out = child.stdout.take().expect("a pipe");
    let mut byte = [0];
    while out.read(&mut byte).expect("read") == 1 && byte[0] != b'\n' {
        digits.push(byte[0]);
    }
    let program: u32 = String::from_utf8(digits).expect("text").parse().expect("a process");
    let script = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(script, nix::sys::signal::Signal::SIGTERM).expect("sent");
    assert_eq!(child.wait().expect("ended").code(), Some(143));
    let is_gone = || !std::path::Path::new(&format!("/proc/{program}/exe")).exists();
    assert!(is_gone(), "the program still runs");
    let size = || fs::metadata(folder.path().join("out.txt")).expect("a file").len();
    let before = size();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(before, size());
    let bytes = fs::read(folder.path().join("out.txt")).expect("a file");
    let states = gpu_state::read(bytes.as_slice()).expect("in memory").expect("read");
    assert!(!states.complete);
}

/// nvidia-smi goes on with the others, by some drivers with exit code 15.
#[test]
fn a_gpu_that_is_lost_under_load_leaves_the_others_listed() {
    for code in [0, 15] {
        let lost = "if [[ -e lost ]]; then echo 'Unable to determine the device handle for GPU1: 0000:CA:00.0: GPU is lost'; fi\n    \
             for gpu in 0 1; do\n      [[ -e lost && $gpu == 1 ]] && continue";
        let ended = format!("done\n    if [[ -e lost ]]; then exit {code}; fi ;;\n  nvlink)");
        let text = NVIDIA_SMI.replace("for gpu in 0 1; do", lost).replace("done ;;\n  nvlink)", &ended);
        let folder = folder(Some(&text));
        let (_, states) = run(&folder, &["0", "out.txt", "touch", "lost"]);
        let states = states.expect("read");
        let listed =
            |gpu: u32| states.gpus[&gpu].readings.iter().filter(|it| it.phase == Phase::After).count();
        assert_eq!((listed(0), listed(1)), (1, 0), "exit code {code}: {states:?}");
        assert_eq!((states.gpus[&0].lost, states.gpus[&1].lost), (false, true), "exit code {code}");
        assert_eq!(
            states.failed,
            ["Unable to determine the device handle for GPU1: 0000:CA:00.0: GPU is lost"]
        );
        // Lost before the program: the others are read all the same.
        let (_, states) = run(&folder, &["0", "out.txt", "true"]);
        let states = states.expect("read");
        assert_eq!(states.gpus.keys().copied().collect::<Vec<u32>>(), [0], "exit code {code}: {states:?}");
        assert_eq!((states.gpus[&0].readings.len(), states.failed.len()), (2, 2), "exit code {code}");
    }
}

#[test]
fn a_gpu_that_is_lost_is_reported_in_the_words_of_nvidia_smi() {
    let lost = "#!/bin/bash\necho 'Unable to determine the device handle for GPU0000:53:00.0: GPU is lost.'; exit 15\n";
    let (ran, states) = run(&folder(Some(lost)), &["10", "out.txt", "echo", "ran"]);
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), &b"ran\n"[..]));
    let why = states.expect_err("no state");
    assert!(why.contains("GPU is lost"), "{why}");
}
