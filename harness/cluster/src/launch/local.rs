//! This machine alone: the job's script under plain bash, in a session of its own so that all it starts can be ended.

use super::{Launch, NotLaunched, Poll, QUERY_LIMIT};
use crate::reach::stall_request::StallRequest;
use crate::reach::{Answer, Command, Host, Reach, ReachError, Wait};
use job::script::files::{EXIT_CODE, GROUP, PID};
use model::artefact::{Ended, PlannedJob};

/// The launcher for inventories of this machine alone.
pub struct Local;

impl Launch for Local {
    fn submit<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<String, NotLaunched>> {
        Box::pin(async move {
            let answer = reach
                .exec(&Host::Here, &Command::new(job.launch.clone(), QUERY_LIMIT))
                .await
                .map_err(|error| error.to_string())?;
            let id = answer.stdout_text().trim().to_owned();
            if !answer.succeeded() || !is_group(&id) {
                let (status, complaint) = (answer.status, answer.complaint());
                return Err(format!("the script could not be started: {status}: {complaint}").into());
            }
            Ok(id)
        })
    }

    fn find_started<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<Option<String>, NotLaunched>> {
        Box::pin(async move {
            match reach.get(&Host::Here, &format!("{}/{PID}", job.folder)).await {
                Ok(bytes) => match String::from_utf8_lossy(&bytes).trim() {
                    id if is_group(id) => Ok(Some(id.to_owned())),
                    id => {
                        let why = format!(
                            "`{}/{PID}` does not hold a process id: `{}`",
                            job.folder,
                            id.escape_debug()
                        );
                        Err(format!("unknown whether it was launched before: {why}").into())
                    }
                },
                Err(ReachError::NotFound { .. }) => Ok(None),
                Err(error) => Err(format!("unknown whether it was launched before: {error}").into()),
            }
        })
    }

    fn poll<'a>(
        &'a self,
        reach: &'a dyn Reach,
        jobs: &'a [(&'a PlannedJob, &'a str)],
    ) -> Wait<'a, Vec<Poll>> {
        Box::pin(async move {
            let mut polls = Vec::with_capacity(jobs.len());
            for (job, group) in jobs {
                // The group is asked first: a script that ends between the two questions has left its code by then.
                let alive = is_alive(reach, job, group).await;
                polls.push(match exit_code(reach, job).await {
                    Ok(Some(code)) => {
                        // Leftovers of the script end too.
                        signal(reach, job, group, "-KILL").await;
                        Poll::ended(Ended::Exited { code }, None)
                    }
                    Ok(None) if alive => Poll::Running,
                    Ok(None) => Poll::ended(Ended::Killed { signal: 9 }, None),
                    Err(why) => Poll::Unknown(why),
                });
            }
            polls
        })
    }

    fn beside(&self, job: &PlannedJob, _: &str) -> Vec<(Host, Vec<String>)> {
        let first = StallRequest::for_nodes(job).next();
        first.map(|(_, request)| (Host::Here, request.arguments())).into_iter().collect()
    }

    fn interrupt<'a>(&'a self, reach: &'a dyn Reach, job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()> {
        Box::pin(async move {
            signal(reach, job, handle, "-INT").await;
            signal(reach, job, handle, "-TERM").await;
        })
    }

    fn cancel<'a>(&'a self, reach: &'a dyn Reach, job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()> {
        Box::pin(async move { signal(reach, job, handle, "-KILL").await })
    }
}

async fn exit_code(reach: &dyn Reach, job: &PlannedJob) -> Result<Option<i32>, String> {
    match reach.get(&Host::Here, &format!("{}/{EXIT_CODE}", job.folder)).await {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            text.trim()
                .parse()
                .map(Some)
                .map_err(|_| format!("no exit code: `{}`", text.trim().escape_debug()))
        }
        Err(ReachError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a handle can be a process group's number: `kill -- -1` would mean all processes, and 0 our own.
fn is_group(handle: &str) -> bool {
    handle.bytes().all(|byte| byte.is_ascii_digit()) && handle.parse::<i32>().is_ok_and(|group| group > 1)
}

/// Succeeds while any process of the group `$2` is there other than a zombie; and sends the signal `$3`, if there is one, to
/// the group and to what left it: such processes have the job's `HARNESS_JOB` in their environment.
/// The group's number alone may be another's by now: the record in the folder `$1` says when the group began, and since
/// which start of the machine. The process `$2` itself counts before it has made its group: right after the launch it has
/// not yet. Read from /proc by bash alone, since a small machine may have neither `ps` nor `kill`.
const MEANT: &str = r#"{ read -r group began there < "$1"; read -r boot < /proc/sys/kernel/random/boot_id; } 2> /dev/null
[[ $group == "$2" && -n $began && $there == "$boot" ]] || exit 1
marked() {
  local variable
  {
    while IFS= read -r -d '' variable; do
      [[ $variable == "HARNESS_JOB=:${record%/*}" ]] && return 0
    done < "$1"
  } 2> /dev/null
  return 1
}
record=$1 found= strays= reused=
for file in /proc/[0-9]*/stat; do
  text=
  { IFS= read -r -d '' text < "$file"; } 2> /dev/null
  [[ -n $text ]] || continue
  # A process name may hold anything, a parenthesis and a line break too.
  read -ra words <<< "${text##*) }"
  own=${text%% *}
  if [[ $own == "$group" && ${words[19]} != "$began" ]]; then reused=yes; fi
  [[ ${words[0]} == Z ]] && continue
  if [[ $own == "$group" || ${words[2]} == "$group" ]]; then
    found=yes
  elif [[ $# == 3 && -O ${file%/stat} ]] && marked "${file%stat}environ"; then
    strays+=" $own"
  fi
done
if [[ -n $strays ]]; then kill "$3" $strays; fi
[[ -n $found && -z $reused ]] || exit 1
if [[ $# == 3 ]]; then kill "$3" -- "-$group"; fi"#;

async fn is_alive(reach: &dyn Reach, job: &PlannedJob, group: &str) -> bool {
    match ask(reach, job, group, None).await {
        Some(Ok(answer)) => answer.succeeded(),
        // Could not ask: alive until shown otherwise, and the time limit ends it.
        Some(Err(_)) => true,
        None => false,
    }
}

async fn signal(reach: &dyn Reach, job: &PlannedJob, group: &str, signal: &str) {
    let _ = ask(reach, job, group, Some(signal)).await;
}

/// None where the handle is no number of a group.
async fn ask(
    reach: &dyn Reach,
    job: &PlannedJob,
    group: &str,
    signal: Option<&str>,
) -> Option<Result<Answer, ReachError>> {
    if !is_group(group) {
        return None;
    }
    let record = format!("{}/{GROUP}", job.folder);
    let argv = ["bash", "-c", MEANT, "meant", &record, group].into_iter().chain(signal);
    Some(reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await)
}
