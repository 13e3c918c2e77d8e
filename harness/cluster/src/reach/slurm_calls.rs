//! Slurm's commands as the harness calls them: found where clusters put them, and deaf to the Slurm variables of the
//! shell that the harness is started in. Every other command goes its way unchanged.
//!
//! One short text for `sh` does both, on this machine and on a login host alike. A shell that is no login shell has not
//! /opt/slurm/bin on its PATH, where ParallelCluster and HyperPod put Slurm; and sbatch, srun and squeue take options
//! from SBATCH_*, SLURM_* and SQUEUE_*: inside salloc an srun would be a step of that job. Variables that locate the
//! cluster stay. sbatch hands its PATH on, so the job's own srun is found too.
//!
//! A cluster of a federation may list the jobs and nodes of all its clusters by default (`fed_display`): what asks is
//! held to its own.

use super::sink::Sink;
use super::{Answer, Command, Host, Reach, ReachError, Status, Wait};
use std::ffi::OsString;

/// Where ParallelCluster and HyperPod have them.
const USUAL: &str = "/opt/slurm/bin";

const TOOLS: [&str; 8] = ["sbatch", "squeue", "scontrol", "scancel", "sinfo", "sacct", "sacctmgr", "srun"];

/// Where every system has it, whatever PATH says.
const SHELL: &str = "/bin/sh";
const NAME: &str = "slurm";

/// Its arguments: the folder of the commands, or nothing; then the command.
const TEXT: &str = "\
for name in $(env | sed -n 's/^\\(S[A-Z]*_[A-Za-z0-9_]*\\)=.*/\\1/p'); do
  case $name in
    SLURM_CONF|SLURM_CONF_SERVER|SLURM_JWT|SLURM_SACK_SOCKET) ;;
    SLURM_*|SBATCH_*|SRUN_*|SALLOC_*|SQUEUE_*|SINFO_*|SCANCEL_*|SACCT_*|SCONTROL_*) unset \"$name\" ;;
  esac
done
case $2 in
  squeue|sinfo|sacct|scontrol) export SQUEUE_LOCAL=1 SINFO_LOCAL=1 SACCT_LOCAL=1 SCONTROL_LOCAL=1 ;;
