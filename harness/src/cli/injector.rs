//! `harness clean --kubernetes`: what NVIDIA's older sidecar injector left in a cluster, listed, and removed where asked.

use super::home;
use crate::error::Error;
use crate::session::execution::new_runtime;
use crate::session::{load, report_error};
use cluster::clean::injector::{InjectorLeftover, InjectorSearch};
use config::inventory::ReachBy;
use model::exit_code;

pub(super) fn clean(inventory: &str, remove: bool) -> Result<i32, Error> {
    let loaded = load::without_suite(&home()?, inventory).map_err(|why| Error::Usage(why.join("\n")))?;
    let ReachBy::Kubernetes(reach) = &loaded.inventory.reach else {
        let file = &loaded.inventory.file;
        return Err(Error::Usage(format!("--kubernetes: `[reach]` of {file} is not `via = \"kubernetes\"`")));
    };
    let runtime = new_runtime(false).map_err(Error::Usage)?;
    let search = InjectorSearch::new(reach);
    Ok(runtime.block_on(async {
        let before = match search.find().await {
            Ok(before) => before,
            Err(why) => return report_error(&format!("leftovers of the injector are unknown: {why}")),
        };
        if before.found.is_empty() {
            println!("no leftovers of the injector");
            return exit_code::PASSED;
        }
        if !remove || before.is_installed {
            print(&before.found);
        }
        if before.is_installed {
            println!("it is installed: `helm uninstall` its release first, then these are leftovers");
            return exit_code::FAILED;
        }
        if !remove {
            println!("{} found, none removed; `--remove` removes them", before.found.len());
            return exit_code::FAILED;
        }
        for leftover in &before.found {
            match search.remove(leftover).await {
                Ok(()) => println!("removed {}: {}", leftover.object, leftover.what),
                Err(why) => println!("not removed {}: {why}", leftover.object),
            }
        }
        // A namespace takes its time.
        match search.find().await {
            Ok(after) if after.found.is_empty() => {
                println!("nothing is left: {} found, all removed", before.found.len());
                exit_code::PASSED
            }
            Ok(after) => {
                print(&after.found);
                println!("{} of {} are there still; ask again", after.found.len(), before.found.len());
                exit_code::FAILED
            }
            Err(why) => report_error(&format!("leftovers of the injector are unknown: {why}")),
        }
    }))
}

fn print(found: &[InjectorLeftover]) {
    for leftover in found {
        println!("{}: {}; `{}`", leftover.object, leftover.what, leftover.command());
    }
}
