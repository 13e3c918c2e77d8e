//! The shared folder of an inventory as hosts see it that are reached by commands: nodes over ssh or in pods, and a login
//! host. No other user may be able to replace what lies there, by the rule of `shared_folder`.

use super::{Command, Host, Reach, ReachError, Status};
use std::time::Duration;
use store::trust::why_replaceable;

const LIMIT: Duration = Duration::from_secs(60);
/// So many hosts are asked until one answers: each that is dead takes its time.
const HOSTS: usize = 16;
/// A path has no more folders.
const MOST_FOLDERS: usize = 256;
const FILE_TYPE: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// Prints who works there, then owner, mode and name of the run's folder, of the shared one, and of each above it. What is
/// not there has none.
const FACTS_SH: &str = r#"user=$(id -u) || exit 1
echo "user $user"
folder=$1
if [ -n "$2" ]; then
  if [ -e "$folder/$2" ] || [ -L "$folder/$2" ]; then stat -c '%u %f %n' -- "$folder/$2" || exit 1; fi
fi
while ! [ -e "$folder" ] && [ "$folder" != / ]; do folder=$(dirname -- "$folder"); done
folder=$(readlink -f -- "$folder") || exit 1
while stat -c '%u %f %n' -- "$folder" || exit 1; do
  [ "$folder" = / ] && break
  folder=$(dirname -- "$folder")
done
echo complete
"#;

/// Makes the run's folder. What was there before may be anybody's; any other failure the launch meets and reports, too.
const MAKE_SH: &str = r#"umask 077
mkdir -p -- "$1" && mkdir -m 700 -- "$1/$2" && exit 0
if [ -e "$1/$2" ] || [ -L "$1/$2" ]; then exit 9; fi
exit 0
"#;
const IS_THERE: Status = Status::Code(9);

/// Whether the shared folder is safe, as a host sees it. The error inside says why not.
pub async fn check(reach: &dyn Reach, host: &Host, shared: &str) -> Result<Result<(), String>, ReachError> {
    check_with(reach, host, shared, "").await
}

/// Before anything is launched: checks the shared folder by the first host that answers, and makes the folder of a run that
/// is `new` there. Where no host answers it is left to the launch.
pub async fn prepare(
    reach: &dyn Reach,
    hosts: &[Host],
    shared: &str,
    run: &str,
    new: bool,
) -> Result<(), String> {
    let mut makes = new;
    let mut odd = None;
    for host in hosts.iter().take(HOSTS) {
        match check_with(reach, host, shared, if makes { "" } else { run }).await {
            Ok(Err(why)) => return Err(why),
            Ok(Ok(())) if !makes => return Ok(()),
            Ok(Ok(())) => {
                let argv = ["sh", "-c", MAKE_SH, "make", shared.trim_end_matches('/'), run];
                match reach.exec(host, &Command::new(argv, LIMIT)).await {
                    Ok(answer) if answer.status == IS_THERE => {
                        return Err(format!(
                            "cannot create the run's folder `{shared}/{run}` on {host}: it exists"
                        ));
                    }
                    Ok(_) => return Ok(()),
                    // It may have been made; another host sees whose it is.
                    Err(_) => makes = false,
                }
            }
            Err(
                ReachError::Unreachable { .. } | ReachError::TimedOut { .. } | ReachError::NoAccess { .. },
            ) => {}
            Err(error) => odd = odd.or(Some(error)),
        }
    }
    // Who answers and cannot be understood vouches for nothing.
    odd.map_or(Ok(()), |error| Err(error.to_string()))
}

async fn check_with(
    reach: &dyn Reach,
    host: &Host,
    shared: &str,
    run: &str,
) -> Result<Result<(), String>, ReachError> {
    let shared = match shared.trim_end_matches('/') {
        "" => "/",
        shared => shared,
    };
    let argv = ["sh", "-c", FACTS_SH, "facts", shared, run];
    let answer = reach.exec(host, &Command::new(argv, LIMIT)).await?;
    let failed = |why: String| ReachError::Failed {
        what: format!("cannot read owner and mode of `paths.shared`: `{shared}` on {host}"),
        why,
    };
    if !answer.succeeded() {
        return Err(failed(format!("{}: {}", answer.status, answer.complaint())));
    }
    let facts = read(&answer.stdout_text()).ok_or_else(|| failed("an unexpected answer".to_owned()))?;
    let run = format!("{}/{run}", shared.trim_end_matches('/'));
    let why = facts.folders.iter().find_map(|folder| match folder.mode & FILE_TYPE {
        LINK if folder.name == run => Some(format!("the run's folder `{run}` is a symbolic link")),
        _ => why_replaceable(&folder.name.escape_debug().to_string(), folder.owner, folder.mode, facts.user),
    });
    Ok(why.map_or(Ok(()), |why| Err(format!("`paths.shared` is not safe on {host}: `{shared}`: {why}"))))
}

