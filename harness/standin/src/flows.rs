//! fi_rma_bw, ib_write_bw and ib_read_bw: one flow between two devices of one name. The ends find each other by files of
//! the state folder, since all hosts may be one machine with one set of ports.

use super::job_run::JobRun;
use super::place::ProcessPlace;
use super::rank::{self, Part};
use super::state::State;
use super::world::now_ns;
use config::inventory::WorldSettings;
use job::script::{FlowMemory, Flows};
use sim::flows;
use sim::work::Work;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::sleep;

/// The arguments of the call.
#[derive(Debug, PartialEq)]
struct FlowArguments {
    op: &'static str,
    device: String,
    port: u16,
    bytes: u64,
    iterations: u64,
    /// The server, where this is the client.
    server: Option<String>,
    /// The GPU whose memory is moved.
    gpu: Option<u32>,
    /// A provider that no library has: what the script looks for CUDA with.
    provider: String,
    over_srd: bool,
    help: bool,
}

const LOOK: Duration = Duration::from_millis(20);
/// From a client's coming to the flow's beginning: the server must have seen it by then.
const NOTICE_NS: i64 = 60_000_000;

pub(crate) async fn answer(state: &State, program: &str, words: &[String]) -> Result<i32, String> {
    let asked = FlowArguments::read(program, words)?;
    if let Some((text, code)) = asked.refusal(program, &state.cluster.world) {
        eprint!("{text}");
        return Ok(code);
    }
    let place = ProcessPlace::from_environment()?;
    let tool = if program == "fi_rma_bw" { program } else { "ib_write_bw" };
    let failed = |error: io::Error| format!("meeting point of the flow's ends: {error}");
    let server = asked.server.clone().unwrap_or_else(|| place.node.clone());
    let waits = state.folder.join("worlds").join(format!("flow.{server}.{}", asked.port));
    let flows = |client: &str| Flows {
        tool: tool.to_owned(),
        op: asked.op.to_owned(),
        server: server.clone(),
        client: client.to_owned(),
        base_port: asked.port,
        message_bytes: asked.bytes,
        iterations: asked.iterations,
        // The caller has a limit of its own.
        limit_s: u64::from(u32::MAX),
        memory: if asked.gpu.is_some() { FlowMemory::Gpu } else { FlowMemory::Host },
        devices: state.cluster.nics.clone(),
        gpus: Vec::new(),
    };
    let device = state.cluster.nics.iter().position(|nic| *nic == asked.device);
    let device = device.ok_or_else(|| format!("no such device: `{}`", asked.device))?;
    let life = |client: &str, begin_ns: i64| {
        let pair = [server.clone(), client.to_owned()];
        let own = place.nodes.clone().filter(|nodes| pair.iter().all(|node| nodes.contains(node)));
        let nodes = own.unwrap_or(pair.to_vec());
        JobRun::for_flow(state, (&place.case, &place.job), nodes, flows(client), device, begin_ns)
    };
    let (client, begin_ns) = match &asked.server {
        Some(_) => {
            let is_dead = rate(&life(&place.node, 0), device).is_none();
            let Some(pid) = listener(&waits).filter(|_| !is_dead) else {
                eprintln!("{program}: connect to {server}:{}: Connection refused", asked.port);
                return Ok(1);
            };
            let begin_ns = now_ns() + NOTICE_NS;
            let call = call_of(&waits, pid);
            let part = call.with_extension("part");
            fs::write(&part, format!("{begin_ns} {}", place.node)).map_err(failed)?;
            // The first of two who call at once is served.
            if fs::hard_link(&part, &call).is_err() {
                eprintln!("{program}: connect to {server}:{}: Connection refused", asked.port);
                return Ok(1);
            }
            (place.node.clone(), begin_ns)
        }
        None => {
            let pid = std::process::id();
            let part = waits.with_extension(format!("{pid}.part"));
            // Held for as long as it listens: of a process in another pod /proc shows nothing.
            let mut listens = File::create(&part).map_err(failed)?;
            listens.lock().and_then(|()| write!(listens, "{pid}")).map_err(failed)?;
            fs::rename(&part, &waits).map_err(failed)?;
            let text = loop {
                match fs::read_to_string(call_of(&waits, pid)) {
                    Ok(text) => break text,
                    Err(_) => sleep(LOOK).await,
                }
            };
            fs::remove_file(&waits).map_err(failed)?;
            let (begin, client) = text.split_once(' ').unwrap_or_default();
            (client.to_owned(), begin.parse().map_err(|_| format!("`{text}` is not a start time"))?)
        }
    };
    let life = life(&client, begin_ns);
    let Work::Flows(timelines, wanted) = &life.execution().work else { return Err("no flow".to_owned()) };
    let flow = timelines.get(device).ok_or("no flow")?;
    let part = Part {
        place: &place,
        steps: Vec::new(),
        local: (0, 1),
        counters: life.counters(state, &place.node, Some(&asked.device)),
        text: &|_| life.mark(),
        last: life.mark() + &flows::print(wanted, flow),
    };
    rank::live(&life, part).await
}

