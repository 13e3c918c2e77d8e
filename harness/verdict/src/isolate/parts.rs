//! From a slow node to its part: by itself (NVLink alone), GPU by GPU, and NIC by NIC with a good partner (the fabric
//! alone). Each shows what the others cannot, and all three are run, so that one fault does not hide another.

use super::State;
use super::allot::{Beside, Want};
use super::named::{Named, Place};
use super::trial::Aim;
use super::weigh;

/// Adds wanted runs and named parts of the convicted nodes to the state.
pub(crate) fn pursue(state: &mut State) {
    for (node, left) in state.convicted.clone() {
        let inside = decided(state, node, Aim::Inside(node), None);
        let gpus = all(state, node, Aim::Gpus(node), state.fleet.gpus);
        let nics = all(state, node, Aim::Nics(node), state.fleet.nics);
        if let (Some(inside), Some(gpus), Some(nics)) = (inside, gpus, nics) {
            name(state, node, left, &inside, &gpus, &nics);
        }
    }
}

/// How far something lies below what is healthy, as a logarithm, and how sure that is: of itself, and of the healthy.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Level {
    off: f64,
    own: f64,
    shared: f64,
}

const HEALTHY: Level = Level { off: 0.0, own: 0.0, shared: 0.0 };

/// Whether it is slow, and by how much.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Good,
    Slow(Level),
    Unknown,
}

fn decided(state: &mut State, node: usize, aim: Aim, part: Option<usize>) -> Option<Part> {
    let found = measured_state(state, &aim, part);
    if found.is_none() {
        want(state, node, aim);
    }
    found
}

fn all(state: &mut State, node: usize, aim: Aim, parts: usize) -> Option<Vec<Part>> {
    let found: Vec<Option<Part>> = (0..parts).map(|part| measured_state(state, &aim, Some(part))).collect();
    if found.iter().any(Option::is_none) {
        want(state, node, aim);
    }
    found.into_iter().collect()
}

fn measured_state(state: &State, aim: &Aim, part: Option<usize>) -> Option<Part> {
    // A run that broke has a value for none of them, and counts for all.
    let part = part.filter(|part| state.weighed.weight(aim, Some(*part)).is_some());
    match (state.weighed.state(aim, part), state.weighed.weight(aim, part)) {
        (weigh::State::Good, _) => Some(Part::Good),
        (weigh::State::Slow, Some(weight)) if weight.weight >= weigh::PROVEN_PART => {
            let (own, shared) = (1.0 / weight.tries.max(1) as f64, 1.0 / weight.peers.max(1) as f64);
            let spread = weight.error / (own + shared).sqrt();
            Some(Part::Slow(Level {
                off: weight.off,
                own: spread * own.sqrt(),
                shared: spread * shared.sqrt(),
            }))
        }
        _ if state.weighed.tried_out(aim) => Some(Part::Unknown),
        _ => None,
    }
}

fn want(state: &mut State, node: usize, aim: Aim) {
    let beside = if let Aim::Nics(_) = aim { Beside::Good(2) } else { Beside::Alone };
    state.wants.push(Want { aim, core: vec![node], beside });
}

