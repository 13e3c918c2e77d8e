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
pub(super) enum Kind {
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

pub(super) fn kind(package: &Path) -> Result<Kind, String> {
    if package.is_dir() {
        return Err(format!("a package is one file, this is a folder: `{}`", package.display()));
    }
    let mut first = Vec::new();
    let read = unpack::open(package)?.take(512).read_to_end(&mut first);
    read.map_err(|error| format!("cannot read it, {error}: `{}`", package.display()))?;
    let shown = package.display();
    let name = package.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if first.starts_with(ar::MAGIC) {
        Ok(Kind::Deb)
    } else if first.starts_with(&RPM) {
        Ok(Kind::Rpm)
    } else if first.starts_with(b"#!") || name.ends_with(".run") {
        Err(format!(
            "a .run is a program that asks for a licence to be accepted, and is not run from here; unpack it yourself by \
             `sh {name} --noexec --target nsys`, pack that by `tar -cf nsys.tar nsys`, and give the tar: `{shown}`"
        ))
    } else if first.starts_with(&GZIP) || first.starts_with(&XZ) || first.starts_with(&ZSTD) || is_tar(&first)
    {
        Ok(Kind::Tar)
    } else {
        Err(format!("neither .deb, .rpm nor tar (plain, gz, xz, zst): `{shown}`"))
    }
}

fn is_tar(first: &[u8]) -> bool {
    first.get(USTAR) == Some(b"ustar")
}

/// Unpacks below `folder`; gives the version that the package tells of itself, where it does.
pub(super) fn unpack(package: &Path, kind: Kind, folder: &Path) -> Result<Option<NsysVersion>, String> {
    let name = package.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match kind {
        Kind::Tar => unpack::tar(plain(BufReader::new(unpack::open(package)?))?, folder)?,
        Kind::Deb => deb(package, folder)?,
        Kind::Rpm => rpm(package, folder)?,
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

/// Packages of rpm are packed in ways of their own, which its tools know.
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
    Err("an .rpm needs `bsdtar` or `rpm2cpio` on this machine, and neither is; install one, or give a .deb or a tar"
        .to_owned())
}

/// Nothing where there is no such program.
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
        Err(error) => Err(format!("`{program}` does not start ({error})")),
    }
}

fn ended(mut child: Child, program: &str) -> Result<(), String> {
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{program}` cannot unpack it ({status})")),
        Err(error) => Err(format!("`{program}` is lost ({error})")),
    }
}