fn rate(life: &JobRun, device: usize) -> Option<f64> {
    let Work::Flows(timelines, _) = &life.execution().work else { return None };
    timelines.get(device)?.rate_gb_s
}

/// The process that waits there, if it still does.
fn listener(waits: &Path) -> Option<u32> {
    let mut file = File::open(waits).ok()?;
    let listens = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok().filter(|_| listens)
}

fn call_of(waits: &Path, pid: u32) -> PathBuf {
    let mut name = waits.to_owned().into_os_string();
    name.push(format!(".call.{pid}"));
    PathBuf::from(name)
}

impl FlowArguments {
    /// What the tool prints before it looks for a device, and its exit code, where it does not come to that.
    fn refusal(&self, program: &str, world: &WorldSettings) -> Option<(String, i32)> {
        let fabric = program == "fi_rma_bw";
        let lacks_cuda = self.gpu.is_some() && !world.flow_tools_cuda;
        let text = if self.help && fabric {
            "Usage:\n  fi_rma_bw [OPTIONS]\n  -D <device_iface>  e.g. cuda\n".to_owned()
        } else if self.help {
            let cuda = "      --use_cuda=<cuda device id> Use CUDA specific device\n";
            format!("Usage:\n  {program}\n{}", if world.flow_tools_cuda { cuda } else { "" })
        } else if fabric && lacks_cuda {
            "ft_hmem_init(): common/shared.c:583, ret=-38 (Function not implemented)\n".to_owned()
        } else if fabric && self.provider == "harness-none" {
            "fi_getinfo(): common/shared.c:790, ret=-61 (No data available)\n".to_owned()
        } else if lacks_cuda {
            let words = " Invalid Command or flag.\n Please check command line and run again.\n";
            format!("{program}: unrecognized option '--use_cuda'\n{words}")
        } else if program == "ib_write_bw" && self.over_srd && !world.flow_tools_srd {
            " SRD connection only possible in SEND/READ verbs\n".to_owned()
        } else {
            return None;
        };
        Some((text, 1))
    }