struct Facts {
    user: u32,
    folders: Vec<Folder>,
}

struct Folder {
    owner: u32,
    mode: u32,
    name: String,
}

/// The answer of the script; nothing where it is no complete one.
fn read(text: &str) -> Option<Facts> {
    let mut lines = text.strip_suffix("complete\n")?.lines();
    let user = lines.next()?.strip_prefix("user ")?.parse().ok()?;
    let folder = |line: &str| {
        let mut fields = line.splitn(3, ' ');
        let owner = fields.next()?.parse().ok()?;
        let mode = u32::from_str_radix(fields.next()?, 16).ok()?;
        let name = fields.next().filter(|name| name.starts_with('/'))?.to_owned();
        Some(Folder { owner, mode, name })
    };
    let folders = lines.take(MOST_FOLDERS).map(folder).collect::<Option<Vec<Folder>>>()?;
    // The last one is above all others.
    (folders.last()?.name == "/").then_some(Facts { user, folders })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::{Answer, Wait};
    use std::cell::RefCell;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
    use std::path::Path;

    /// Hosts that answer so, one after the other; and those that run what they are asked, on this machine.
    struct Hosts {
        answers: RefCell<Vec<Result<Answer, ReachError>>>,
    }

    fn hosts(answers: &[Result<Answer, ReachError>]) -> Hosts {
        Hosts { answers: RefCell::new(answers.iter().rev().cloned().collect()) }
    }

    impl Reach for Hosts {
        fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
            Box::pin(async move {
                if let Some(answer) = self.answers.borrow_mut().pop() {
                    return answer;
                }
                let output = std::process::Command::new(&command.argv[0]).args(&command.argv[1..]).output();
                let output = output.expect("sh");
                let status = Status::Code(output.status.code().expect("an exit code"));
                Ok(Answer { status, stdout: output.stdout, stderr: output.stderr })
            })
        }
        fn put<'a>(&'a self, _: &'a Host, path: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
            Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
        }
        fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
            Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
        }
    }

    fn prepared(hosts: &Hosts, shared: &str, new: bool) -> Result<(), String> {
        let names = ["n1", "n2"].map(|name| Host::Node(name.to_owned()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(prepare(hosts, &names, shared, "run1", new))
    }

    #[test]
    fn a_shared_folder_in_which_others_can_replace_files_is_refused_on_nodes_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let shared = path("above/a b");
        let none = || hosts(&[]);
        assert_eq!(prepared(&none(), &shared, false), Ok(()), "nothing is there yet");
        assert!(!Path::new(&path("above")).exists(), "a look makes nothing");
        assert_eq!(prepared(&none(), &format!("{shared}/"), true), Ok(()));
        for made in ["above", "above/a b", "above/a b/run1"] {
            assert_eq!(fs::metadata(path(made)).expect("made").mode() & 0o777, 0o700, "{made}");
        }
        let again = prepared(&none(), &shared, true).expect_err("it is there");
        assert!(again.contains("run1") && again.contains("exists"), "{again}");
        for open in ["above", "above/a b"] {
            for (mode, safe) in
                [(0o777, false), (0o775, false), (0o2775, false), (0o1777, true), (0o755, true)]
            {
                fs::set_permissions(path(open), Permissions::from_mode(mode)).expect("set");
                let result = prepared(&none(), &shared, false);
                assert_eq!(result.is_ok(), safe, "{mode:o} {open}: {result:?}");
                if let Err(why) = result {
                    assert!(why.contains("not safe on n1") && why.contains(&path(open)), "{why}");
                    assert!(why.contains(&format!("mode {mode:04o}")) && why.contains("chmod go-w"), "{why}");
                }
            }
        }
        // Where it is a link, the folder that it leads to counts.
        fs::create_dir(path("open")).expect("made");
        fs::set_permissions(path("open"), Permissions::from_mode(0o777)).expect("set");
        symlink(path("open"), path("linked")).expect("linked");
        assert!(prepared(&none(), &path("linked"), true).is_err_and(|why| why.contains("`chmod +t")));
        let run = path("above/a b/run1");
        fs::set_permissions(&run, Permissions::from_mode(0o777)).expect("set");
        assert!(prepared(&none(), &shared, false).is_err_and(|why| why.contains("run1` has mode 0777")));
        fs::remove_dir(&run).expect("empty");
        symlink(path("open"), &run).expect("linked");
        assert!(prepared(&none(), &shared, false).is_err_and(|why| why.contains("is a symbolic link")));
        assert!(prepared(&none(), &shared, true).is_err_and(|why| why.contains("exists")));
        // Only root can give a folder away.
        fs::remove_file(&run).expect("a link");
        if chown(path("above"), Some(1234), None).is_ok() {
            let why = prepared(&none(), &shared, true).expect_err("another user's");
            assert!(why.contains("belongs to user 1234"), "{why}");
            assert!(!Path::new(&run).exists());
        }
    }

    #[test]
    fn ids_are_those_of_the_host_and_squashed_root_is_reported() {
        let said = |user: u32, owner: u32, mode: &str| {
            let text = format!("user {user}\n{owner} {mode} /fsx/h\n0 41ed /fsx\n0 41ed /\ncomplete\n");
            prepared(&hosts(&[Ok(Answer::ok(text))]), "/fsx/h", false)
        };
        assert_eq!(said(4321, 4321, "41c0"), Ok(()));
        assert_eq!(said(4321, 0, "43ff"), Ok(()), "sticky");
        assert!(said(4321, 4322, "41c0").is_err_and(|why| why.contains("belongs to user 4322; choose")));
        assert!(said(4321, 4321, "41ff").is_err_and(|why| why.contains("mode 0777")));
        assert!(said(0, 65534, "41c0").is_err_and(|why| why.contains("root squash")));
        assert!(said(4321, 65534, "41c0").is_err_and(|why| why.contains("choose a folder")));
    }

    #[test]
    fn a_host_that_cannot_be_understood_vouches_for_nothing_and_a_dead_one_is_passed_over() {
        let good = || Ok(Answer::ok("user 1\n1 41c0 /s\n0 41ed /\ncomplete\n"));
        let dead = || Err(ReachError::Unreachable { host: "n1".into(), why: "no route".into() });
        assert_eq!(prepared(&hosts(&[dead(), good()]), "/s", false), Ok(()));
        assert_eq!(prepared(&hosts(&[dead(), dead()]), "/s", false), Ok(()), "the launch reports it");
        for odd in [
            "",
            "user 1\n1 41c0 /s\n0 41ed /\n",
            "user 1\ncomplete\n",
            "user 1\n1 41c0 /s\ncomplete\n",
            "user x\n0 41ed /\ncomplete\n",
            "user 1\n1 rwx /s\n0 41ed /\ncomplete\n",
            "user 1\n1 41c0 s\n0 41ed /\ncomplete\n",
        ] {
            let answers = || [Ok(Answer::ok(odd)), dead()];
            assert!(prepared(&hosts(&answers()), "/s", false).is_err(), "{odd}");
            assert_eq!(prepared(&hosts(&[Ok(Answer::ok(odd)), good()]), "/s", false), Ok(()), "{odd}");
        }
        let failed = || Ok(Answer::failed(127, "sh: stat: not found"));
        let why = prepared(&hosts(&[failed(), failed()]), "/s", false).expect_err("unknown");
        assert!(why.contains("stat: not found"), "{why}");
        // The folder may have been made when the connection broke: whose it is, the next host knows.
        let made = Ok(Answer::ok("user 1\n1 41c0 /s/run1\n1 41c0 /s\n0 41ed /\ncomplete\n"));
        assert_eq!(prepared(&hosts(&[good(), dead(), made]), "/s", true), Ok(()));
        let other = Ok(Answer::ok("user 1\n2 41c0 /s/run1\n1 41c0 /s\n0 41ed /\ncomplete\n"));
        assert!(prepared(&hosts(&[good(), dead(), other]), "/s", true).is_err());
    }
}
