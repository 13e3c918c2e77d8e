//! Reach by processes and files of this machine: for the local launcher, and for a Slurm whose commands are here.

use super::output::{head, tail, too_long};
use super::sink::{CHUNK, Sink, unwritten};
use super::{Answer, Command, Host, Reach, ReachError, Status, Wait, environment, left_file};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use tokio::io::AsyncReadExt;

/// What a command may print: the answers of a thousand nodes come by one `srun`.
const STDOUT_LIMIT: usize = 64 << 20;
/// The end of what it may say on stderr, where srun has a line for each node that failed.
const STDERR_LIMIT: usize = 4 << 20;

/// Reaches this machine alone: any node is `Unreachable`.
pub struct ProcessReach;

impl Reach for ProcessReach {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            here(host)?;
            let program = command.argv.first().cloned().unwrap_or_default();
            let failed = |why: String| ReachError::Failed { what: format!("`{program}`"), why };
            let child = tokio::process::Command::new(&program)
                .args(command.argv.iter().skip(1))
                .env_clear()
                .envs(environment::handed_on(std::env::vars_os()))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                // A group of its own, so that a Ctrl-C at the terminal reaches the harness alone: it must
                // still be able to cancel what it started.
                .process_group(0)
                .kill_on_drop(true)
                .spawn();
            let mut child = match child {
                Ok(child) => child,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(ReachError::NoProgram { host: host.to_string(), program });
                }
                Err(error) => return Err(failed(error.to_string())),
            };
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let ended = async {
                let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
                    return Err(io::Error::other("it has no output"));
                };
                let (stdout, stderr) = tokio::join!(head(stdout, STDOUT_LIMIT), tail(stderr, STDERR_LIMIT));
                // Who printed too much may go on for ever.
                let Some(stdout) = stdout? else { return Ok(None) };
                Ok(Some((child.wait().await?, stdout, stderr)))
            };
            match tokio::time::timeout(command.limit, ended).await {
                Err(_) => Err(ReachError::TimedOut {
                    what: format!("`{program}`"),
                    limit_s: command.limit.as_secs(),
                }),
                Ok(Err(error)) => Err(failed(error.to_string())),
                Ok(Ok(None)) => Err(too_long(format!("`{program}`"), STDOUT_LIMIT)),
                Ok(Ok(Some((status, stdout, stderr)))) => Ok(Answer {
                    status: match status.code() {
                        Some(code) => Status::Code(code),
                        None => Status::Signal(status.signal().unwrap_or_default()),
                    },
                    stdout,
                    stderr,
                }),
            }
        })
    }

    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move {
            here(host)?;
            let (own, bytes) = (path.to_owned(), bytes.to_vec());
            // A file system that hangs holds up nothing else.
            let written = tokio::task::spawn_blocking(move || left_file::write(&own, &bytes)).await;
            written.unwrap_or_else(|error| Err(error.into())).map_err(|error| ReachError::Failed {
                what: format!("cannot write `{path}`"),
                why: error.to_string(),
            })
        })
    }

    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move {
            here(host)?;
            let mut bytes = Vec::new();
            read(path, left_file::held_limit(path), &mut bytes).await?;
            Ok(bytes)
        })
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Host,
        path: &'a str,
        sink: &'a mut dyn Sink,
    ) -> Wait<'a, Result<u64, ReachError>> {
        Box::pin(async move {
            here(host)?;
            read(path, left_file::limit(path), sink).await
        })
    }

    fn remove<'a>(
        &'a self,
        host: &'a Host,
        folder: &'a str,
        names: &'a [String],
    ) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move {
            here(host)?;
            let mut first = Ok(());
            for name in names {
                let path = format!("{folder}/{name}");
                let removed = left_file::remove(&path).map_err(|error| ReachError::Failed {
                    what: format!("cannot remove `{path}`"),
                    why: error.to_string(),
                });
                // The others go all the same.
                first = first.and(removed);
            }
            first
        })
    }
}

