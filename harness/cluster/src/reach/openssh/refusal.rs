//! Why ssh did not connect, from what it printed: what the host does, what a person has to settle first, and what goes
//! away by waiting. It changes nothing: the command that makes a key known is printed, not run.

use super::master::{SshOptions, target_arguments};
use crate::reach::{Access, ReachError};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

#[derive(Debug, PartialEq)]
pub(super) enum NotConnected {
    /// Too many connect at once, here or at a jump host: it goes away by waiting.
    ForNow(ReachError),
    For(ReachError),
}

/// How long ssh may take to say what its configuration means.
const CONFIG_LIMIT: Duration = Duration::from_secs(5);

pub(super) async fn explain(printed: &str, options: &SshOptions, host: &str) -> NotConnected {
    let refusal = read(printed);
    let known_hosts = match refusal {
        Refusal::Unknown { .. } => known_hosts(options, host).await,
        _ => String::new(),
    };
    describe(refusal, options, host, &known_hosts)
}

fn describe(refusal: Refusal, options: &SshOptions, host: &str, known_hosts: &str) -> NotConnected {
    NotConnected::For(match refusal {
        Refusal::Busy(line) => return NotConnected::ForNow(unreachable(host, line)),
        Refusal::Other(line) => unreachable(host, line),
        Refusal::Unknown { name } => failed(
            host,
            format!(
                "its host key is not known; if you trust the network, add it: `{} >> {known_hosts}`",
                keyscan(&name)
            ),
        ),
        Refusal::Changed { line } => failed(
            host,
            format!(
                "its host key has changed (reinstalled host, or intercepted connection); check which, then replace it: {line}"
            ),
        ),
        Refusal::Denied(line) => {
            let target =
                target_arguments(options).into_iter().chain([host.to_owned()]).collect::<Vec<_>>().join(" ");
            failed(
                host,
                format!(
                    "it accepts no key that ssh offers without a prompt; make `ssh {target}` work first: {line}"
                ),
            )
        }
    })
}

#[derive(Debug, PartialEq)]
enum Refusal {
    Busy(String),
    /// As ssh names it: `host` or `[host]:port`.
    Unknown {
        name: String,
    },
    Changed {
        line: String,
    },
    Denied(String),
    Other(String),
}

fn read(printed: &str) -> Refusal {
    let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let with = |part: &str| lines.iter().find(|line| line.contains(part)).copied();
    let Some(last) = lines.last().map(|line| (*line).to_owned()) else {
        // As far as is known it was ended from outside, which says nothing of the host.
        return Refusal::Busy("ssh ended without a message".to_owned());
    };
    if with("REMOTE HOST IDENTIFICATION HAS CHANGED").is_some() {
        let line = with("Offending").unwrap_or("ssh does not name its line");
        return Refusal::Changed { line: line.to_owned() };
    }
    let unknown = with(" host key is known for ");
    if let Some((_, rest)) = unknown.and_then(|line| line.split_once(" host key is known for ")) {
        let name = rest.split(' ').next().unwrap_or_default();
        return Refusal::Unknown { name: name.to_owned() };
    }
    if let Some(line) = with("Permission denied (").or_else(|| with("Too many authentication failures")) {
        return Refusal::Denied(line.to_owned());
    }
    let crowded = ["kex_exchange_identification: ", "Connection reset by ", "Connection closed by "];
    // A write to a connection that was just refused ends so, where a read would say "closed".
    let refused =
        lines.iter().find(|line| line.starts_with("banner exchange: ") && line.ends_with(": Broken pipe"));
    // A host that says nothing at all is not crowded.
    if with("timed out").is_none()
        && let Some(line) = crowded.iter().find_map(|part| with(part)).or(refused.copied())
    {
        return Refusal::Busy(line.to_owned());
    }
    Refusal::Other(last)
}

fn unreachable(host: &str, why: String) -> ReachError {
    ReachError::Unreachable { host: host.to_owned(), why }
}

/// Not the host's fault: nothing of it was seen.
fn failed(host: &str, why: String) -> ReachError {
    ReachError::NoAccess { by: Access::Ssh, host: host.to_owned(), why }
}

