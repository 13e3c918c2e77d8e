//! mpirun, as Open MPI has it: on every host of a hostfile it starts a daemon, which has its order on its command line
//! and connects back. The daemon starts the ranks, with their numbers in the environment; their output comes by its
//! connections, and they are killed when it loses these: mpirun has ended, however it ended.

use super::place::ProcessPlace;
use super::state::State;
use super::world::now_ns;
use base::nodeset;
use futures::stream::{FuturesUnordered, StreamExt};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgrp, setpgid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::future::pending;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// The argument by which it is called on each host.
const DAEMON: &str = "--daemon";
/// What reaches another host, by the names that Open MPI 4 and 5 have for it.
const AGENTS: [&str; 2] = ["OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"];
/// From the first failure of a rank to the end of all others: long enough for these to say what they noticed.
const GRACE: Duration = Duration::from_secs(3);
/// What is still on its way may take so long once all have ended.
const LATE: Duration = Duration::from_secs(2);
/// The exit code of ssh where it could not connect, or lost the connection.
const LOST: i32 = 255;

pub(crate) async fn answer(state: &State, words: &[String]) -> Result<i32, String> {
    match words {
        [word, order] if word == DAEMON => daemon(order).await,
        _ => first(state, &MpirunArguments::read(words)?).await,
    }
}

/// What the words ask for.
#[derive(Debug, PartialEq)]
struct MpirunArguments {
    ranks: u32,
    per_host: u32,
    hosts: Vec<String>,
    /// Names of variables, or names with their values.
    exported: Vec<String>,
    argv: Vec<String>,
}

impl MpirunArguments {
    fn read(words: &[String]) -> Result<MpirunArguments, String> {
        let (mut ranks, mut per_host, mut file, mut exported) = (None, None, None, Vec::new());
        let mut rest = words;
        while let [word, more @ ..] = rest
            && word.starts_with('-')
        {
            let [value, more @ ..] = more else { return Err(format!("`{word}` needs a value")) };
            match word.as_str() {
                "-np" | "-n" => ranks = Some(number(word, value)?),
                "-N" => per_host = Some(number(word, value)?),
                "--hostfile" => file = Some(value),
                "-x" => exported.push(value.clone()),
                "--bind-to" => {}
                _ => return Err(format!("unknown option `{word}`")),
            }
            rest = more;
        }
        let (Some(ranks), Some(per_host), Some(file)) = (ranks, per_host, file) else {
            return Err("-np, -N and --hostfile are required".to_owned());
        };
        if rest.is_empty() {
            return Err("no program to start".to_owned());
        }
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let host = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let hosts: Vec<String> = text.lines().filter_map(host).collect();
        if u64::from(per_host) * hosts.len() as u64 != u64::from(ranks) {
            return Err(format!("{ranks} ranks are not {per_host} on each of {} hosts", hosts.len()));
        }
        Ok(MpirunArguments { ranks, per_host, hosts, exported, argv: rest.to_vec() })
    }
}

