//! A bench for tests of the simulated cluster: it submits jobs as a launcher does, and reads what they leave.
//! What must hold is said in the files beside this one.

mod evidence;
mod faults;
mod law;
mod noise;
mod observed;
mod read_back;
mod same_seed;
mod scale;
mod slurm;
mod ssh;
mod training;

use super::SimulatedReach;
use base::nodeset;
use cluster::reach::{Answer, Command, Host, Reach, ReachError};
use config::inventory::{
    FlowOp, Instance, Inventory, Kind, NicTool, Paths, ReachBy, SshReach, SshStart, Transport, WorldSettings,
};
use job::script::{
    self, Directives, FlowMemory, Flows, GpuRequest, Gpus, Run, Sampler, Script, Start, Step, files,
};
use logs::efa_counters::{self, Capture, Phase};
use model::fault::NodeFault;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const P5_NICS: &str = "rdmap[79-82,96-99,113-116,130-133,147-150,164-167,181-184,198-201]s0";
pub(crate) const P4DE_NICS: &str = "rdmap[16,32,144,160]s27";

pub(crate) fn inventory(instance: &str, nodes: &str) -> Inventory {
    let is_p5 = instance == "p5";
    let words = |words: [&str; 1]| words.map(str::to_owned).to_vec();
    let profile = Instance {
        name: format!("sim-{instance}"),
        like: Some(instance.to_owned()),
        gpus: 8,
        gpu: if is_p5 { "H100" } else { "A100" }.to_owned(),
        bf16_tflops: Some(if is_p5 { 989.0 } else { 312.0 }),
        nvlink_gb_s: if is_p5 { 450.0 } else { 300.0 },
        nics: nodeset::expand(if is_p5 { P5_NICS } else { P4DE_NICS }).expect("names"),
        nic_line_rate_gb_s: 12.5,
        host_link_gb_s: is_p5.then_some(14.2),
        transport: if is_p5 { Transport::Rdma } else { Transport::Sendrecv },
        tx_counters: words([if is_p5 { "rdma_write_bytes" } else { "rdma_read_resp_bytes" }]),
        rx_counters: words([if is_p5 { "rdma_write_recv_bytes" } else { "rdma_read_bytes" }]),
        flow_op: if is_p5 { FlowOp::Write } else { FlowOp::Read },
        conservation_shown: true,
        device_names_seen: true,
        source: "a test".to_owned(),
    };
    Inventory {
        name: "test".to_owned(),
        kind: Kind::Simulated,
        instance: profile,
        nodes: nodeset::expand(nodes).expect("nodes"),
        groups: BTreeMap::new(),
        topology: None,
        network: None,
        reach: ReachBy::Local,
        paths: Paths {
            shared: "/fsx/harness".to_owned(),
            nccl_tests: "/opt/nccl-tests/build".to_owned(),
            mpirun: None,
            nccl_inspector: None,
            nsys: None,
            slurm: None,
            harness: None,
            counters: "/sys/class/infiniband".to_owned(),
            samples: config::inventory::SamplePaths::default(),
        },
        container: None,
        environment: BTreeMap::new(),
        publish: None,
        nic_tool: NicTool::FiRmaBw,
        probe: Vec::new(),
        hardware: BTreeMap::new(),
        nsys_version: None,
        world: WorldSettings { docker0: false, ..WorldSettings::default() },
        file: "inventory/test.toml".to_owned(),
    }
}

pub(crate) struct Bench {
    pub reach: SimulatedReach,
    /// The shared folder of the run.
    pub run: String,
    pub minutes: u64,
    nics: Vec<String>,
}

pub(crate) fn faults(texts: &[&str]) -> Vec<NodeFault> {
    texts.iter().map(|text| NodeFault::parse(text).expect("a fault")).collect()
}

/// Runs a test on a paused clock.
pub(crate) fn on_paused_clock<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(test)
}

impl Bench {
    pub(crate) fn new(instance: &str, nodes: &str, seed: u64, texts: &[&str]) -> Bench {
        let inventory = inventory(instance, nodes);
        let nics = inventory.instance.nics.clone();
        let reach = SimulatedReach::new(&inventory, seed, faults(texts), BTreeMap::new()).expect("a cluster");
        Bench { reach, run: "/fsx/harness/run-1".to_owned(), minutes: 60, nics }
    }

    pub(crate) async fn exec(&self, line: &str) -> Answer {
        let command = Command::new(line.split(' '), Duration::from_secs(60));
        self.reach.exec(&Host::Here, &command).await.expect("an answer")
    }

