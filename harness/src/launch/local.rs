//! This machine alone: the job's script under plain bash, in a session of its own so that all it starts can be ended.

use super::{Launch, NotLaunched, Poll, QUERY_LIMIT};
use crate::artefact::{Ended, PlannedJob};
use crate::reach::{Command, Host, Reach, ReachError, Wait};
use crate::script::files;

pub struct Local;

/// Written last, under a temporary name first: an exit code is there whole or not at all.
const STATUS: &str = "exit_code";

/// The session's id, should the answer to the launch be lost.
const PID: &str = "pid";

/// The group, when it began, and since which start of the machine.
const GROUP: &str = "group";

/// Starts the script in its own session and prints the session's id, which is its process group's too. The exit
/// code outlives the process as a file, and so does when and since which start of the machine the group is there: its
/// number alone may later be another's. `$1` is the job's folder.
pub fn launch_argv(folder: &str) -> Vec<String> {
    let start = format!(
        "cd \"$1\" && {{ setsid bash -c 'bash {job}; echo $? > {STATUS}.part && mv {STATUS}.part {STATUS}' \
         > {out} 2> {err} < /dev/null & }} && owner=$! && echo $owner > {PID} && \
         {{ read -r stat < /proc/$owner/stat; read -r boot < /proc/sys/kernel/random/boot_id; set -- ${{stat##*) }}; \
         echo \"$owner ${{20-}} $boot\" > {GROUP}.part && mv {GROUP}.part {GROUP}; }} 2> /dev/null; cat {PID}",
        job = files::JOB,
        out = files::BATCH_OUT,
        err = files::BATCH_ERR,
    );
    ["bash", "-c", &start, "launch", folder].map(str::to_owned).to_vec()
}

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
            if !answer.succeeded() || id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()) {
                let (status, complaint) = (answer.status, answer.complaint());
                return Err(format!("the script could not be started, {status}: {complaint}").into());
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
                Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
                Err(ReachError::NotFound { .. }) => Ok(None),
                Err(error) => Err(format!("whether it was launched before is not known: {error}").into()),
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
                let alive = is_alive(reach, group).await;
                polls.push(match exit_code(reach, job).await {
                    Ok(Some(code)) => Poll::ended(Ended::Exited { code }, None),
                    Ok(None) if alive => Poll::Running,
                    Ok(None) => Poll::ended(Ended::Killed { signal: 9 }, None),
                    Err(why) => Poll::Unknown(why),
                });
            }
            polls
        })
    }

    fn interrupt<'a>(&'a self, reach: &'a dyn Reach, _job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()> {
        Box::pin(async move {
            signal(reach, "-INT", handle).await;
            signal(reach, "-TERM", handle).await;
        })
    }

    fn cancel<'a>(&'a self, reach: &'a dyn Reach, _job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()> {
        Box::pin(async move { signal(reach, "-KILL", handle).await })
    }
}

async fn exit_code(reach: &dyn Reach, job: &PlannedJob) -> Result<Option<i32>, String> {
    match reach.get(&Host::Here, &format!("{}/{STATUS}", job.folder)).await {
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

/// Succeeds while any process of the group `$1` is there that is no zombie: one that nobody has reaped yet is over.
/// The process `$1` itself counts before it has made its group: right after the launch it has not yet.
/// Read from /proc by bash alone, since a small machine may have neither `ps` nor `kill`.
const ALIVE: &str = r#"for stat in /proc/[0-9]*/stat; do
  { read -r line < "$stat"; } 2> /dev/null || continue
  read -r state _ group _ <<< "${line##*) }"
  [ "$state" = Z ] && continue
  [ "$group" = "$1" ] || [ "${line%% *}" = "$1" ] && exit 0
done
exit 1"#;

async fn is_alive(reach: &dyn Reach, group: &str) -> bool {
    match reach.exec(&Host::Here, &Command::new(["bash", "-c", ALIVE, "alive", group], QUERY_LIMIT)).await {
        Ok(answer) => answer.succeeded(),
        // Could not ask: alive until shown otherwise, and the time limit ends it.
        Err(_) => true,
    }
}

async fn signal(reach: &dyn Reach, signal: &str, group: &str) {
    let kill = "kill \"$1\" -- \"-$2\"";
    let _ = reach
        .exec(&Host::Here, &Command::new(["bash", "-c", kill, "kill", signal, group], QUERY_LIMIT))
        .await;
}
