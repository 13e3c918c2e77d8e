//! `harness clean --kubernetes`: pods that no run here knows, and what NVIDIA's older sidecar injector left in a cluster, listed,
//! and removed where asked.

use super::home;
use crate::error::Error;
use crate::session::execution::new_runtime;
use crate::session::{load, report_error, run_cluster};
use base::text::duration;
use cluster::clean::injector::{InjectorLeftover, InjectorSearch};
use cluster::reach::pods::{Maker, Orphan, Orphans};
use config::inventory::{KubernetesReach, ReachBy};
use model::exit_code;
use store::Home;

pub(super) fn clean(inventory: &str, remove: bool) -> Result<i32, Error> {
    let home = home()?;
    let loaded = load::without_suite(&home, inventory).map_err(|why| Error::Usage(why.join("\n")))?;
    let ReachBy::Kubernetes(reach) = &loaded.inventory.reach else {
        let file = &loaded.inventory.file;
        return Err(Error::Usage(format!("--kubernetes: `[reach]` of {file} is not `via = \"kubernetes\"`")));
    };
    let runtime = new_runtime(false).map_err(Error::Usage)?;
    if let Err(why) = runtime.block_on(run_cluster::check_named(&loaded.inventory)) {
        return Ok(report_error(&why));
    }
    let of_pods = runtime.block_on(clean_pods(&home, reach, remove));
    let of_injector = runtime.block_on(clean_injector(reach, remove));
    Ok(exit_code::graver(of_pods, of_injector))
}

async fn clean_injector(reach: &KubernetesReach, remove: bool) -> i32 {
    let search = InjectorSearch::new(reach);
    let before = match search.find().await {
        Ok(before) => before,
        Err(why) => return report_error(&format!("leftovers of the injector are unknown: {why}")),
    };
    if before.found.is_empty() {
        println!("no leftovers of the injector");
        return exit_code::PASSED;
    }
    if !remove || before.is_installed {
        print(&search, &before.found);
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
            print(&search, &after.found);
            println!("{} of {} are there still; ask again", after.found.len(), before.found.len());
            exit_code::FAILED
        }
        Err(why) => report_error(&format!("leftovers of the injector are unknown: {why}")),
    }
}

fn print(search: &InjectorSearch, found: &[InjectorLeftover]) {
    for leftover in found {
        println!("{}: {}; `{}`", leftover.object, leftover.what, search.command(leftover));
    }
}

/// Pods of probes, field kits and analyses whose harness was killed. One that may be in use is only listed.
async fn clean_pods(home: &Home, reach: &KubernetesReach, remove: bool) -> i32 {
    let person = std::env::var("USER").unwrap_or_default();
    let runs = home.runs();
    let names = runs.iter().filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()));
    let orphans = Orphans::new(reach, &person);
    let found = match orphans.find(&names.collect::<Vec<_>>()).await {
        Ok(found) => found,
        Err(why) => return report_error(&format!("pods that no run here knows are unknown: {why}")),
    };
    let of = |maker: Maker| found.iter().filter(|one| one.maker == maker).cloned().collect::<Vec<Orphan>>();
    let (ended, unknown) = (of(Maker::Ended), of(Maker::Unknown));
    for orphan in &found {
        println!("{}; `{}`", about(orphan), orphans.command(orphan));
    }
    let unclear = if unknown.is_empty() { exit_code::PASSED } else { exit_code::INCONCLUSIVE };
    match (ended.len(), remove) {
        (0, _) => {
            println!("no pod is left of a harness that has ended");
            unclear
        }
        (n, false) => {
            println!("left by a harness that has ended: {n}; `--remove` removes them");
            exit_code::FAILED
        }
        (n, true) => match orphans.delete(&ended).await {
            Ok(stay) if stay.is_empty() => {
                println!("removed pods: {n}");
                unclear
            }
            Ok(stay) => {
                stay.iter().for_each(|(pod, why)| println!("not removed pod/{}: {why}", pod.name));
                exit_code::FAILED
            }
            Err(why) => report_error(&format!("pods may be left: {why}")),
        },
    }
}

fn about(orphan: &Orphan) -> String {
    let age = orphan.age_s.map_or("unknown".to_owned(), |age_s| duration(age_s as f64));
    let node = orphan.pod.node.as_deref().map(|node| format!(" on {node}")).unwrap_or_default();
    let maker = match orphan.maker {
        Maker::Ended => "its harness has ended",
        Maker::Alive => "in use: its harness goes on",
        Maker::Unknown => "of a run, user or machine that is not known here: left alone",
    };
    format!("pod/{} of {}{node}: age {age}, {}; {maker}", orphan.pod.name, orphan.run, orphan.state)
}
