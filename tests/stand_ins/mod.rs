//! Stand-ins for the programs of a cluster, built once and set up in a folder of the test's own; and their start as a
//! launcher would start them, with its variables.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The executable. It comes along where the tests were built with its feature; else it is built here, into the folder of
/// all that was built.
pub(crate) fn executable() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = option_env!("CARGO_BIN_EXE_standin") {
        return Path::new(path);
    }
    BUILT.get_or_init(|| {
        let own = std::env::current_exe().expect("this program lies somewhere");
        let folder = own.parent().and_then(Path::parent).expect("the folder of the profile").to_owned();
        let target = folder.parent().expect("the folder of all that is built");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--locked", "--package", "harness", "--features", "stand-ins"]);
        cargo.args(["--bin", "standin", "--target-dir"]).arg(target).current_dir(root());
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        let built = cargo.stdin(Stdio::null()).output().expect("cargo starts");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        folder.join("standin")
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the root").to_owned()
}

/// A simulated cluster behind real processes.
pub(crate) struct StandIns {
    folder: TempDir,
}

impl StandIns {
    /// Of `sim-p5` nodes; `more` are further lines of `cluster.toml`.
    pub(crate) fn new(nodes: &str, more: &str) -> StandIns {
        StandIns::set_up(&root(), "sim-p5", nodes, more)
    }

    /// Of nodes of an instance whose profile lies in another project.
    pub(crate) fn set_up(home: &Path, instance: &str, nodes: &str, more: &str) -> StandIns {
        StandIns::in_folder(tempfile::tempdir().expect("a folder"), executable(), home, instance, nodes, more)
    }

    /// In a folder of one's own, of an executable that its nodes see.
    pub(crate) fn in_folder(
        folder: TempDir,
        executable: &Path,
        home: &Path,
        instance: &str,
        nodes: &str,
        more: &str,
    ) -> StandIns {
        let text = format!("home = {home:?}\ninstance = \"{instance}\"\nnodes = \"{nodes}\"\n{more}\n");
        fs::write(folder.path().join("cluster.toml"), text).expect("written");
        let made = Command::new(executable).arg("set-up").arg(folder.path()).output().expect("it starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        StandIns { folder }
    }

    pub(crate) fn state(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn programs(&self) -> PathBuf {
        self.state().join("bin")
    }

    /// One counter over all devices of a node.
    pub(crate) fn counted(&self, node: &str, counter: &str) -> u64 {
        let devices = fs::read_dir(self.state().join("hosts").join(node)).expect("a host").flatten();
        let read = |device: fs::DirEntry| {
            let path = device.path().join("ports/1/hw_counters").join(counter);
            let text =
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            text.trim().parse::<u64>().expect("a number")
        };
        devices.map(read).sum()
    }

    /// A folder as a job of a case has it.
    pub(crate) fn job(&self, case: &str, job: &str) -> PathBuf {
        let folder = self.state().join("run").join(case).join(job);
        fs::create_dir_all(&folder).expect("made");
        folder
    }

    /// As srun starts rank by rank, each with its own `out.RANK` and `err.RANK` in the folder.
    pub(crate) fn srun(&self, folder: &Path, nodes: &[&str], per_node: u32, argv: &[&str]) -> Vec<Child> {
        let tasks = nodes.len() as u32 * per_node;
        let start = |rank: u32| {
            let file = |name: &str| fs::File::create(folder.join(format!("{name}.{rank}"))).expect("made");
            let node = nodes[(rank / per_node) as usize];
            self.command(argv[0])
                .args(&argv[1..])
                .current_dir(folder)
                .env("SLURM_JOB_ID", "7")
                .env("SLURM_STEP_ID", "0")
                .env("SLURM_NTASKS", tasks.to_string())
                .env("SLURM_PROCID", rank.to_string())
                .env("SLURM_LOCALID", (rank % per_node).to_string())
                .env("SLURM_JOB_NODELIST", nodes.join(","))
                .env("SLURMD_NODENAME", node)
                .env("PMI_RANK", rank.to_string())
                .stdout(file("out"))
                .stderr(file("err"))
                .spawn()
                .expect("it starts")
        };
        (0..tasks).map(start).collect()
    }

    /// A program by name, with the stand-ins first on its path and nothing of another launcher around it.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut path = self.programs().into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new(program);
        command.env("PATH", path).stdin(Stdio::null()).env("HARNESS_STANDIN_STATE", self.state());
        for name in ["HARNESS_NODE", "CUDA_VISIBLE_DEVICES", "RANK", "WORLD_SIZE", "NSYS_VENDOR_FOLDER"] {
            command.env_remove(name);
        }
        command
    }
}

/// The exit codes of all, 128 and the signal's number where one ended it.
pub(crate) fn codes(children: Vec<Child>) -> Vec<i32> {
    use std::os::unix::process::ExitStatusExt;
    let code = |mut child: Child| {
        let status = child.wait().expect("it ends");
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
    };
    children.into_iter().map(code).collect()
}
