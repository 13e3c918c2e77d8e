//! Jobs whose scripts never begin: Slurm could not start them, or another cluster of the federation runs them.

use super::tests::{Begun, Scripted, job, poll, said, slurm, wait};
use super::*;
use model::artefact::Ended;

/// What becomes of job 7 by the words of scontrol, where its script has left no file of its output.
fn ended_unbegun(shown: &str) -> Poll {
    let reach = Scripted::new(vec![("squeue", said("")), ("scontrol", said(shown))]);
    let job = job();
    wait(slurm().poll(&reach, &[(&job, "7")])).remove(0)
}

/// As `scontrol` of 20.11 to 25.05 shows a job whose folder its node does not have.
#[test]
fn a_script_whose_output_cannot_be_opened_was_not_launched() {
    let shown = "JobId=7 JobName=x JobState=FAILED Reason=RaisedSignal:53(Real-time_signal_19) Dependency=(null) \
                 Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:53 NodeList=n[1-2] BatchHost=n1\n";
    let Poll::Ended { end: Ended::LaunchFailed { why }, blamed: None, .. } = ended_unbegun(shown) else {
        panic!("{:?}", ended_unbegun(shown));
    };
    assert!(why.contains("cannot write to `/f`"), "{why}");
    // A workload may end so, too.
    let answers = vec![("squeue", said("")), ("scontrol", said(shown))];
    assert!(matches!(poll(answers), Poll::Ended { end: Ended::Killed { signal: 53 }, .. }));
}

#[test]
fn a_script_that_slurm_could_not_start_was_not_launched() {
    let shown = "JobId=7 JobState=FAILED Reason=JobLaunchFailure Restarts=0 ExitCode=1:0 NodeList=n[1-2]\n";
    assert!(matches!(
        ended_unbegun(shown),
        Poll::Ended { end: Ended::LaunchFailed { .. }, blamed: None, .. }
    ));
    let begun = Begun(Scripted::new(vec![("squeue", said("")), ("scontrol", said(shown))]), said(""));
    let (job, launcher) = (job(), slurm());
    let polled = wait(launcher.poll(&begun, &[(&job, "7")])).remove(0);
    assert!(matches!(polled, Poll::Ended { end: Ended::Exited { code: 1 }, .. }), "{polled:?}");
    let other = shown.replace("JobLaunchFailure", "NonZeroExitCode");
    assert!(matches!(ended_unbegun(&other), Poll::Ended { end: Ended::Exited { code: 1 }, .. }));
}

#[test]
fn a_job_that_another_cluster_of_the_federation_runs_is_not_waited_for() {
    let waiting = poll(vec![("squeue", said("7|REVOKED|None|\n"))]);
    assert!(matches!(waiting, Poll::Waiting { never: true, reason } if reason.starts_with("REVOKED: ")));
}