esac
[ -z \"$1\" ] || PATH=$1:$PATH
command -v \"$2\" > /dev/null 2>&1 || PATH=$PATH:/opt/slurm/bin
if command -v \"$2\" > /dev/null 2>&1; then
  export PATH
  shift
  exec \"$@\"
fi
echo 'harness: no such program' >&2
exit 127
";
const ABSENT: &str = "harness: no such program";

/// Reaches the world by `of`, and wraps Slurm's commands on this machine, or where `of` puts it.
pub struct SlurmCalls<R> {
    of: R,
    /// Their folder, where the inventory says it.
    folder: String,
}

impl<R> SlurmCalls<R> {
    /// `folder` is searched before PATH, where the inventory names one.
    pub fn new(of: R, folder: Option<&str>) -> SlurmCalls<R> {
        SlurmCalls { of, folder: folder.unwrap_or_default().to_owned() }
    }

    /// The reach below this one.
    pub fn inner(&self) -> &R {
        &self.of
    }

    fn wrapped(&self, command: &Command) -> Command {
        let words = [SHELL, "-c", TEXT, NAME, &self.folder].map(str::to_owned);
        Command::new(words.into_iter().chain(command.argv.iter().cloned()), command.limit)
    }
}

/// Whether an argument list calls one of Slurm's commands by its name.
pub fn is_one<S: AsRef<str>>(argv: &[S]) -> bool {
    argv.first().is_some_and(|program| TOOLS.contains(&program.as_ref()))
}

/// The command that was wrapped so; nothing where it was not.
pub fn read(argv: &[String]) -> Option<&[String]> {
    let [sh, c, text, name, _folder, command @ ..] = argv else { return None };
    (sh == SHELL && c == "-c" && text == TEXT && name == NAME && is_one(command)).then_some(command)
}

/// A warning that names the variables of this process that would have changed Slurm requests; none where none would.
pub fn ignored(variables: impl Iterator<Item = (OsString, OsString)>) -> Option<String> {
    let (mut names, mut inside) = (Vec::new(), None);
    for (name, value) in variables {
        let name = name.to_string_lossy().into_owned();
        if name == "SLURM_JOB_ID" {
            inside = Some(value.to_string_lossy().escape_debug().to_string());
        }
        let is_input = ["SLURM_", "SBATCH_", "SRUN_"].iter().any(|begin| name.starts_with(begin));
        let says_where = LOCATING.contains(&name.as_str());
        if is_input && !says_where {
            names.push(name);
        }
    }
    // What an allocation sets is its own business; what a person exports has a key.
    if inside.is_some() {
        names.retain(|name| name.starts_with("SBATCH_") || CLUSTERS.contains(&name.as_str()));
    }
    names.sort();
    let locating = names.extract_if(.., |name| CLUSTERS.contains(&name.as_str())).collect::<Vec<_>>();
    let keys = "set `gpus`, `qos`, `mem`, `sbatch = [...]` or `srun = [...]` in `[reach]`";
    let others = match (inside, names.as_slice()) {
        (None, []) => None,
        (None, names) => Some(format!("ignored variables: {}; {keys}", names.join(", "))),
        (Some(job), []) => Some(format!("inside job {job}: its SLURM_* variables are ignored")),
        (Some(job), names) => Some(format!(
            "inside job {job}: its SLURM_* variables are ignored, and {}; {keys}",
            names.join(", ")
        )),
    };
    let elsewhere = locating.first().map(|name| {
        format!("{name} locates the cluster and is ignored: set SLURM_CONF to the slurm.conf of that cluster")
    });
    let warnings: Vec<String> = elsewhere.into_iter().chain(others).collect();
    (!warnings.is_empty()).then(|| warnings.join("; "))
}

/// Where the cluster is, and by what its commands sign in: AWS PCS sets the socket on login nodes of several clusters.
const LOCATING: [&str; 4] = ["SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_SACK_SOCKET"];

/// They name another cluster than that of the Slurm which is found.
const CLUSTERS: [&str; 2] = ["SLURM_CLUSTERS", "SBATCH_CLUSTERS"];

/// A message on the shell, as one on the command that it ran.
fn unwrapped(what: &str, program: &str) -> String {
    what.replacen(&format!("`{SHELL}`"), &format!("`{program}`"), 1)
}

impl<R: Reach> Reach for SlurmCalls<R> {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        if *host != Host::Here || !is_one(&command.argv) {
            return self.of.exec(host, command);
        }
        Box::pin(async move {
            let program = || command.argv.first().cloned().unwrap_or_default();
            match self.of.exec(host, &self.wrapped(command)).await {
                Ok(answer) if answer.status == Status::Code(127) && answer.complaint().contains(ABSENT) => {
                    let searched = match self.folder.as_str() {
                        "" => USUAL.to_owned(),
                        folder => format!("{folder} and {USUAL}"),
                    };
                    let program = format!("{}` on PATH and in `{searched}", program());
                    Err(ReachError::NoProgram { host: host.to_string(), program })
                }
                Err(ReachError::TimedOut { what, limit_s }) => {
                    Err(ReachError::TimedOut { what: unwrapped(&what, &program()), limit_s })
                }
                Err(ReachError::Failed { what, why }) => {
                    Err(ReachError::Failed { what: unwrapped(&what, &program()), why })
                }
                result => result,
            }
        })
    }

    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        self.of.put(host, path, bytes)
    }

    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        self.of.get(host, path)
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Host,
        path: &'a str,
        sink: &'a mut dyn Sink,
    ) -> Wait<'a, Result<u64, ReachError>> {
        self.of.fetch(host, path, sink)
    }

    fn remove<'a>(
        &'a self,
        host: &'a Host,
        folder: &'a str,
        names: &'a [String],
    ) -> Wait<'a, Result<(), ReachError>> {
        self.of.remove(host, folder, names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command as Process;

    fn tool(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    }

    /// What a real shell makes of it, with these variables in its environment.
    fn called(folder: &str, argv: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
        let mut process = Process::new(SHELL);
        process.args(["-c", TEXT, NAME, folder]).args(argv).env_clear().env("PATH", "/usr/bin:/bin");
        let output = process.envs(variables.iter().copied()).output().expect("sh starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    #[test]
    fn variables_that_change_a_request_are_gone_and_the_place_of_the_cluster_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        tool(folder.path(), "sbatch", "env | sort; printf '%s\\n' \"$@\"");
        let variables = [
            ("SBATCH_JOB_NAME", "mine"),
            ("SBATCH_GRES", "none"),
            ("SLURM_JOB_ID", "16"),
            ("SLURM_CONF", "/etc/s.conf"),
            ("SLURM_SACK_SOCKET", "/run/slurm-a/sack.socket"),
            ("SLURM_CLUSTERS", "b"),
            ("SLURM_TOPO_LEN", "9"),
            ("SLURM_BITSTR_LEN", "9"),
            ("SACCT_FORMAT", "jobid"),
            ("SINFO_PARTITION", "p"),
            ("SQUEUE_STATES", "R"),
            ("SCONTROL_FUTURE", "1"),
            ("SLURM_TIME_FORMAT", "relative"),
            ("SQUEUE_FORMAT", "%i"),
            ("NCCL_ALGO", "Ring"),
            ("SHELL_OPTIONS", "x"),
            ("ODD", "a\nSLURM_X=1"),
        ];
        let path = folder.path().display().to_string();
        let (code, stdout, stderr) = called(&path, &["sbatch", "--parsable", "a b", "$(x)"], &variables);
        assert_eq!(code, Some(0), "{stderr}");
        for gone in [
            "SBATCH_",
            "SLURM_JOB_ID",
            "SLURM_TIME_FORMAT",
            "SLURM_CLUSTERS",
            "SLURM_TOPO_LEN",
            "SLURM_BITSTR_LEN",
            "SQUEUE_",
            "SINFO_",
            "SACCT_",
            "SCONTROL_",
        ] {
            assert!(!stdout.contains(gone), "{gone}: {stdout}");
        }
        for stays in [
            "SLURM_CONF=/etc/s.conf",
            "SLURM_SACK_SOCKET=/run/slurm-a/sack.socket",
            "NCCL_ALGO=Ring",
            "SHELL_OPTIONS=x",
            &format!("PATH={path}:/usr/bin"),
        ] {
            assert!(stdout.contains(stays), "{stays}: {stdout}");
        }
        assert!(stdout.ends_with("--parsable\na b\n$(x)\n"), "{stdout}");
    }

    #[test]
    fn questions_are_about_this_cluster_of_a_federation_and_jobs_inherit_nothing_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display().to_string();
        let federated = [("SQUEUE_FEDERATION", "1"), ("SINFO_FEDERATION", "1")];
        for (program, variable) in [
            ("squeue", "SQUEUE_LOCAL=1"),
            ("sinfo", "SINFO_LOCAL=1"),
            ("sacct", "SACCT_LOCAL=1"),
            ("scontrol", "SCONTROL_LOCAL=1"),
        ] {
            tool(folder.path(), program, "env");
            let (code, stdout, stderr) = called(&path, &[program, "--all"], &federated);
            assert_eq!(code, Some(0), "{stderr}");
            assert!(stdout.lines().any(|line| line == variable), "{program}: {stdout}");
            assert!(!stdout.contains("FEDERATION"), "{program}: {stdout}");
        }
        for program in ["sbatch", "srun"] {
            tool(folder.path(), program, "env");
            let (_, stdout, _) = called(&path, &[program], &[]);
            assert!(!stdout.contains("_LOCAL"), "{program}: {stdout}");
        }
    }

    #[test]
    fn a_command_that_is_nowhere_is_no_program_and_its_exit_code_is_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        tool(folder.path(), "squeue", "exit 7");
        let path = folder.path().display().to_string();
        assert_eq!(called(&path, &["squeue"], &[]).0, Some(7));
        let (code, _, stderr) = called("", &["sacctmgr-of-nowhere"], &[]);
        assert_eq!((code, stderr.trim()), (Some(127), ABSENT));
    }

    #[tokio::test]
    async fn a_command_that_prints_without_end_is_named_itself_and_not_its_shell() {
        let folder = tempfile::tempdir().expect("a folder");
        tool(folder.path(), "sinfo", "exec cat /dev/zero");
        let path = folder.path().display().to_string();
        let calls = SlurmCalls::new(crate::reach::process::ProcessReach, Some(&path));
        let command = Command::new(["sinfo"], std::time::Duration::from_secs(60));
        let error = calls.exec(&Host::Here, &command).await.expect_err("refused").to_string();
        assert_eq!(error, "`sinfo`: its output exceeds 64 MiB; larger output must go to a file");
    }

    #[test]
    fn what_was_wrapped_is_read_back_and_nothing_else_is() {
        let calls = SlurmCalls::new((), Some("/opt/slurm/bin"));
        let command = Command::new(["squeue", "--noheader"], std::time::Duration::from_secs(1));
        let wrapped = calls.wrapped(&command);
        assert_eq!(read(&wrapped.argv), Some(command.argv.as_slice()));
        assert_eq!(read(&command.argv), None);
        let other = calls.wrapped(&Command::new(["rm", "-r"], command.limit));
        assert_eq!(read(&other.argv), None);
    }

    #[test]
    fn variables_that_are_ignored_are_named_with_the_keys_that_replace_them() {
        let warning = |names: &[&str]| ignored(names.iter().map(|name| ((*name).into(), "16".into())));
        assert_eq!(warning(&["PATH", "SLURM_CONF", "SLURM_SACK_SOCKET", "NCCL_ALGO"]), None);
        let named = warning(&["SBATCH_QOS", "SBATCH_GRES", "SLURM_QOS"]).expect("a warning");
        assert!(
            named.starts_with("ignored variables: SBATCH_GRES, SBATCH_QOS, SLURM_QOS; set `gpus`"),
            "{named}"
        );
        let inside = warning(&["SLURM_JOB_ID", "SLURM_NNODES"]).expect("a warning");
        assert_eq!(inside, "inside job 16: its SLURM_* variables are ignored");
        let elsewhere = "SLURM_CLUSTERS locates the cluster and is ignored: set SLURM_CONF to the slurm.conf of that cluster";
        assert_eq!(warning(&["SLURM_CLUSTERS"]).as_deref(), Some(elsewhere));
        let both = warning(&["SLURM_JOB_ID", "SBATCH_QOS", "SLURM_CLUSTERS"]).expect("a warning");
        assert!(
            both.starts_with(&format!("{elsewhere}; inside job 16: "))
                && both.contains(", and SBATCH_QOS; set"),
            "{both}"
        );
    }
}