    fn read(program: &str, words: &[String]) -> Result<FlowArguments, String> {
        let fabric = program == "fi_rma_bw";
        let op = if program == "ib_read_bw" { "read" } else { "write" };
        let mut asked = FlowArguments {
            op,
            device: String::new(),
            port: 18515,
            bytes: 65_536,
            iterations: 1000,
            server: None,
            gpu: None,
            provider: String::new(),
            over_srd: false,
            help: false,
        };
        // Those that have a value behind them.
        let valued = if fabric { "eoSIpdBPsbtTQDi" } else { "dpsncxtQlm" };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(switch) = word.strip_prefix('-') else {
                asked.server = Some(word.clone());
                continue;
            };
            if let Some(port) = switch.strip_prefix("E=") {
                asked.port = number(word, port)?;
                continue;
            }
            if let Some(gpu) = switch.strip_prefix("-use_cuda=") {
                asked.gpu = Some(number(word, gpu)?);
                continue;
            }
            asked.help |= switch == "-help" || switch == "h";
            if !(switch.len() == 1 && valued.contains(switch)) {
                continue;
            }
            let value = words.next().ok_or_else(|| format!("option requires an argument: `{word}`"))?;
            match (fabric, switch) {
                (true, "o") => asked.op = if value == "read" { "read" } else { "write" },
                (true, "S") | (false, "s") => asked.bytes = number(word, value)?,
                (true, "I") | (false, "n") => asked.iterations = number(word, value)?,
                (false, "p") => asked.port = number(word, value)?,
                (true, "D") => asked.gpu = Some(asked.gpu.unwrap_or_default()),
                (true, "i") => asked.gpu = Some(number(word, value)?),
                (true, "p") => asked.provider = value.clone(),
                (false, "c") => asked.over_srd = value == "SRD",
                (_, "d") => asked.device = value.strip_suffix("-rdm").unwrap_or(value).to_owned(),
                _ => {}
            }
        }
        Ok(asked)
    }
}

fn number<T: std::str::FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("invalid value for `{word}`: `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str, change: impl Fn(&mut WorldSettings)) -> Option<String> {
        let mut world = WorldSettings::default();
        change(&mut world);
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let asked = FlowArguments::read(&words[0], &words[1..]).expect("read");
        asked.refusal(&words[0], &world).map(|(text, _)| text)
    }

    #[test]
    fn a_server_is_there_for_as_long_as_it_holds_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let waits = folder.path().join("flow.n1.18515");
        assert_eq!(listener(&waits), None);
        let mut held = File::create(&waits).expect("made");
        held.lock().and_then(|()| write!(held, "{}", 4_000_000)).expect("held");
        assert_eq!(listener(&waits), Some(4_000_000), "by no number of a process of this machine");
        drop(held);
        assert_eq!(listener(&waits), None);
    }

    #[test]
    fn a_tool_built_without_cuda_refuses_gpu_memory() {
        let rma = "fi_rma_bw -e rdm -p efa -d rdmap79s0-rdm -D cuda -i 3 n1";
        assert_eq!(refused(rma, |_| {}), None);
        let why = refused(rma, |world| world.flow_tools_cuda = false).expect("a refusal");
        assert!(why.contains("hmem_init"), "{why}");
        let write = "ib_write_bw -F -d rdmap79s0 --use_cuda=3 n1";
        assert_eq!(refused(write, |_| {}), None);
        let why = refused(write, |world| world.flow_tools_cuda = false).expect("a refusal");
        assert!(why.contains("Invalid Command or flag"), "{why}");
    }

    #[test]
    fn what_the_script_asks_about_cuda_is_answered_as_the_world_has_it() {
        let trial = "fi_rma_bw -p harness-none -D cuda -i 0";
        assert!(refused(trial, |_| {}).is_some_and(|text| text.contains("fi_getinfo")));
        let without = refused(trial, |world| world.flow_tools_cuda = false);
        assert!(without.is_some_and(|text| text.contains("hmem_init") && !text.contains("fi_getinfo")));
        let help = |cuda: bool| refused("ib_write_bw --help", |world| world.flow_tools_cuda = cuda);
        assert!(help(true).is_some_and(|text| text.contains("--use_cuda=")));
        assert!(help(false).is_some_and(|text| !text.contains("--use_cuda=")));
    }

    #[test]
    fn an_old_perftest_refuses_writes_over_srd_and_no_reads() {
        let old = |world: &mut WorldSettings| world.flow_tools_srd = false;
        assert!(refused("ib_write_bw -F -d rdmap79s0 -c SRD -x 0", old).is_some());
        assert_eq!(refused("ib_read_bw -F -d rdmap79s0 -c SRD -x 0", old), None);
        assert_eq!(refused("ib_write_bw -F -d mlx5_0", old), None);
    }
}
