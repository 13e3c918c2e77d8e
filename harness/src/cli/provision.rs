//! `harness provision`: programs that a user has as packages, put where all nodes find them.

use crate::error::Error;
use crate::provision::{self, Provisioned};
use clap::Subcommand;
use model::exit_code;
use std::path::PathBuf;

/// `harness provision`
#[derive(Debug, Subcommand)]
#[command(about = "Put programs that you have as packages where all nodes find them.")]
pub(super) enum Package {
    /// Unpack an nsys into a shared folder and check that it is complete; downloads nothing, and runs no program of it
    Nsys {
        /// The package: .deb, tar (plain, gz, xz, zst), or .rpm where `bsdtar` or `rpm2cpio` is there
        #[arg(long, value_name = "PACKAGE")]
        from: PathBuf,
        /// The folder that all nodes see; the version gets a folder of its own below `nsight-systems`
        #[arg(long, value_name = "FOLDER")]
        to: PathBuf,
    },
}

pub(super) fn run(package: &Package) -> Result<i32, Error> {
    let Package::Nsys { from, to } = package;
    provision::provision(from, to).map(|done| print(&done)).map_err(Error::Usage)
}

fn print(done: &Provisioned) -> i32 {
    println!("nsys {}: {}", done.version, done.nsys.display());
    for (part, path) in &done.parts {
        match path {
            Some(path) => println!("{}: {}", part.name(), path.display()),
            None => println!("{}: missing, {}", part.name(), part.loss()),
        }
    }
    if !done.plugins.is_empty() {
        println!("plugins found: {}", done.plugins.join(", "));
    }
    println!(
        "for an inventory, below [paths]: nsys = {}",
        toml::Value::String(done.nsys.display().to_string())
    );
    let missing: Vec<&str> = done.missing().map(provision::Part::name).collect();
    if missing.is_empty() {
        return exit_code::PASSED;
    }
    eprintln!("error: provisioned, but incomplete; missing: {}", missing.join(", "));
    exit_code::FAILED
}