fn name(state: &mut State, node: usize, left: f64, inside: &Part, gpus: &[Part], nics: &[Part]) {
    let (gpus_alike, slow_gpus) = split(gpus);
    let (nics_alike, slow_nics) = split(nics);
    let mut names: Vec<(Place, f64)> = Vec::new();
    let mut unsure: Vec<Aim> = Vec::new();
    // A fault that slows all GPUs equally is no GPU's, and one that slows the node is no part's.
    let whole = gpus_alike.unwrap_or(HEALTHY);
    if gpus_alike.is_some() {
        names.push((Place::Node(node), whole.off));
    }
    let mut worst = whole;
    for (gpu, level) in &slow_gpus {
        match below(*level, whole) {
            Some(true) => {
                names.push((Place::Gpu(node, *gpu), level.off));
                if level.off < worst.off {
                    worst = *level;
                }
            }
            Some(false) => {}
            None => unsure.push(Aim::Gpus(node)),
        }
    }
    if let Part::Slow(level) = inside {
        match below(*level, worst) {
            Some(true) => names.push((Place::NvLink(node), level.off)),
            Some(false) => {}
            None => unsure.extend([Aim::Inside(node), Aim::Gpus(node)]),
        }
    }
    let mut fabric = whole;
    if let Some(port) = nics_alike {
        match below(port, whole) {
            Some(true) => names.push((Place::Port(node), port.off)),
            Some(false) => {}
            None => unsure.extend([Aim::Nics(node), Aim::Gpus(node)]),
        }
        fabric = port;
    }
    for (nic, level) in &slow_nics {
        match below(*level, fabric) {
            Some(true) => names.push((Place::Nic(node, *nic), level.off)),
            Some(false) => {}
            None => unsure.push(Aim::Nics(node)),
        }
    }
    // Two things that nearly cost the same are tried again, until they are distinguished or have been tried enough.
    unsure.retain(|aim| !state.weighed.tried_out(aim));
    if !unsure.is_empty() {
        unsure.into_iter().for_each(|aim| want(state, node, aim));
        return;
    }
    let unknown = gpus.iter().chain(nics).chain([inside]).any(|part| *part == Part::Unknown);
    match (names.is_empty(), unknown) {
        (true, true) => {
            state.open.push(format!("node {node} is slow, but none of its parts could be isolated"));
            state.suspects.insert(node);
        }
        (true, false) => names.push((Place::Somewhere(node), left.ln())),
        (false, true) => state.notes.push(format!("some parts of node {node} are inconclusive")),
        (false, false) => {}
    }
    hidden(state, node, &names);
    state.named.extend(names.into_iter().map(|(place, off)| Named { place, left: off.exp() }));
}

/// What slows all of them alike, if something does, and those that are slow.
fn split(parts: &[Part]) -> (Option<Level>, Vec<(usize, Level)>) {
    let slow: Vec<(usize, Level)> = parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| match part {
            Part::Slow(level) => Some((at, *level)),
            _ => None,
        })
        .collect();
    // Where most are slow, one that looks good is so by chance.
    let alike = (parts.len() > 1 && slow.len() * 4 >= parts.len() * 3).then(|| {
        let mut offs: Vec<f64> = slow.iter().map(|(_, level)| level.off).collect();
        offs.sort_by(f64::total_cmp);
        let most = |of: fn(&Level) -> f64| slow.iter().map(|(_, level)| of(level)).fold(0.0, f64::max);
        // The middle of many is surer than each of them, but no surer than what they are compared with.
        Level {
            off: offs.get(offs.len() / 2).copied().unwrap_or_default(),
            own: most(|level| level.own) * 1.25 / (slow.len() as f64).sqrt(),
            shared: most(|level| level.shared),
        }
    });
    (alike, slow)
}

/// Whether it is slower than what explains it already. Where nothing does, what is proven is enough. Nothing where that
/// is still open.
fn below(level: Level, than: Level) -> Option<bool> {
    if than == HEALTHY {
        return Some(true);
    }
    let error =
        [level.own, level.shared, than.own, than.shared].map(|one| one * one).iter().sum::<f64>().sqrt();
    let further = than.off - level.off;
    if further > (SURELY_BELOW * error).max(LEAST_FURTHER) {
        Some(true)
    } else if further < (PERHAPS_BELOW * error).max(LEAST_FURTHER) {
        Some(false)
    } else {
        None
    }
}

/// In standard errors; many parts are looked at.
const SURELY_BELOW: f64 = 5.5;
const PERHAPS_BELOW: f64 = 2.5;
const LEAST_FURTHER: f64 = 0.05;

fn hidden(state: &mut State, node: usize, names: &[(Place, f64)]) {
    for (place, _) in names {
        let what = match place {
            Place::Node(_) => "any part of that node",
            Place::Gpu(..) => "NVLink of that node",
            Place::Port(_) => "a NIC of that node",
            _ => continue,
        };
        state
            .notes
            .push(format!("{what} would be hidden by the slow {place} if its fault is smaller: node {node}"));
    }
}
