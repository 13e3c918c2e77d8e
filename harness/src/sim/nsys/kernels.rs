//! The kernels that a rank of nccl-tests runs, one after the other: those of NCCL at the pace of the table's rows, and
//! those by which the program prepares and checks its buffers.

use super::FIRST_KERNEL_S;
use crate::sim::noise::Noise;
use crate::sim::work::Table;
use recipes::op::Op;
use recipes::tables::KernelRow;
use std::collections::BTreeMap;

pub struct Kernel {
    name: &'static str,
    pub start_ns: i64,
    pub end_ns: i64,
    device: i64,
}

/// Between two rows: buffers are set, ranks meet.
const BETWEEN_S: f64 = 0.02;

pub fn of_world(world: &Table, local: u32, noise: &mut Noise) -> Vec<Kernel> {
    let collective = name_of(world.options.op);
    let gpus = world.options.gpus.max(1);
    // One process on one GPU sees that one alone; one that drives several numbers them.
    let devices = if gpus == 1 { vec![i64::from(local)] } else { (0..i64::from(gpus)).collect() };
    let mut kernels = Vec::new();
    let mut now_ns = (FIRST_KERNEL_S * 1e9) as i64;
    for row in &world.rows {
        for half_us in [row.out_us, row.in_us] {
            if world.options.check {
                run(&mut kernels, &devices, "prepareInput2", &mut now_ns, check_us(row.bytes));
            }
            for _ in 0..world.options.warmup + world.options.iterations {
                // The mean over the iterations is what the row prints; a few are much slower than most.
                run(&mut kernels, &devices, collective, &mut now_ns, half_us * noise.factor(0.05));
            }
            if world.options.check {
                run(&mut kernels, &devices, "verifyPrepared", &mut now_ns, check_us(row.bytes));
            }
        }
        now_ns += (BETWEEN_S * 1e9) as i64;
    }
    kernels
}

fn run(kernels: &mut Vec<Kernel>, devices: &[i64], name: &'static str, now_ns: &mut i64, us: f64) {
    let length = ((us * 1e3) as i64).max(1);
    for device in devices {
        kernels.push(Kernel { name, start_ns: *now_ns, end_ns: *now_ns + length, device: *device });
    }
    *now_ns += length + 2_000;
}

/// Reading a buffer once at the pace of a GPU's own memory.
fn check_us(bytes: u64) -> f64 {
    3.0 + bytes as f64 / 1.5e6
}

/// NCCL compiles few kernels and names them for their first member: the name tells neither algorithm nor protocol.
fn name_of(op: Op) -> &'static str {
    match op {
        Op::AllReduce => "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        Op::AllGather => "ncclDevKernel_AllGather_RING_LL",
        Op::ReduceScatter => "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
        Op::Broadcast => "ncclDevKernel_Broadcast_RING_LL",
        Op::Reduce => "ncclDevKernel_Reduce_Sum_f32_RING_LL",
        _ => "ncclDevKernel_SendRecv",
    }
}

/// The strings of an export, and the rows that refer to them.
pub fn named(kernels: Vec<Kernel>) -> (Vec<(i64, String)>, Vec<KernelRow>) {
    let mut ids: BTreeMap<&'static str, i64> = BTreeMap::new();
    for kernel in &kernels {
        let next = ids.len() as i64 + 1;
        ids.entry(kernel.name).or_insert(next);
    }
    let mut rows = Vec::with_capacity(kernels.len());
    for (at, kernel) in kernels.iter().enumerate() {
        let id = ids.get(kernel.name).copied().unwrap_or_default();
        rows.push(KernelRow {
            start: kernel.start_ns,
            end: kernel.end_ns,
            device_id: kernel.device,
            context_id: 1,
            stream_id: 7,
            correlation_id: Some(at as i64 + 1),
            global_pid: Some(4242 << 24),
            short_name: id,
            demangled_name: id,
        });
    }
    (ids.into_iter().map(|(name, id)| (id, name.to_owned())).collect(), rows)
}
