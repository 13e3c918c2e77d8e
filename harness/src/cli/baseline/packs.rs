//! Baselines between sites: a signed file without names goes out, and that of another site comes in.

use super::files;
use super::signature::{self, Signer};
use crate::cli::usage;
use crate::library::Library;
use base::text::{count, show};
use clap::Args;
use config::baseline::Baselines;
use config::baseline::pack::{Pack, have_same_runs, is_day, sanitise};
use config::toml_reader::file;
use model::exit_code;
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use store::{Home, write_whole};

/// Below the folder of baselines.
const FOLDER: &str = "packs";

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The pack: what `harness baseline export --sanitise` made at another site
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Who signed it: the 64 digits that the other site reads out, or the file of its public key; not needed where a pack
    /// of the same key was imported before
    #[arg(long, value_name = "KEY")]
    trust: Option<String>,
}

/// `export --sanitise`: to a file, signed.
pub(super) fn export(home: &Home, instance: Option<&str>, key: &Path, output: &Path) -> i32 {
    match make(home, instance, key, output) {
        Ok(lines) => {
            println!("{}", lines.join("\n"));
            exit_code::PASSED
        }
        Err(why) => usage(&why),
    }
}

fn make(home: &Home, instance: Option<&str>, key: &Path, output: &Path) -> Result<Vec<String>, String> {
    let instance = instance.ok_or("--sanitise: name the instance, such as `harness baseline export p5`")?;
    let library = Library::for_project(home.path());
    if !library.ships("inventory/instances", instance) && !library.ships("baselines", instance) {
        return Err(format!(
            "{}: not an instance that the program ships: its name may be your own",
            show(instance)
        ));
    }
    // A pack may be written over by the next one; a key, or baselines in force, may not.
    if file::read(output).map_or_else(
        |error| error.kind() != std::io::ErrorKind::NotFound,
        |old| signature::verified(&old).is_err(),
    ) {
        return Err(format!(
            "{}: there already, and not a pack: choose another name",
            show(&output.to_string_lossy())
        ));
    }
    let baselines = files::read_in_force(home, instance)?
        .ok_or_else(|| format!("there are no baselines of {}", show(instance)))?;
    let made = sanitise(&baselines, &Catalogue::built_in());
    let mut lines: Vec<String> =
        made.left_out.iter().map(|(reason, n)| format!("left out {n}: {reason}")).collect();
    let n = made.baselines.entries.len();
    if n == 0 {
        lines.push(format!("no baseline of {} can leave the site", show(instance)));
        return Err(lines.join("\n"));
    }
    let (text, signer) = signature::sign(&made.baselines.render(), key)?;
    store::write_output(output, text.as_bytes()).map_err(|error| error.to_string())?;
    lines.push(format!("{}: {}", count(n, "baseline"), show(&output.to_string_lossy())));
    lines.push(format!("signed by {}", signer.digits()));
    lines.push(format!("the other site: harness baseline import FILE --trust {}", signer.digits()));
    Ok(lines)
}

pub(super) fn import(home: &Home, args: &ImportArgs) -> i32 {
    match take(home, args) {
        Ok(lines) => {
            println!("{}", lines.join("\n"));
            exit_code::PASSED
        }
        Err(why) => usage(&why),
    }
}

