//! `harness baseline review`: shows the old and the new baseline, and records the decision of a person.

use super::files;
use crate::cli::usage;
use clap::Args;
use config::baseline::review::{Decision, Reviewer, decide, name, open, refusal, render};
use config::baseline::{BaselineKey, Baselines};
use model::exit_code;
use std::io::{self, BufRead, IsTerminal, Write};
use store::{self, Home};

#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// The instance; by default all that have proposals
    #[arg(value_name = "INSTANCE")]
    instance: Option<String>,
    /// Accept every proposal whose name contains this, or `all`
    #[arg(long, value_name = "PART", requires = "reason")]
    accept: Vec<String>,
    /// Reject every proposal whose name contains this, or `all`
    #[arg(long, value_name = "PART", requires = "reason")]
    reject: Vec<String>,
    /// The reason, which is recorded in the file
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The reviewer, who is recorded in the file
    #[arg(long, value_name = "NAME", env = "USER")]
    by: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptArgs {
    /// Every proposal whose name contains this, or `all`
    #[arg(value_name = "PART", required = true)]
    parts: Vec<String>,
    /// The reason, which is recorded in the file
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The reviewer, who is recorded in the file
    #[arg(long, value_name = "NAME", env = "USER")]
    by: Option<String>,
}

pub(super) fn accept(home: &Home, args: &AcceptArgs) -> i32 {
    let (reason, by) = (args.reason.clone(), args.by.clone());
    run(home, &ReviewArgs { instance: None, accept: args.parts.clone(), reject: Vec::new(), reason, by })
}

pub(super) fn run(home: &Home, args: &ReviewArgs) -> i32 {
    let Some(by) = args.by.as_deref().filter(|by| !by.trim().is_empty()) else {
        return usage("`--by NAME` is required: the reviewer is recorded in the baseline");
    };
    let asks = args.accept.is_empty() && args.reject.is_empty();
    if asks && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return usage(
            "interactive review needs a terminal; use --accept PART or --reject PART, with --reason TEXT",
        );
    }
    if !asks && args.reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
        return usage("`--reason TEXT` is required: it is recorded in the baseline");
    }
    let instances = match &args.instance {
        Some(instance) => vec![instance.clone()],
        None => files::with_proposals(home),
    };
    let date: String = store::iso8601(store::wall_clock_s()).chars().take(10).collect();
    let mut tally = Tally::default();
    for instance in &instances {
        let mut desk = match Desk::open(home, instance) {
            Ok(Some(desk)) => desk,
            Ok(None) => continue,
            Err(why) => return usage(&why),
        };
        let done = match asks {
            true => desk.one_by_one(by, &date, &mut tally),
            false => desk.by_pattern(args, by, &date, &mut tally),
        };
        match done {
            Ok(true) => {}
            Ok(false) => break,
            Err(why) => return usage(&why),
        }
    }
    if !asks && tally.accepted + tally.rejected + tally.refused == 0 {
        return usage("no proposal matches; `harness baseline show` lists them");
    }
    println!("{} accepted, {} rejected, {} left", tally.accepted, tally.rejected, tally.left);
    match tally.refused {
        0 => exit_code::PASSED,
        _ => exit_code::INCONCLUSIVE,
    }
}

#[derive(Default)]
struct Tally {
    accepted: u32,
    rejected: u32,
    /// Of those that are left: they may not be accepted.
    refused: u32,
    left: u32,
}

/// The two files of one instance, open for decisions.
struct Desk<'a> {
    home: &'a Home,
    accepted: Baselines,
    pending: Baselines,
}