/// Reads a file that a job left; a file system that hangs holds up nothing else.
async fn read(path: &str, limit: u64, sink: &mut dyn Sink) -> Result<u64, ReachError> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => ReachError::NotFound { path: path.to_owned() },
        _ => ReachError::Failed { what: format!("cannot read `{path}`"), why: error.to_string() },
    };
    let own = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || left_file::open(&own, limit)).await;
    let (file, length) = opened.unwrap_or_else(|error| Err(error.into())).map_err(failed)?;
    let mut file = tokio::fs::File::from_std(file);
    file.set_max_buf_size(CHUNK);
    let mut chunk = vec![0; CHUNK];
    let mut bytes = 0;
    sink.restart().map_err(unwritten)?;
    loop {
        let read = file.read(&mut chunk).await.map_err(failed)?;
        if read == 0 {
            break;
        }
        // It may have grown since.
        bytes += read as u64;
        if bytes > limit {
            return Err(failed(io::Error::other(left_file::over_limit(bytes, limit))));
        }
        sink.append(&chunk[..read]).map_err(unwritten)?;
    }
    if bytes < length {
        return Err(failed(io::Error::other(format!("only {bytes} of its {length} bytes could be read"))));
    }
    Ok(bytes)
}

/// What was meant for a node must never happen on this machine instead.
fn here(host: &Host) -> Result<(), ReachError> {
    match host {
        Host::Here => Ok(()),
        Host::Node(name) => Err(ReachError::Unreachable {
            host: name.clone(),
            why: "only this machine can be reached without ssh".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    #[tokio::test]
    async fn a_file_that_is_longer_than_it_was_is_refused_at_the_limit() {
        // Its length is 0 by its facts.
        let path = format!("/proc/{}/status", std::process::id());
        let mut bytes = Vec::new();
        let error = read(&path, 100, &mut bytes).await.expect_err("refused").to_string();
        assert!(error.ends_with("the limit is 100"), "{error}");
        assert!(bytes.len() <= 100);
        assert_eq!(read(&path, 1 << 20, &mut bytes).await, Ok(bytes.len() as u64));
        assert!(bytes.starts_with(b"Name:"));
    }

    #[tokio::test]
    async fn a_command_that_prints_for_ever_is_refused_at_the_limit() {
        let said = async |text: &str| {
            let command = Command::new(["bash", "-c", text], std::time::Duration::from_secs(60));
            ProcessReach.exec(&Host::Here, &command).await
        };
        let error = said("cat /dev/zero").await.expect_err("refused").to_string();
        assert_eq!(error, "`bash`: its output exceeds 64 MiB; larger output must go to a file");
        let answer = said("echo here; head -c 9000000 /dev/zero >&2; exit 7").await.expect("an answer");
        assert_eq!((answer.status, answer.stdout), (Status::Code(7), b"here\n".to_vec()));
        assert!(answer.stderr.len() < STDERR_LIMIT + 100);
    }

    #[tokio::test]
    async fn a_log_may_be_fetched_that_is_too_large_to_be_held() {
        struct Count(u64);
        impl Sink for Count {
            fn restart(&mut self) -> io::Result<()> {
                self.0 = 0;
                Ok(())
            }
            fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
                assert!(bytes.len() <= CHUNK);
                self.0 += bytes.len() as u64;
                Ok(())
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stdout").display().to_string();
        let length = (64 << 20) + 1;
        std::fs::File::create(&path).expect("made").set_len(length).expect("grown");
        let error = ProcessReach.get(&Host::Here, &path).await.expect_err("refused").to_string();
        assert!(error.ends_with("it has 67108865 bytes, the limit is 67108864"), "{error}");
        let mut count = Count(7);
        assert_eq!(ProcessReach.fetch(&Host::Here, &path, &mut count).await, Ok(length));
        assert_eq!(count.0, length);
    }

    #[tokio::test]
    async fn files_are_for_the_user_alone_whole_under_their_names_and_never_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let file = path("deep/er/job.sh");
        ProcessReach.put(&Host::Here, &file, b"text").await.expect("written");
        assert_eq!(ProcessReach.get(&Host::Here, &file).await, Ok(b"text".to_vec()));
        let mode = |path: &str| std::fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!((mode(&file), mode(&path("deep/er")), mode(&path("deep"))), (0o600, 0o700, 0o700));
        assert!(!Path::new(&format!("{file}.part")).exists());
        let write = |name: &str| std::fs::write(path(name), "text").expect("written");
        std::fs::create_dir_all(path("case/job/own")).expect("made");
        std::fs::create_dir_all(path("other")).expect("made");
        write("other/stdout");
        std::os::unix::fs::symlink(path("other"), path("case/job/linked")).expect("linked");
        std::os::unix::fs::symlink(path("other/stdout"), path("case/job/own/link")).expect("linked");
        std::fs::hard_link(path("other/stdout"), path("case/job/own/twice")).expect("linked");
        let large = std::fs::File::create(path("case/job/own/stderr")).expect("made");
        large.set_len(3 << 30).expect("grown");
        std::fs::create_dir_all(path("real/case/job/a_pqtdir")).expect("made");
        write("real/case/job/stdout");
        write("real/case/job/a_pqtdir/a.parquet");
        std::os::unix::fs::symlink(path("real"), path("run")).expect("linked");
        // The shared folder itself may be one, and below it lie runs and analyses.
        std::fs::create_dir_all(path("real/analysis-r.aB3dE9gh")).expect("made");
        write("real/analysis-r.aB3dE9gh/part1");
        let part = path("run/analysis-r.aB3dE9gh/part1");
        assert_eq!(ProcessReach.get(&Host::Here, &part).await, Ok(b"text".to_vec()));
        std::os::unix::fs::symlink(path("real/case"), path("real/analysis-r.linked00")).expect("linked");
        write("real/case/part1");
        std::fs::create_dir(path("swapped")).expect("made");
        std::os::unix::fs::symlink(path("real/case"), path("swapped/case")).expect("linked");
        for (name, why) in [
            ("run/case/job/stdout", "link"),
            ("real/analysis-r.linked00/part1", "link"),
            ("run/case/job/a_pqtdir/a.parquet", "link"),
            ("swapped/case/job/stdout", "link"),
            ("case/job/linked/stdout", "link"),
            ("case/job/own/link", "link"),
            ("case/job/own/twice", "2 hard links"),
            ("case/job/own/stderr", "limit"),
        ] {
            let error = ProcessReach.get(&Host::Here, &path(name)).await.map(|bytes| bytes.len());
            let error = error.expect_err(name).to_string();
            assert!(error.contains(why) && error.contains(name), "{name}: {error}");
        }
        let removed = async |folder: &str, name: &str| {
            ProcessReach.remove(&Host::Here, &path(folder), &[name.to_owned()]).await
        };
        for (folder, name) in
            [("case/job", "linked/stdout"), ("case/job", "own/link"), ("case/job", "own/twice")]
        {
            assert!(removed(folder, name).await.is_err(), "{name}");
        }
        assert!(Path::new(&path("other/stdout")).is_file());
        for _ in 0..2 {
            assert_eq!(removed("case/job", "own/stderr").await, Ok(()));
        }
        assert!(!Path::new(&path("case/job/own/stderr")).exists());
        // A job may have put links where files of the harness will stand.
        std::os::unix::fs::symlink(path("other/stdout"), path("case/job/own/turn.1.part")).expect("linked");
        std::os::unix::fs::symlink(path("other/stdout"), path("case/job/own/turn.1")).expect("linked");
        assert_eq!(ProcessReach.put(&Host::Here, &path("case/job/own/turn.1"), b"7\n").await, Ok(()));
        assert_eq!(std::fs::read(path("case/job/own/turn.1")).expect("there"), b"7\n");
        for name in ["case/job/linked/close", "swapped/case/job/close"] {
            let why = ProcessReach.put(&Host::Here, &path(name), b"x").await.expect_err(name).to_string();
            assert!(why.contains("link"), "{name}: {why}");
        }
        assert_eq!(std::fs::read(path("other/stdout")).expect("there"), b"text");
        assert!(
            !Path::new(&path("other/close")).exists() && !Path::new(&path("real/case/job/close")).exists()
        );
        nix::unistd::mkfifo(Path::new(&path("pipe")), nix::sys::stat::Mode::S_IRWXU).expect("made");
        for name in ["pipe", "deep"] {
            let why = ProcessReach.get(&Host::Here, &path(name)).await.expect_err("no file").to_string();
            assert!(why.contains("it is not a regular file"), "{why}");
        }
    }
}
