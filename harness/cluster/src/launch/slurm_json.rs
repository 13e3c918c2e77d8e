//! A job as `scontrol --json` prints it, from 24.11 on: the second source, where the text of the first cannot be read.
//! Names and comments of jobs are their users', and a text holds them between the words that are looked for.

use super::QUERY_LIMIT;
use crate::reach::slurm_state::JobState;
use crate::reach::{Command, Host, Reach};
use serde_json::Value;

/// What scontrol reports of one job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SlurmJob {
    /// Of several states in JSON, one that has not ended comes first.
    pub state: JobState,
    /// As the text has it: code and signal.
    pub exit_code: Option<String>,
    /// Slurm's word, such as `Resources`; may be empty.
    pub reason: String,
}

/// Nothing where this release does not speak it, or says nothing of that job.
pub(crate) async fn ask(reach: &dyn Reach, id: &str) -> Option<SlurmJob> {
    let command = Command::new(["scontrol", "--all", "--json", "show", "job", id], QUERY_LIMIT);
    let answer = reach.exec(&Host::Here, &command).await.ok().filter(|answer| answer.succeeded())?;
    read(&answer.stdout_text(), id)
}

fn read(answer: &str, id: &str) -> Option<SlurmJob> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let id: u64 = id.parse().ok()?;
    let job = answer["jobs"].as_array()?.iter().find(|job| number(&job["job_id"]) == Some(id))?;
    let words: Vec<&str> = job["job_state"].as_array()?.iter().filter_map(Value::as_str).collect();
    let states: Vec<JobState> = words.into_iter().map(JobState::parse).collect();
    // A job has one state, and flags beside it: one whose nodes boot has not begun, and one that still completes, or
    // that is queued again, has not ended.
    let boots = states.iter().find(|state| **state == JobState::Configuring);
    let goes_on = states
        .iter()
        .find(|state| matches!(state, JobState::Running | JobState::Completing | JobState::Suspended));
    let waits = states.iter().find(|state| **state == JobState::Pending);
    let revoked = states.iter().find(|state| **state == JobState::Revoked);
    let strange = states.iter().find(|state| matches!(state, JobState::Unknown(_)));
    let state = strange.or(boots).or(revoked).or(goes_on).or(waits).or(states.first())?.clone();
    let code = &job["exit_code"];
    let signal = number(&code["signal"]["id"]).unwrap_or_default();
    Some(SlurmJob {
        state,
        exit_code: number(&code["return_code"]).map(|code| format!("{code}:{signal}")),
        reason: job["state_reason"].as_str().unwrap_or_default().to_owned(),
    })
}

/// A number, or an object that says whether it is one.
pub(crate) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Object(object) if object.get("set")?.as_bool()? => object.get("number")?.as_u64(),
        Value::Number(number) => number.as_u64(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(states: &str, code: &str, signal: &str) -> Option<SlurmJob> {
        let number = |text: &str| match text {
            "" => r#"{"set": false, "infinite": false, "number": 0}"#.to_owned(),
            text => format!(r#"{{"set": true, "infinite": false, "number": {text}}}"#),
        };
        let (code, signal) = (number(code), number(signal));
        let answer = format!(
            r#"{{"jobs": [{{"job_id": 6, "job_state": ["FAILED"]}}, {{"job_id": 7, "job_state": {states}, "name": "x JobState=Y",
               "state_reason": "None", "exit_code": {{"status": ["ERROR"], "return_code": {code},
               "signal": {{"id": {signal}, "name": ""}}}}}}], "errors": []}}"#
        );
        read(&answer, "7")
    }

    #[test]
    fn state_exit_code_and_signal_are_read_as_the_text_writes_them() {
        let end_of = |states: &str, code: &str, signal: &str| {
            let job = job(states, code, signal).expect("a job");
            (job.state, job.exit_code)
        };
        assert_eq!(end_of(r#"["FAILED"]"#, "7", ""), (JobState::Failed, Some("7:0".to_owned())));
        assert_eq!(end_of(r#"["CANCELLED"]"#, "0", "15"), (JobState::Cancelled, Some("0:15".to_owned())));
        assert_eq!(
            end_of(r#"["COMPLETED"]"#, "", ""),
            (JobState::Completed, None),
            "not measured is not zero"
        );
    }

    #[test]
    fn flags_beside_a_state_say_that_a_job_has_not_ended() {
        let state = |states: &str| job(states, "0", "").expect("a job").state;
        assert_eq!(state(r#"["COMPLETED", "COMPLETING"]"#), JobState::Completing);
        assert_eq!(state(r#"["NODE_FAIL", "REQUEUED"]"#), JobState::Pending);
        assert_eq!(state(r#"["RUNNING", "CONFIGURING"]"#), JobState::Configuring);
        assert_eq!(state(r#"["CANCELLED", "REVOKED"]"#), JobState::Revoked);
        assert_eq!(state(r#"["RUNNING", "POWER_UP_NODE"]"#), JobState::Configuring);
        assert_eq!(state(r#"["PENDING", "LAUNCH_FAILED"]"#), JobState::Pending);
        assert!(matches!(state(r#"["COMPLETED", "BLORP"]"#), JobState::Unknown(_)));
    }

    #[test]
    fn what_is_no_answer_about_this_job_is_none() {
        for answer in ["", "{}", r#"{"jobs": []}"#, r#"{"jobs": [{"job_id": 8, "job_state": ["FAILED"]}]}"#] {
            assert_eq!(read(answer, "7"), None, "{answer}");
        }
        assert_eq!(job("[]", "0", ""), None);
        // 22.05 writes one text, and its exit codes are not to be trusted.
        assert_eq!(job(r#""COMPLETED""#, "0", ""), None);
    }
}