impl Desk<'_> {
    fn open<'a>(home: &'a Home, instance: &str) -> Result<Option<Desk<'a>>, String> {
        let Some(pending) = files::read(home, &files::pending(home, instance))? else { return Ok(None) };
        let accepted = files::read_in_force(home, instance)?;
        let file = format!("baselines/{instance}.toml");
        let accepted = accepted.unwrap_or_else(|| Baselines::none(instance, pending.simulated, &file));
        if accepted.instance != pending.instance || accepted.simulated != pending.simulated {
            return Err(format!(
                "{}: its instance or `simulated` differs from {}",
                pending.file, accepted.file
            ));
        }
        Ok(Some(Desk { home, accepted, pending }))
    }

    /// Written at once: what was decided stays decided, whatever ends this process.
    fn take(
        &mut self,
        it: &(String, BaselineKey),
        decision: Decision,
        who: &Reviewer<'_>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        decide(&mut self.accepted, &mut self.pending, &it.0, &it.1, decision, who);
        if decision == Decision::Accept {
            files::write_in_force(self.home, &self.accepted)?;
            tally.accepted += 1;
        } else {
            tally.rejected += 1;
        }
        files::write_proposals(self.home, &self.pending)
    }

    fn by_pattern(
        &mut self,
        args: &ReviewArgs,
        by: &str,
        date: &str,
        tally: &mut Tally,
    ) -> Result<bool, String> {
        let reason = args.reason.as_deref().unwrap_or_default();
        for it in open(&self.pending) {
            let name = name(&it.0, &it.1);
            let is_meant =
                |parts: &[String]| parts.iter().any(|part| part == "all" || name.contains(part.as_str()));
            let decision = match (is_meant(&args.accept), is_meant(&args.reject)) {
                (true, true) => return Err(format!("`{name}` matches both --accept and --reject")),
                (true, false) => {
                    let new = self.pending.find(&it.0, &it.1);
                    if let Some(why) = new.and_then(|new| refusal(&self.accepted, new)) {
                        println!("not accepted: {} {name}: {why}", self.pending.instance);
                        tally.refused += 1;
                        tally.left += 1;
                        continue;
                    }
                    Decision::Accept
                }
                (false, true) => Decision::Reject,
                (false, false) => {
                    tally.left += 1;
                    continue;
                }
            };
            self.take(&it, decision, &Reviewer { by, reason, date }, tally)?;
            println!(
                "{}: {} {name}",
                if decision == Decision::Accept { "accepted" } else { "rejected" },
                self.pending.instance
            );
        }
        Ok(true)
    }

    /// Whether to go on with the next instance.
    fn one_by_one(&mut self, by: &str, date: &str, tally: &mut Tally) -> Result<bool, String> {
        let all = open(&self.pending);
        for (at, it) in all.iter().enumerate() {
            let Some(new) = self.pending.find(&it.0, &it.1) else { continue };
            println!("{} of {}: {} {}", at + 1, all.len(), self.pending.instance, name(&it.0, &it.1));
            print!("{}", render(Some(&self.accepted), new));
            let decision = loop {
                let refused = refusal(&self.accepted, new);
                match ask("accept (a), reject (r), skip (s), quit (q)? ")?.as_deref() {
                    Some("a" | "accept") => match refused {
                        None => break Some(Decision::Accept),
                        Some(why) => println!("not accepted: {why}"),
                    },
                    Some("r" | "reject") => break Some(Decision::Reject),
                    Some("s" | "skip") => break None,
                    Some("q" | "quit") | None => {
                        tally.left += (all.len() - at) as u32;
                        return Ok(false);
                    }
                    Some(_) => {}
                }
            };
            let Some(decision) = decision else {
                tally.left += 1;
                continue;
            };
            let reason = loop {
                match ask("why? ")? {
                    Some(reason) if !reason.is_empty() => break Some(reason),
                    Some(_) => {}
                    None => break None,
                }
            };
            // A terminal that closes has given no reason, and decided nothing.
            let Some(reason) = reason else {
                tally.left += (all.len() - at) as u32;
                return Ok(false);
            };
            self.take(it, decision, &Reviewer { by, reason: &reason, date }, tally)?;
        }
        Ok(true)
    }
}

/// A line, without what is round it; nothing at the end of input.
fn ask(question: &str) -> Result<Option<String>, String> {
    print!("{question}");
    io::stdout().flush().map_err(|error| error.to_string())?;
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(line.trim().to_owned())),
        Err(error) => Err(error.to_string()),
    }
}