fn take(home: &Home, args: &ImportArgs) -> Result<Vec<String>, String> {
    let name = show(&args.file.to_string_lossy());
    let of_pack = |why: String| format!("{name}: {why}");
    let text = file::read(&args.file).map_err(|error| of_pack(error.to_string()))?;
    let (signer, baselines) = read(home, &name, &text).map_err(of_pack)?;
    let place = folder(home).join(format!("{}.{}.toml", baselines.instance, signer.stem()));
    // One that was damaged counts as none.
    let before = file::read(&place).ok().and_then(|text| read(home, &home.display_path(&place), &text).ok());
    let is_known = before.is_some() || is_known(home, &signer);
    match &args.trust {
        Some(word) if Signer::parse(word)? != signer => {
            return Err(of_pack(format!("signed by {}, not by the key of --trust", signer.digits())));
        }
        None if !is_known => {
            return Err(of_pack(format!(
                "signed by {}, of which there was no pack before; if the other site reads out these digits: --trust {}",
                signer.digits(),
                signer.digits()
            )));
        }
        _ => {}
    }
    let library = Library::for_project(home.path());
    let instance = &baselines.instance;
    if ["inventory/instances", "baselines"].iter().all(|folder| library.find(folder, instance).is_none()) {
        return Err(of_pack(format!("no instance `{}` here", show(instance))));
    }
    if let Some((_, before)) = &before
        && newest(before) > newest(&baselines)
    {
        return Err(of_pack(format!("older than the pack in {}", home.display_path(&place))));
    }
    if let Some(own) = files::read_in_force(home, instance)? {
        let samples = baselines.entries.iter().filter_map(|entry| {
            Some((own.find(&entry.metric, &entry.key)?.samples.as_slice(), entry.samples.as_slice()))
        });
        if have_same_runs(samples) {
            let why = format!("it is of the runs of your own baselines in {}, and proves nothing", own.file);
            return Err(of_pack(why));
        }
    }
    std::fs::create_dir_all(folder(home)).map_err(|error| format!("{}: {error}", show(FOLDER)))?;
    write_whole(&place, text.as_bytes()).map_err(|error| error.to_string())?;
    let metrics: BTreeSet<&str> = baselines.entries.iter().map(|entry| entry.metric.as_str()).collect();
    Ok(vec![
        format!(
            "{} of {}: {}",
            count(baselines.entries.len(), "baseline"),
            count(metrics.len(), "metric"),
            home.display_path(&place)
        ),
        format!("signed by {}", signer.digits()),
        "it judges nothing: `harness baseline propose` takes from it what it predicts well".to_owned(),
    ])
}

/// The packs of an instance that were imported, each verified again.
pub(super) fn imported(home: &Home, instance: &str) -> Result<Vec<Pack>, String> {
    let mut paths: Vec<PathBuf> = match std::fs::read_dir(folder(home)) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", home.display_path(&folder(home)))),
    };
    paths.sort();
    let mut packs = Vec::new();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(stem) =
            name.strip_suffix(".toml").and_then(|name| name.strip_prefix(&format!("{instance}.")))
        else {
            continue;
        };
        let shown = home.display_path(&path);
        let wrong = |why: String| format!("{shown}: {why}; remove it, or import it again");
        let text = file::read(&path).map_err(|error| wrong(error.to_string()))?;
        let (signer, baselines) = read(home, &shown, &text).map_err(wrong)?;
        if signer.stem() != stem || baselines.instance != instance {
            return Err(wrong("its name is not of its instance and key".to_owned()));
        }
        packs.push(Pack { signer: signer.short(), baselines });
    }
    Ok(packs)
}

/// The baselines of a pack of another site, if its signature is of these bytes.
pub fn read_pack(home: &Home, text: &str) -> Result<Baselines, String> {
    read(home, "the pack", text).map(|(_, baselines)| baselines)
}

fn read(home: &Home, shown: &str, text: &str) -> Result<(Signer, Baselines), String> {
    let (signed, signer) = signature::verified(text)?;
    let baselines =
        Baselines::read(signed, shown, &files::catalogue(home)).map_err(|wrong| wrong.to_string())?;
    // The name of a file is made of it.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !baselines.instance.chars().all(is_plain) {
        return Err(format!("no name of an instance: {}", show(&baselines.instance)));
    }
    if let Some(date) =
        baselines.entries.iter().filter_map(|entry| entry.date.as_ref()).find(|date| !is_day(date))
    {
        return Err(format!("no day, such as 2026-11-21: {}", show(date)));
    }
    match baselines.entries.is_empty() {
        true => Err("it has no baselines".to_owned()),
        false => Ok((signer, baselines)),
    }
}

/// Whether a pack of this key was imported, of whichever instance.
fn is_known(home: &Home, signer: &Signer) -> bool {
    let entries = std::fs::read_dir(folder(home)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        let text = file::read(&path).unwrap_or_default();
        signature::verified(&text).is_ok_and(|(_, other)| other == *signer)
    })
}

fn newest(baselines: &Baselines) -> Option<&str> {
    baselines.entries.iter().filter_map(|entry| entry.date.as_deref()).max()
}

fn folder(home: &Home) -> PathBuf {
    home.path().join("baselines").join(FOLDER)
}
