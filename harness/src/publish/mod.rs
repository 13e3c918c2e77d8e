//! Runs and folders in object stores: published when somebody asks for it, and fetched elsewhere.

mod connector;
mod failure;
mod fetch;
mod manifest;
mod object_name;
mod prefix;
mod profile;
mod record;
mod remote;
mod send;
mod settings;
mod survey;

pub(crate) use failure::Failure;
pub use manifest::manifest_paths;
pub(crate) use prefix::Patience;
pub use remote::readable_paths;
pub(crate) use remote::{RemoteInputs, RunFiles, is_remote, open_run, open_runs};

use base::text::{count, show};
use indicatif::{BinaryBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use manifest::Claim;
use prefix::Prefix;
use record::{Entry, Record};
use send::Sender;
use std::io::Write;
use std::path::{Path, PathBuf};
use store::{Home, Stored};
use survey::Survey;

/// What is published.
pub(crate) enum Source {
    Run(Box<Stored>),
    Folder(PathBuf),
}

impl Source {
    fn folder(&self) -> &Path {
        match self {
            Source::Run(run) => run.folder(),
            Source::Folder(folder) => folder,
        }
    }

    fn name(&self) -> Result<String, Failure> {
        match self {
            Source::Run(run) => Ok(run.plan.run_id.clone()),
            Source::Folder(folder) => {
                let name = folder.file_name().and_then(|name| name.to_str()).map(str::to_owned);
                name.ok_or_else(|| {
                    Failure::refused(format!(
                        "{}: it has no name that can be published; name a folder below it",
                        show(&folder.to_string_lossy())
                    ))
                })
            }
        }
    }

    /// By which the record of a publication is found again.
    fn identity(&self) -> String {
        match self {
            Source::Run(run) => run.plan.run_id.clone(),
            Source::Folder(folder) => folder.display().to_string(),
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Source::Run(_) => {
                "remove it from `raw`, replay the run with `--from collect`, and publish the new run"
            }
            Source::Folder(_) => "remove it, and publish again",
        }
    }
}

/// Sends a run or a folder to where the URL leads; `dry_run` only prints what would be sent.
pub(crate) fn publish(
    home: &Home,
    source: &Source,
    url: &str,
    patience: Patience,
    dry_run: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let name = source.name()?;
    if let Source::Run(run) = source {
        crate::bundle::intact(run).map_err(Failure::refused)?;
        let files = store::files(run.folder()).map_err(Failure::refused)?;
        crate::bundle::check_files(run, &files).map_err(Failure::refused)?;
    }
    refuse_inside(home, source.folder(), url)?;
    let is_run = matches!(source, Source::Run(_));
    let survey = Survey::from_folder(source.folder(), is_run, &store::redactor(), source.advice())?;
    for path in &survey.left_out {
        eprintln!("warning: not published: {path}");
    }
    let what =
        format!("{} of {}, {}", count(survey.files.len(), "file"), show(&name), BinaryBytes(survey.bytes()));
    if dry_run {
        // The folder of a file URL need not be there yet.
        if !url.starts_with("file://") {
            Prefix::open(url, patience, false)?;
        }
        for file in &survey.files {
            say(out, &format!("{:>12} {}", file.entry.bytes, file.entry.key))?;
        }
        return say(out, &format!("{what}: would be sent to {}; nothing was sent", show(url)));
    }
    let prefix = Prefix::open(url, patience, true)?;
    let mut record = Record::open(home, &source.identity(), prefix.url())?;
    let bar = bar(survey.bytes());
    let files = count(survey.files.len(), "file");
    let sent = block_on(async {
        prefix.check_credentials().await?;
        begin(&mut record, &prefix, &name, &send::content(&survey)).await?;
        let claim = record.claim().ok_or_else(|| Failure::refused("the record has no claim"))?;
        let sender = Sender { prefix: &prefix, survey: &survey, claim, bar: bar.clone() };
        let before = record.count();
        if record.is_published {
            sender.check_manifest(&sender.manifest().to_bytes()?.into()).await?;
            return Ok(format!("{what}: published already: {}", prefix.url()));
        }
        sender.publish(&mut record).await?;
        Ok(match before {
            0 => format!("{what}: {}", prefix.url()),
            before => format!("{what}: {}; {before} of {files} had been sent before", prefix.url()),
        })
    });
    bar.finish_and_clear();
    let line = sent.map_err(|failure| match failure {
        Failure::Interrupted(why) => Failure::Interrupted(format!(
            "{why}; {} of {files} are there; go on with the same command",
            record.count()
        )),
        refused => refused,
    })?;
    say(out, &line)?;
    say(
        out,
        &format!(
            "to read it elsewhere: harness fetch {}{}",
            show(prefix.url()),
            if is_run { "" } else { " DIR" }
        ),
    )
}

/// Why nothing could be published to a URL, as far as that is seen from here. Nothing is sent.
pub(crate) fn refused(url: &str, patience: Patience) -> Option<String> {
    // The folder of a file URL is made when it is needed.
    match Prefix::open(url, patience, false) {
        Err(failure) if !url.starts_with("file:///") => Some(failure.to_string()),
        _ => None,
    }
}

/// What is written while it is published must not be a part of what is published.
fn refuse_inside(home: &Home, folder: &Path, url: &str) -> Result<(), Failure> {
    let folder =
        folder.canonicalize().map_err(|error| Failure::refused(format!("{}: {error}", folder.display())))?;
    let target = url.strip_prefix("file://").map(PathBuf::from);
    for (path, what) in
        [(target, "the target"), (Some(home.path().join("runs")), "the record of the publication")]
    {
        let Some(path) = path else { continue };
        let there = path.ancestors().find_map(|above| {
            let real = above.canonicalize().ok()?;
            Some(real.join(path.strip_prefix(above).ok()?))
        });
        if there.is_some_and(|path| path.starts_with(&folder)) {
            return Err(Failure::refused(format!(
                "nothing was sent: {what} would lie inside {}, which is published; choose another folder",
                show(&folder.to_string_lossy())
            )));
        }
    }
    Ok(())
}

/// Goes on with the publication of the record, or begins one.
async fn begin(record: &mut Record, prefix: &Prefix, name: &str, content: &str) -> Result<(), Failure> {
    // Whoever has emptied the prefix meanwhile wants it to begin from there.
    let is_emptied = record.is_claimed && prefix.first_object().await?.is_none();
    let claim = match record.begun() {
        Some((_, before)) if before == content && !is_emptied => return Ok(()),
        Some(_) if record.is_claimed && !is_emptied => {
            return Err(Failure::refused(format!(
                "{}: the files of {} changed since this publication began; publish to another prefix",
                prefix.url(),
                show(name)
            )));
        }
        // It may have been sent, and is known as ours by its token.
        Some((claim, _)) if !is_emptied => claim.clone(),
        _ => Claim {
            format: Default::default(),
            token: store::new_token().map_err(Failure::refused)?,
            name: name.to_owned(),
            by: owner(),
            at: store::iso8601(store::wall_clock_s()),
        },
    };
    record.append(Entry::Begun { claim, content: content.to_owned() })
}

/// Brings a publication here: a run into `runs`, or to where `target` says, as every folder.
pub(crate) fn fetch(
    home: &Home,
    url: &str,
    target: Option<&Path>,
    patience: Patience,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let prefix = Prefix::open(url, patience, false)?;
    cluster::interrupt::watch();
    block_on(async {
        prefix.check_credentials().await?;
        let manifest = fetch::read_manifest(&prefix).await?;
        let runs = home.path().join("runs");
        let target = match target {
            Some(target) => target.to_owned(),
            None if manifest.is_run() => {
                std::fs::create_dir_all(&runs)
                    .map_err(|error| Failure::refused(format!("{}: {error}", runs.display())))?;
                runs.join(&manifest.name)
            }
            // A name that the store chooses could be that of a folder which the harness reads.
            None => {
                return Err(Failure::refused(format!(
                    "{url} holds the folder `{}`, which is no run; name the folder to make: harness fetch {url} DIR",
                    show(&manifest.name),
                    url = show(url)
                )));
            }
        };
        let bar = bar(manifest.bytes());
        let fetched = fetch::fetch(&prefix, &manifest, &target, &bar).await;
        bar.finish_and_clear();
        fetched?;
        let files = count(manifest.files.len(), "file");
        let shown = home.path().join(&target).strip_prefix(home.path()).map(Path::to_owned).unwrap_or(target);
        say(
            out,
            &format!(
                "{files} of {}, {}: {}",
                show(&manifest.name),
                BinaryBytes(manifest.bytes()),
                show(&shown.to_string_lossy())
            ),
        )?;
        match manifest.is_run() {
            true => say(
                out,
                &format!(
                    "to read it: harness replay --run {} --from analyze",
                    show(&shown.to_string_lossy())
                ),
            ),
            false => Ok(()),
        }
    })
}

fn say(out: &mut dyn Write, line: &str) -> Result<(), Failure> {
    writeln!(out, "{line}").map_err(Failure::interrupted)
}

fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::interrupted)?;
    let done = runtime.block_on(work);
    // What still waits for a file system that hangs is not waited for.
    runtime.shutdown_background();
    done
}

/// On stderr: a bar at a terminal, nothing elsewhere.
fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    if let Ok(style) =
        ProgressStyle::with_template("{elapsed} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} eta {eta}")
    {
        bar.set_style(style);
    }
    bar
}

/// For those who find the prefix taken.
fn owner() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    let user = user.map_or_else(|| "unknown".to_owned(), |user| user.name);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => user,
        host => format!("{user}@{host}"),
    }
}
