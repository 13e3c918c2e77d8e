//! Exports a report that has no export, or a stale one, with the user's own nsys. None ships here, and none is needed
//! where exports lie beside their reports.

use nsys::report_file::{ExportState, ReportFile};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use store::trust::check_temporary;
use tempfile::TempDir;

/// How exports are obtained.
#[derive(Debug, Clone, Default)]
pub struct Exporting {
    /// Export reports again, even if an export exists.
    pub again: bool,
    /// Read exports that are older than their reports.
    pub stale_ok: bool,
    /// The nsys to call; without it the one on `PATH`.
    pub nsys: Option<PathBuf>,
}

/// An export to be read, and what a person should know of it.
pub struct ChosenExport {
    /// The export's file or folder.
    pub path: PathBuf,
    /// That it is older than its report, or was made just now.
    pub note: Option<String>,
    /// Where it could not be kept beside its report, it is gone with this.
    _folder: Option<TempDir>,
}

/// Finds the export of a report, or has nsys make one; the error is why neither worked.
pub fn choose(report: &ReportFile, how: &Exporting) -> Result<ChosenExport, String> {
    let as_it_is = |path, note| Ok(ChosenExport { path, note, _folder: None });
    match (report.export_state(), &report.report) {
        (ExportState::Fresh(path), _) if report.is_export || !how.again => as_it_is(path, None),
        (ExportState::Stale(path), Some(newer)) if report.is_export || (how.stale_ok && !how.again) => {
            let note = format!("older than the report beside it: {}", newer.display());
            as_it_is(path, Some(note))
        }
        (ExportState::Stale(path), _) if !how.again => Err(format!(
            "its export {} is older than the report; `--force-export` exports it again, `--stale-ok` reads it as it is",
            path.display()
        )),
        (_, Some(file)) => export(file, &report.base, how),
        (_, None) => Err("there is nothing to export".to_owned()),
    }
}

/// SQLite, which every release can write. The file appears whole or not at all.
fn export(report: &Path, base: &Path, how: &Exporting) -> Result<ChosenExport, String> {
    let (folder, is_beside) = folder_for(base, &std::env::temp_dir())?;
    let mut name = base.file_name().unwrap_or_default().to_owned();
    name.push(".sqlite");
    let made = folder.path().join(&name);
    let nsys = how.nsys.clone().unwrap_or_else(|| PathBuf::from("nsys"));
    let mut output = OsString::from("--output=");
    output.push(&made);
    let mut command = Command::new(&nsys);
    command.args(["export", "--type=sqlite", "--force-overwrite=true"]).arg(output);
    // A name that begins as a switch does would be read as one.
    command.arg(Path::new(".").join(report)).stdin(Stdio::null());
    let by_hand = format!("nsys export --type=sqlite {}", report.display());
    let ended = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "not exported, and `{}` is not found; give `--nsys PATH`, or run this where nsys is installed: \
             {by_hand}",
            nsys.display()
        ),
        _ => format!("not exported, and `{}` cannot be run: {error}", nsys.display()),
    })?;
    let is_there = fs::metadata(&made).is_ok_and(|data| data.len() > 0);
    if !ended.status.success() || !is_there {
        let printed = [ended.stderr, ended.stdout].concat();
        let printed = String::from_utf8_lossy(&printed);
        let last = printed.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no output");
        return Err(format!("nsys export failed, {}: {last}", ended.status));
    }
    if !is_beside {
        let note = "exported to a temporary folder, because its own folder is not writable".to_owned();
        return Ok(ChosenExport { path: made, note: Some(note), _folder: Some(folder) });
    }
    let kept = base.with_file_name(&name);
    fs::rename(&made, &kept)
        .map_err(|error| format!("cannot write its export {}: {error}", kept.display()))?;
    Ok(ChosenExport {
        path: kept,
        note: Some("exported by nsys; the export is kept beside it".to_owned()),
        _folder: None,
    })
}

/// Beside the report, so that what is made there can be moved into place; elsewhere where that cannot be written to.
fn folder_for(base: &Path, temporary: &Path) -> Result<(TempDir, bool), String> {
    let beside = base.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The export holds all of the report, so that no other user may read it.
    let private = Permissions::from_mode(0o700);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".exporting-").permissions(private);
    if let Ok(folder) = builder.tempdir_in(beside) {
        return Ok((folder, true));
    }
    let made = check_temporary(temporary).and_then(|()| builder.tempdir_in(temporary));
    let folder = made.map_err(|error| format!("cannot create a folder for its export: {error}"))?;
    Ok((folder, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_for_an_export_is_readable_by_its_owner_only() {
        let beside = tempfile::tempdir().expect("a folder");
        let nowhere = beside.path().join("not/there/r");
        for (base, is_kept) in [(beside.path().join("r"), true), (nowhere, false)] {
            let (folder, kept) = folder_for(&base, &std::env::temp_dir()).expect("made");
            let mode = fs::metadata(folder.path()).expect("there").permissions().mode();
            assert_eq!((mode & 0o777, kept), (0o700, is_kept), "{}", folder.path().display());
        }
    }

    #[test]
    fn an_export_is_not_made_in_a_temporary_folder_that_others_can_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let temporary = folder.path().join("open");
        fs::create_dir(&temporary).expect("made");
        fs::set_permissions(&temporary, Permissions::from_mode(0o777)).expect("set");
        let why = folder_for(&folder.path().join("not/there/r"), &temporary).expect_err("refused");
        assert!(why.contains("is not safe") && why.contains("0777"), "{why}");
        assert_eq!(fs::read_dir(&temporary).expect("there").count(), 0);
    }
}