/// The command that prints the key of a host by the name that ssh gave it.
fn keyscan(name: &str) -> String {
    match name.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        Some((host, port)) => format!("ssh-keyscan -p {port} {host}"),
        None => format!("ssh-keyscan {name}"),
    }
}

/// The file in which ssh looks first for the keys of this host.
async fn known_hosts(options: &SshOptions, host: &str) -> String {
    let asked = Command::new("ssh")
        .arg("-G")
        .args(target_arguments(options))
        .args(["--", host])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let printed = match timeout(CONFIG_LIMIT, asked).await {
        Ok(Ok(output)) => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => String::new(),
    };
    let files = printed.lines().find_map(|line| line.strip_prefix("userknownhostsfile "));
    files.and_then(|files| files.split(' ').next()).unwrap_or("~/.ssh/known_hosts").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_ssh_are_classified() {
        let unknown = |name: &str| Refusal::Unknown { name: name.into() };
        let busy = |line: &str| Refusal::Busy(line.into());
        let other = |line: &str| Refusal::Other(line.into());
        for (printed, wanted) in [
            (
                "No ED25519 host key is known for [127.0.11.1]:2222 and you have requested strict checking.\r\n\
                 Host key verification failed.\r\n",
                unknown("[127.0.11.1]:2222"),
            ),
            (
                "No RSA host key is known for n1 and you have requested strict checking.\nHost key verification failed.",
                unknown("n1"),
            ),
            (
                "@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nOffending ED25519 key in /h/known_hosts:3\n\
                 Host key for n1 has changed and you have requested strict checking.\nHost key verification failed.",
                Refusal::Changed { line: "Offending ED25519 key in /h/known_hosts:3".into() },
            ),
            (
                "u@n1: Permission denied (publickey,password).",
                Refusal::Denied("u@n1: Permission denied (publickey,password).".into()),
            ),
            (
                "kex_exchange_identification: Connection closed by remote host\nConnection closed by 127.0.0.1 port 22",
                busy("kex_exchange_identification: Connection closed by remote host"),
            ),
            ("Connection reset by 10.0.0.1 port 22", busy("Connection reset by 10.0.0.1 port 22")),
            (
                "Connection timed out during banner exchange\nConnection to 10.0.0.1 port 22 timed out",
                other("Connection to 10.0.0.1 port 22 timed out"),
            ),
            (
                "ssh: connect to host n1 port 22: Connection refused",
                other("ssh: connect to host n1 port 22: Connection refused"),
            ),
            ("Connection closed by UNKNOWN port 65535\r\n", busy("Connection closed by UNKNOWN port 65535")),
            (
                "banner exchange: Connection to UNKNOWN port 65535: Broken pipe\r\n",
                busy("banner exchange: Connection to UNKNOWN port 65535: Broken pipe"),
            ),
            (
                "banner exchange: Connection to 10.0.0.1 port 80: invalid format",
                other("banner exchange: Connection to 10.0.0.1 port 80: invalid format"),
            ),
            ("", busy("ssh ended without a message")),
        ] {
            assert_eq!(read(printed), wanted, "{printed}");
        }
    }

    #[test]
    fn the_line_that_makes_a_key_known_names_host_and_port() {
        assert_eq!(keyscan("[127.0.11.1]:2222"), "ssh-keyscan -p 2222 127.0.11.1");
        assert_eq!(keyscan("n1"), "ssh-keyscan n1");
    }

    #[test]
    fn messages() {
        let options = SshOptions { user: Some("ops".into()), port: Some(2222), config: None };
        let line = "Offending ED25519 key in /h/known_hosts:3".to_owned();
        let refusals = [
            Refusal::Busy("Connection reset by 10.0.0.1 port 22".into()),
            Refusal::Other("ssh: connect to host n1 port 22: Connection refused".into()),
            Refusal::Unknown { name: "[n1]:2222".into() },
            Refusal::Changed { line },
            Refusal::Denied("ops@n1: Permission denied (publickey,password).".into()),
            read(""),
        ];
        let lines = refusals.map(|refusal| match describe(refusal, &options, "n1", "~/.ssh/known_hosts") {
            NotConnected::ForNow(error) => format!("retried: {error}"),
            NotConnected::For(error) => error.to_string(),
        });
        insta::assert_snapshot!(lines.join("\n"));
    }
}
