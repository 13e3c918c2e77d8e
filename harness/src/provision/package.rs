//! Of which kind a package is, by its first bytes, and how each kind is unpacked.

use super::{ar, cpio, unpack};
use flate2::read::MultiGzDecoder;
use job::profile::NsysVersion;
use lzma_rust2::XzReader;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use zstd::stream::read::Decoder as ZstdDecoder;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageKind {
    Deb,
    Rpm,
    Tar,
}

const RPM: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];
const GZIP: [u8; 2] = [0x1f, 0x8b];
const XZ: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Where a tar says that it is one.
const USTAR: std::ops::Range<usize> = 257..262;

pub(super) fn kind(package: &Path) -> Result<PackageKind, String> {
    if package.is_dir() {
        return Err(format!("`{}` is a folder, expected a package file", package.display()));
    }
    let mut first = Vec::new();
    let read = unpack::open(package)?.take(512).read_to_end(&mut first);
    read.map_err(|error| format!("cannot read `{}`: {error}", package.display()))?;
    let shown = package.display();
    let name = package.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if first.starts_with(ar::MAGIC) {
        Ok(PackageKind::Deb)
    } else if first.starts_with(&RPM) {
        Ok(PackageKind::Rpm)
    } else if first.starts_with(b"#!") || name.ends_with(".run") {
        Err(format!(
            "`{shown}` is an installer that asks to accept a licence, and is not run; unpack it with \
             `sh {name} --noexec --target nsys`, pack that with `tar -cf nsys.tar nsys`, and give the tar"
        ))
    } else if first.starts_with(&GZIP) || first.starts_with(&XZ) || first.starts_with(&ZSTD) || is_tar(&first)
    {
        Ok(PackageKind::Tar)
    } else {
        Err(format!("`{shown}` is neither .deb, .rpm nor tar (plain, gz, xz, zst)"))
    }
}

fn is_tar(first: &[u8]) -> bool {
    first.get(USTAR) == Some(b"ustar")
}

/// Unpacks below `folder`; returns the version in the name of the package, if any.
pub(super) fn unpack(
    package: &Path,
    kind: PackageKind,
    folder: &Path,
) -> Result<Option<NsysVersion>, String> {
    let name = package.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match kind {
        PackageKind::Tar => unpack::tar(plain(BufReader::new(unpack::open(package)?))?, folder)?,
        PackageKind::Deb => deb(package, folder)?,
        PackageKind::Rpm => rpm(package, folder)?,
    }
    Ok(version_in(&name))
}

/// Of a name such as `nsight-systems-2024.4.1_2024.4.1.61-1_amd64.deb`.
fn version_in(name: &str) -> Option<NsysVersion> {
    name.split(['_', '-']).find_map(|part| {
        let number = part.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '.');
        NsysVersion::parse(number)
    })
}

fn deb(package: &Path, folder: &Path) -> Result<(), String> {
    let mut has_data = false;
    ar::members(BufReader::new(unpack::open(package)?), &mut |name, member| {
        if !name.starts_with("data.tar") {
            return Ok(());
        }
        has_data = true;
        unpack::tar(plain(BufReader::new(member))?, folder)
    })?;
    if has_data { Ok(()) } else { Err("it is a .deb without `data.tar`".to_owned()) }
}

/// The stream as it was before it was packed.
fn plain<'a>(mut from: impl BufRead + 'a) -> Result<Box<dyn Read + 'a>, String> {
    let first = from.fill_buf().map_err(|error| format!("it cannot be read ({error})"))?;
    let (is_gzip, is_xz, is_zstd) =
        (first.starts_with(&GZIP), first.starts_with(&XZ), first.starts_with(&ZSTD));
    Ok(if is_gzip {
        Box::new(MultiGzDecoder::new(from))
    } else if is_xz {
        Box::new(XzReader::new(from, true))
    } else if is_zstd {
        Box::new(ZstdDecoder::with_buffer(from).map_err(|error| format!("it cannot be read ({error})"))?)
    } else {
        Box::new(from)
    })
}

/// Unpacks an rpm with the tools that know its format.
fn rpm(package: &Path, folder: &Path) -> Result<(), String> {
    let as_tar = ["-c", "-f", "-", "--format=pax", "@-"];
    if let Some((child, stdout)) = started("bsdtar", &as_tar, unpack::open(package)?)? {
        let unpacked = unpack::tar(stdout, folder);
        return unpacked.and(ended(child, "bsdtar"));
    }
    if let Some((child, stdout)) = started("rpm2cpio", &["-"], unpack::open(package)?)? {
        let unpacked = cpio::unpack(BufReader::new(stdout), folder);
        return unpacked.and(ended(child, "rpm2cpio"));
    }
    Err("an .rpm needs `bsdtar` or `rpm2cpio` on this machine, and neither is installed; install one, or give a .deb or a tar"
        .to_owned())
}

/// `None` if there is no such program.
fn started(
    program: &str,
    args: &[&str],
    from: std::fs::File,
) -> Result<Option<(Child, ChildStdout)>, String> {
    let spawned =
        Command::new(program).args(args).stdin(from).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    match spawned {
        Ok(mut child) => {
            let stdout = child.stdout.take().ok_or("its unpacker has no output")?;
            Ok(Some((child, stdout)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot start `{program}` ({error})")),
    }
}

fn ended(mut child: Child, program: &str) -> Result<(), String> {
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{program}` cannot unpack it ({status})")),
        Err(error) => Err(format!("cannot wait for `{program}` ({error})")),
    }
}