fn number(word: &str, value: &str) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{word}` needs a number above 0, not `{value}`"))
}

/// What is to be started on one host.
#[derive(Serialize, Deserialize)]
struct Order {
    /// Where the first process listens.
    at: SocketAddr,
    folder: String,
    host: String,
    hosts: Vec<String>,
    first: u32,
    many: u32,
    ranks: u32,
    start: String,
    variables: BTreeMap<String, String>,
    argv: Vec<String>,
}

/// The process that was called: it starts one on every host, and ends with the first code that is not 0.
async fn first(state: &State, asked: &MpirunArguments) -> Result<i32, String> {
    let here = ProcessPlace::from_environment()?.node;
    let folder = std::env::current_dir().map_err(|error| format!("no working folder: {error}"))?;
    let start = format!("mpirun {} {} {}", folder.display(), std::process::id(), now_ns());
    let variable = |name: &String| match name.split_once('=') {
        Some((name, value)) => Some((name.to_owned(), value.to_owned())),
        None => Some((name.clone(), std::env::var(name).ok()?)),
    };
    let variables: BTreeMap<String, String> = asked.exported.iter().filter_map(variable).collect();
    let heard = |kind| signal(kind).map_err(|error| format!("no signals: {error}"));
    let (mut term, mut int) = (heard(SignalKind::terminate())?, heard(SignalKind::interrupt())?);
    let own = state.folder.join("bin/mpirun");
    let mut connections = Connections::listen(address(&here)).await?;
    let mut ends = FuturesUnordered::new();
    for (at, host) in asked.hosts.iter().enumerate() {
        let order = Order {
            at: connections.at,
            folder: folder.display().to_string(),
            host: host.clone(),
            hosts: asked.hosts.clone(),
            first: at as u32 * asked.per_host,
            many: asked.per_host,
            ranks: asked.ranks,
            start: start.clone(),
            variables: variables.clone(),
            argv: asked.argv.clone(),
        };
        let mut child = begin(&own, *host == here, &order)?;
        ends.push(async move { (at, child.wait().await) });
    }
    let (mut code, mut until) = (0, None);
    loop {
        let late = async {
            match until {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        };
        let asked_to_end = tokio::select! {
            biased;
            _ = term.recv() => 143,
            _ = int.recv() => 130,
            accepted = connections.listener.accept() => {
                connections.take(accepted.map(|(stream, _)| stream)).await;
                continue;
            }
            ended = ends.next() => {
                let Some((at, status)) = ended else { break };
                let ended = code_of(status.map_err(|error| format!("{}: {error}", asked.hosts[at]))?);
                if ended != 0 && code == 0 {
                    complain(asked, at, ended);
                    code = ended;
                    until = Some(Instant::now() + GRACE);
                }
                continue;
            }
            () = late => code,
        };
        until = None;
        code = asked_to_end;
        connections.lives = None;
    }
    connections.drain().await;
    Ok(code)
}

/// Where the other hosts reach this one: by its line in /etc/hosts, as pods have it. Hosts without one are this machine.
fn address(host: &str) -> IpAddr {
    let lines = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    address_in(&lines, host).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

fn address_in(hosts: &str, host: &str) -> Option<IpAddr> {
    hosts.lines().find_map(|line| {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|name| name == host).then_some(address)
    })
}

/// What the daemons connect to: each has a connection for as long as it may live, and two for what it and each of its
/// ranks print.
struct Connections {
    at: SocketAddr,
    listener: TcpListener,
    /// None once all are to end.
    lives: Option<Vec<TcpStream>>,
    printed: JoinSet<()>,
    is_tagged: bool,
}

/// Asks for a tag before each piece that a rank prints, as `--tag-output` does.
const TAG_OUTPUT: &str = "OMPI_MCA_orte_tag_output";
/// Of output that is read at once: programs that flush within a line have a tag there.
const PIECE: usize = 29;

/// What a connection is for, as its first byte says; behind it stands the rank, which daemons do not have.
const NO_RANK: u32 = u32::MAX;
const LIFE: u8 = b'L';
const STDOUT: u8 = b'O';
const STDERR: u8 = b'E';

impl Connections {
    async fn listen(address: IpAddr) -> Result<Connections, String> {
        let no_port = |error: io::Error| format!("no port at {address}: {error}");
        let listener = TcpListener::bind((address, 0)).await.map_err(no_port)?;
        let at = listener.local_addr().map_err(no_port)?;
        let is_tagged = std::env::var(TAG_OUTPUT).is_ok_and(|value| ["1", "true"].contains(&value.as_str()));
        Ok(Connections { at, listener, lives: Some(Vec::new()), printed: JoinSet::new(), is_tagged })
    }

    async fn take(&mut self, accepted: io::Result<TcpStream>) {
        let Ok(mut stream) = accepted else { return };
        let (Ok(what), Ok(rank)) = (stream.read_u8().await, stream.read_u32().await) else { return };
        let tag = |name| (self.is_tagged && rank != NO_RANK).then(|| format!("[1,{rank}]<{name}>:"));
        match what {
            LIFE => {
                if let Some(lives) = &mut self.lives {
                    lives.push(stream);
                }
            }
            STDOUT => drop(self.printed.spawn(print(stream, tag("stdout"), io::stdout))),
            STDERR => drop(self.printed.spawn(print(stream, tag("stderr"), io::stderr))),
            _ => {}
        }
    }

    /// All have ended: what they printed last is on its way.
    async fn drain(mut self) {
        while let Ok(accepted) = timeout(Duration::from_millis(50), self.listener.accept()).await {
            self.take(accepted.map(|(stream, _)| stream)).await;
        }
        let all = async { while self.printed.join_next().await.is_some() {} };
        let _ = timeout(LATE, all).await;
    }
}

/// Line by line, so that those of different ranks stay whole.
async fn print<T: Write>(stream: TcpStream, tag: Option<String>, to: fn() -> T) {
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    while let Ok(1..) = lines.read_until(b'\n', &mut line).await {
        let text = match &tag {
            Some(tag) => tagged(&line, tag),
            None => std::mem::take(&mut line),
        };
        // A reader that is gone is nothing to them.
        let _ = to().write_all(&text).and_then(|()| to().flush());
        line.clear();
    }
}

fn tagged(line: &[u8], tag: &str) -> Vec<u8> {
    line.chunks(PIECE).flat_map(|piece| [tag.as_bytes(), piece].concat()).collect()
}

/// Starts what starts a host's ranks, with its order.
fn begin(own: &Path, here: bool, order: &Order) -> Result<Child, String> {
    let own = own.display().to_string();
    let text = serde_json::to_string(order).map_err(|error| format!("no order: {error}"))?;
    let mut words = Vec::new();
    if here {
        words.extend([own, DAEMON.to_owned(), text]);
    } else {
        let agent = AGENTS.iter().find_map(|name| std::env::var(name).ok());
        let agent = agent.unwrap_or_else(|| "ssh".to_owned());
        words.extend(agent.split_whitespace().map(str::to_owned));
        let quoted = |word: &str| match shlex::try_quote(word) {
            Ok(quoted) => Ok(quoted.into_owned()),
            Err(error) => Err(format!("{word}: {error}")),
        };
        words.extend([order.host.clone(), quoted(&own)?, DAEMON.to_owned(), quoted(&text)?]);
    }
    let [program, arguments @ ..] = words.as_slice() else {
        return Err("no agent to reach hosts".to_owned());
    };
    let child = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    child.map_err(|error| format!("`{program}` for {}: {error}", order.host))
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// What it says of the first host on which something failed; a rank ended by a signal was reported by its own host.
fn complain(asked: &MpirunArguments, at: usize, code: i32) {
    let host = asked.hosts.get(at).map_or("", String::as_str);
    if code == LOST {
        let first = asked.hosts.first().map_or("", String::as_str);
        eprintln!(
            "ORTE has lost communication with a remote daemon.\n  HNP daemon   : [[30211,0],0] on node {first}\n  Remote daemon: [[30211,0],{at}] on node {host}"
        );
    } else if code < 128 {
        let rank = at as u32 * asked.per_host;
        eprintln!(
            "mpirun detected that one or more processes exited with non-zero status\n  Process name: [[30211,1],{rank}]\n  Exit code:    {code}"
        );
    }
}

/// The process on each host: it starts the ranks, and ends with the worst of their codes.
async fn daemon(order: &str) -> Result<i32, String> {
    // A group of its own, so that it can kill its ranks and nothing else. ssh makes one by itself.
    let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
    let order: Order = serde_json::from_str(order).map_err(|error| format!("no order: {error}"))?;
    let own = getpgrp();
    if own != Pid::this() {
        return Err("no process group of its own".to_owned());
    }
    let connected = |what: u8, rank: u32| {
        let mut stream = std::net::TcpStream::connect(order.at).map_err(|error| lost(&order, &error))?;
        let head = [&[what][..], &rank.to_be_bytes()].concat();
        stream.write_all(&head).map(|()| stream).map_err(|error| lost(&order, &error))
    };
    let mut life = connected(LIFE, NO_RANK)?;
    let mut stderr = connected(STDERR, NO_RANK)?;
    // The first process is gone, or wants an end: so do its ranks, and whatever they have started.
    std::thread::spawn(move || {
        while let Ok(1..) = life.read(&mut [0; 64]) {}
        let _ = killpg(own, Signal::SIGKILL);
    });
    let mut ranks = Vec::new();
    for local in 0..order.many {
        let number = order.first + local;
        let output = [connected(STDOUT, number)?, connected(STDERR, number)?];
        ranks.push((number, rank(&order, local, output)?));
    }
    let mut worst = 0;
    for (rank, mut child) in ranks {
        let pid = child.id().unwrap_or_default();
        let status = child.wait().await.map_err(|error| format!("rank {rank}: {error}"))?;
        if let (Some(number), true) = (status.signal(), worst < 128) {
            let line = format!(
                "mpirun noticed that process rank {rank} with PID {pid} on node {} exited on signal {number} ({}).\n",
                order.host,
                name_of(number)
            );
            let _ = stderr.write_all(line.as_bytes());
        }
        worst = worst.max(code_of(status));
    }
    Ok(worst)
}

fn lost(order: &Order, error: &io::Error) -> String {
    format!("{}: no connection to mpirun: {error}", order.host)
}

fn name_of(signal: i32) -> &'static str {
    match Signal::try_from(signal) {
        Ok(Signal::SIGKILL) => "Killed",
        Ok(Signal::SIGTERM) => "Terminated",
        Ok(Signal::SIGSEGV) => "Segmentation fault",
        Ok(signal) => signal.as_str(),
        Err(_) => "unknown",
    }
}

fn rank(order: &Order, local: u32, output: [std::net::TcpStream; 2]) -> Result<Child, String> {
    let [program, arguments @ ..] = order.argv.as_slice() else {
        return Err("no program to start".to_owned());
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&order.folder).stdin(Stdio::null()).envs(&order.variables);
    let [stdout, stderr] = output.map(OwnedFd::from);
    command.stdout(stdout).stderr(stderr);
    for (name, value) in [
        ("OMPI_COMM_WORLD_RANK", (order.first + local).to_string()),
        ("OMPI_COMM_WORLD_LOCAL_RANK", local.to_string()),
        ("OMPI_COMM_WORLD_SIZE", order.ranks.to_string()),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", order.many.to_string()),
        ("HARNESS_STANDIN_START", order.start.clone()),
        ("HARNESS_STANDIN_NODES", nodeset::fold(&order.hosts)),
        // All hosts may be one machine, which goes by a name of its own.
        ("HARNESS_NODE", order.host.clone()),
    ] {
        command.env(name, value);
    }
    command.spawn().map_err(|error| {
        format!("was unable to start the specified application: `{program}` on {}: {error}", order.host)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<MpirunArguments, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "n1 slots=2\nn2 slots=2\n").expect("written");
        let line = line.replace("FILE", &file.path().display().to_string());
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        MpirunArguments::read(&words)
    }

    #[test]
    fn the_words_that_scripts_write_are_read() {
        let asked = read("-np 4 -N 2 --hostfile FILE --bind-to none -x A -x B=1 prog -x 3").expect("read");
        assert_eq!((asked.ranks, asked.per_host, asked.hosts.len()), (4, 2, 2));
        assert_eq!(asked.exported, ["A", "B=1"]);
        assert_eq!(asked.argv, ["prog", "-x", "3"]);
    }

    #[test]
    fn a_tag_stands_before_each_piece() {
        let text = tagged(b"    65536   16384  float  sum  19.9\n", "[1,0]<stdout>:");
        let expected = "[1,0]<stdout>:    65536   16384  float  sum[1,0]<stdout>:  19.9\n";
        assert_eq!(String::from_utf8_lossy(&text), expected);
    }

    #[test]
    fn a_host_is_reached_by_its_line_in_the_hosts_file() {
        let hosts =
            "127.0.0.1 localhost\n# 10.0.0.9 n1\n10.244.1.7\tn1 # n3\nnonsense n2\n10.244.2.7 n22 n2\n";
        let of = |host: &str| address_in(hosts, host).map(|address| address.to_string());
        assert_eq!(of("n1").as_deref(), Some("10.244.1.7"));
        assert_eq!(of("n2").as_deref(), Some("10.244.2.7"));
        assert_eq!((of("n3"), of("")), (None, None));
    }

    #[test]
    fn what_it_cannot_start_is_refused() {
        for (line, why) in [
            ("-np 5 -N 2 --hostfile FILE prog", "5 ranks are not 2 on each of 2 hosts"),
            ("-np 4 -N 2 --hostfile FILE", "no program"),
            ("-np 4 -N 2 prog", "--hostfile"),
            ("-np 0 -N 2 --hostfile FILE prog", "a number above 0"),
            ("--map-by node -np 4 -N 2 --hostfile FILE prog", "--map-by"),
            ("-np", "`-np` needs a value"),
        ] {
            let refused = read(line).expect_err(line);
            assert!(refused.contains(why), "{line}: {refused}");
        }
    }
}