    pub(crate) async fn get(&self, case: &str, job: &str, name: &str) -> Option<Vec<u8>> {
        match self.reach.get(&Host::Here, &format!("{}/{case}/{job}/{name}", self.run)).await {
            Ok(bytes) => Some(bytes),
            Err(ReachError::NotFound { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn text(&self, case: &str, job: &str, name: &str) -> String {
        let bytes = self.get(case, job, name).await.unwrap_or_else(|| panic!("no {name}"));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) async fn capture(&self, case: &str, job: &str, node: &str) -> Capture {
        let bytes = self.get(case, job, &files::counters(node)).await.expect("a capture");
        efa_counters::read(&bytes, node).expect("a capture that is understood")
    }

    /// The text of a job, with the sampler round its step.
    pub(crate) fn script(&self, case: &str, job: &str, nodes: &str, step: Step) -> Script {
        let sampler = Sampler {
            root: "/sys/class/infiniband".to_owned(),
            interval_s: 2.0,
            limit_s: 2000,
            watched: true,
        };
        let directives = Directives {
            job_name: format!("{}.{case}.{job}", self.run),
            folder: format!("{}/{case}/{job}", self.run),
            tasks_per_node: 8,
            gpus_per_node: 8,
            minutes: self.minutes,
            exclusive: true,
            stands_alone: true,
            partition: None,
            account: None,
            reservation: None,
            constraint: None,
            gpus: GpuRequest::Gres,
            qos: None,
            mem: None,
            sbatch: Vec::new(),
            srun: Vec::new(),
            records_environment: false,
        };
        let steps = vec![Step::CountersBegin(sampler), step, Step::CountersEnd];
        Script { start: Start::Slurm(directives), nodes: nodeset::expand(nodes).expect("nodes"), steps }
    }

    pub(crate) async fn submit(&self, case: &str, job: &str, nodes: &str, step: Step) -> String {
        let script = self.script(case, job, nodes, step);
        let folder = format!("{}/{case}/{job}", self.run);
        for (name, text) in script::SHARED {
            self.put(&format!("{folder}/{name}"), text).await;
        }
        self.put(&format!("{folder}/job.sh"), &script::render(&script)).await;
        let answer = self.exec(&format!("sbatch --parsable {folder}/job.sh")).await;
        assert!(answer.succeeded(), "{}", answer.complaint());
        answer.stdout_text().trim().to_owned()
    }

    pub(crate) async fn put(&self, path: &str, text: &str) {
        self.reach.put(&Host::Here, path, text.as_bytes()).await.expect("written");
    }

    pub(crate) async fn state(&self, id: &str) -> (String, String) {
        let answer = self
            .exec(&format!("squeue --noheader --all --states=all --format=%i|%T|%r|%N --jobs={id}"))
            .await;
        let text = answer.stdout_text();
        let mut fields = text.trim().split('|').skip(1).map(str::to_owned);
        (fields.next().unwrap_or_else(|| answer.complaint()), fields.next().unwrap_or_default())
    }

    /// Polls until the job is over, or until a simulated hour has passed.
    pub(crate) async fn wait(&self, id: &str) -> String {
        for _ in 0..1440 {
            let (state, _) = self.state(id).await;
            if !["PENDING", "RUNNING", "COMPLETING"].contains(&state.as_str()) {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(2500)).await;
        }
        self.state(id).await.0
    }

    pub(crate) async fn run(&self, case: &str, job: &str, nodes: &str, step: Step) -> String {
        let id = self.submit(case, job, nodes, step).await;
        self.wait(&id).await
    }

    pub(crate) fn flows(&self, client: &str, server: &str, op: &str) -> Step {
        Step::Flows(Flows {
            tool: "fi_rma_bw".to_owned(),
            op: op.to_owned(),
            server: server.to_owned(),
            client: client.to_owned(),
            base_port: 20_000,
            message_bytes: 1 << 20,
            iterations: 60_000,
            limit_s: 110,
            memory: FlowMemory::Auto,
            devices: self.nics.clone(),
            gpus: (0..self.nics.len() as u32).map(|nic| nic / 4).collect(),
        })
    }
}

/// One program of nccl-tests with a rank for each GPU.
pub(crate) fn collective(program: &str, sizes: &str) -> Step {
    let argv = format!("/opt/nccl-tests/build/{program} {sizes} -f 2 -n 50 -w 5 -d float -o sum -c 1 -g 1");
    Step::Run(Run {
        argv: argv.split(' ').map(str::to_owned).collect(),
        tasks_per_node: 8,
        mpi: Some("pmix".to_owned()),
        container: None,
        profile: None,
    })
}

pub(crate) fn each_gpu() -> Step {
    let argv = "/opt/nccl-tests/build/all_reduce_perf -b 1G -e 4G -f 2 -n 50 -w 5 -c 1 -g 1";
    Step::Gpus(Gpus { argv: argv.split(' ').map(str::to_owned).collect(), gpus: 8, container: None })
}

pub(crate) fn command(line: &str) -> Step {
    let argv = line.split(' ').map(str::to_owned).collect();
    Step::Run(Run { argv, tasks_per_node: 2, mpi: None, container: None, profile: None })
}

/// Rows of a table as words: size, count, type, redop, root, time, algbw, busbw, wrong and so on.
pub(crate) fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|words| words.len() == 13)
        .collect()
}

/// busbw out of place of the last row.
pub(crate) fn last_busbw(text: &str) -> f64 {
    rows(text).last().and_then(|row| row.get(7)?.parse().ok()).expect("a row")
}

/// What a counter of every device grew by between the first and the last reading.
pub(crate) fn growth(capture: &Capture, counter: &str) -> BTreeMap<String, u64> {
    let column = capture.columns.iter().position(|column| column == counter).expect("a column");
    let value = |device: usize, last: bool| {
        let mut all = capture.readings.iter().filter(|reading| reading.device == device);
        let reading = if last { all.next_back() } else { all.next() };
        reading.and_then(|reading| reading.values.get(column).copied().flatten()).expect("a value")
    };
    let device = |(at, device): (usize, &efa_counters::Device)| {
        (device.name.clone(), value(at, true) - value(at, false))
    };
    capture.devices.iter().enumerate().map(device).collect()
}

/// A device's greatest rate between two readings, in GB/s.
pub(crate) fn peak_gb_s(capture: &Capture, device: &str, counter: &str) -> f64 {
    let at = capture.devices.iter().position(|known| known.name == device).expect("a device");
    let column = capture.columns.iter().position(|column| column == counter).expect("a column");
    let points: Vec<(f64, f64)> = capture
        .readings
        .iter()
        .filter(|reading| reading.device == at && reading.phase != Phase::After)
        .filter_map(|reading| {
            Some((reading.uptime_cs as f64 / 100.0, reading.values.get(column).copied().flatten()? as f64))
        })
        .collect();
    points.windows(2).map(|pair| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0) / 1e9).fold(0.0, f64::max)
}
