//! A job with known truth for tests: ranks on hosts whose clocks are off and drift, steps that jitter, collectives that
//! end everywhere when the last rank has come.

use super::{Collective, Compute, Evidence, Rank, Work};
use std::collections::BTreeMap;

const MS: i64 = 1_000_000;

/// What the job is like; times in nanoseconds.
#[derive(Clone)]
pub(super) struct Job {
    pub seed: u64,
    pub hosts: usize,
    pub per_host: usize,
    pub steps: usize,
    /// Clocks are off by up to this, either way.
    pub offset: i64,
    /// And drift by up to this, in parts per billion, either way.
    pub drift_ppb: i64,
    pub jitter: f64,
    /// Ranks, and by how much they are late in each step.
    pub late: Vec<(usize, i64)>,
    /// Whether what is late is kernels that last longer.
    pub by_kernels: bool,
    pub global: bool,
    pub across: bool,
    /// Whether what crosses hosts runs beside what is computed after it.
    pub overlap: bool,
}

impl Job {
    pub(super) fn seeded(seed: u64) -> Job {
        Job {
            seed,
            hosts: 8,
            per_host: 8,
            steps: 54,
            offset: 50 * MS,
            drift_ppb: 50_000,
            jitter: 0.2 * MS as f64,
            late: Vec::new(),
            by_kernels: false,
            global: true,
            across: true,
            overlap: false,
        }
    }

    pub(super) fn late(mut self, rank: usize, late: i64) -> Job {
        self.late.push((rank, late));
        self
    }

    pub(super) fn run(&self) -> Ran {
        let mut draw = Draw(self.seed);
        let ranks = self.hosts * self.per_host;
        let clocks: Vec<(i64, i64)> =
            (0..self.hosts).map(|_| (draw.within(self.offset), draw.within(self.drift_ppb))).collect();
        let mut ran = Ran {
            nodes: (0..self.hosts).map(|host| format!("node-{host}")).collect(),
            ranks: (0..ranks)
                .map(|rank| Own {
                    host: rank / self.per_host,
                    gpu: (rank % self.per_host) as i64,
                    // Each report has its own zero, some seconds before the first step.
                    zero: 1_760_000_000_000_000_000 + draw.within(3000 * MS),
                    clock: clocks[rank / self.per_host],
                    work: Vec::new(),
                    gemm: Vec::new(),
                })
                .collect(),
            sizes: BTreeMap::new(),
        };
        // True times, since a moment that all reports lie behind.
        let mut ready: Vec<i64> = (0..ranks).map(|_| 5000 * MS + draw.within(15 * MS)).collect();
        let all: Vec<usize> = (0..ranks).collect();
        let of_node = |host: usize| (host * self.per_host..(host + 1) * self.per_host).collect::<Vec<_>>();
        let of_place = |place: usize| (0..self.hosts).map(|h| h * self.per_host + place).collect::<Vec<_>>();
        for _ in 0..self.steps {
            for (rank, ready) in ready.iter_mut().enumerate() {
                let late: i64 = self.late.iter().filter(|(who, _)| *who == rank).map(|(_, late)| late).sum();
                let slow = if self.by_kernels { late } else { 0 };
                for _ in 0..4 {
                    ran.ranks[rank].gemm.push((180 * MS + slow / 4) as u32);
                }
                *ready += 720 * MS + late + (draw.normal() * self.jitter) as i64;
            }
            for host in 0..self.hosts {
                ran.collective(
                    &mut draw,
                    &mut ready,
                    &of_node(host),
                    100 + host as u64,
                    Collective::AllGather,
                    3 * MS,
                );
            }
            self.compute(&mut draw, &mut ready, 200 * MS);
            if self.across {
                for place in 0..self.per_host {
                    let ranks = of_place(place);
                    let before: Vec<i64> = ranks.iter().map(|rank| ready[*rank]).collect();
                    let transfer = if self.overlap { 150 * MS } else { 9 * MS };
                    let id = 200 + place as u64;
                    ran.collective(&mut draw, &mut ready, &ranks, id, Collective::ReduceScatter, transfer);
                    if self.overlap {
                        self.beside(&mut ran, &mut draw, &mut ready, &ranks, &before);
                    }
                }
            }
            if !self.overlap {
                self.compute(&mut draw, &mut ready, 190 * MS);
            }
            if self.global {
                ran.collective(&mut draw, &mut ready, &all, 1, Collective::AllReduce, 2 * MS);
            }
        }
        ran
    }

    /// Each rank computes from where the collective that it just came to began.
    fn beside(&self, ran: &mut Ran, draw: &mut Draw, ready: &mut [i64], ranks: &[usize], before: &[i64]) {
        for (rank, before) in ranks.iter().zip(before) {
            let ends = ready[*rank];
            let computed = before + 190 * MS + (draw.normal() * self.jitter / 20.0) as i64;
            if let Some(work) = ran.ranks[*rank].work.last_mut() {
                (work.stream, work.busy_ns) = (1, computed.min(ends) - before);
            }
            ready[*rank] = computed.max(ends);
        }
    }

    fn compute(&self, draw: &mut Draw, ready: &mut [i64], ns: i64) {
        for ready in ready {
            *ready += ns + (draw.normal() * self.jitter / 20.0) as i64;
        }
    }
}

/// What the reports of a job hold.
#[derive(Clone)]
pub(super) struct Ran {
    pub nodes: Vec<String>,
    pub ranks: Vec<Own>,
    pub sizes: BTreeMap<u64, u32>,
}

#[derive(Clone)]
pub(super) struct Own {
    pub host: usize,
    pub gpu: i64,
    pub zero: i64,
    /// Ahead of the truth by so much, and faster by so many parts of a billion.
    pub clock: (i64, i64),
    pub work: Vec<Work>,
    gemm: Vec<u32>,
}

impl Own {
    fn local(&self, time: i64) -> i64 {
        let base = 1_760_000_000_000_000_000;
        let drifted = (i128::from(time) * i128::from(self.clock.1) / 1_000_000_000) as i64;
        base + time + drifted + self.clock.0 - self.zero
    }
}

impl Ran {
    fn collective(
        &mut self,
        draw: &mut Draw,
        ready: &mut [i64],
        ranks: &[usize],
        communicator: u64,
        kind: Collective,
        transfer: i64,
    ) {
        self.sizes.insert(communicator, ranks.len() as u32);
        let last = ranks.iter().map(|rank| ready[*rank]).max().unwrap_or_default();
        for rank in ranks {
            let end = last + transfer + (draw.normal().abs() * 3000.0) as i64;
            let own = &mut self.ranks[*rank];
            let (start, local_end) = (own.local(ready[*rank]), own.local(end));
            own.work.push(Work {
                communicator: Some(communicator),
                stream: 0,
                kind,
                start,
                end: local_end,
                busy_ns: 0,
            });
            ready[*rank] = end;
        }
    }

    pub(super) fn computes(&self) -> Vec<Vec<Compute>> {
        let computes = self.ranks.iter().map(|own| {
            let (count, total_ns) = (own.gemm.len() as u64, own.gemm.iter().map(|ns| u64::from(*ns)).sum());
            vec![Compute { name: "gemm".into(), count, total_ns, first_ns: own.gemm.clone() }]
        });
        computes.collect()
    }

    pub(super) fn evidence<'a>(&'a self, computes: &'a [Vec<Compute>]) -> Evidence<'a> {
        let ranks = self.ranks.iter().enumerate().map(|(rank, own)| Rank {
            rank: rank as i64,
            node: &self.nodes[own.host],
            gpu: Some(own.gpu),
            clock: &self.nodes[own.host],
            zero: own.zero,
            lead_ns: None,
            work: &own.work,
            compute: computes.get(rank).map_or(&[], Vec::as_slice),
        });
        Evidence { ranks: ranks.collect(), sizes: self.sizes.clone(), by_order: false, ends_assumed: false }
    }
}

/// Numbers from a seed.
pub(super) struct Draw(pub u64);

impl Draw {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub(super) fn within(&mut self, most: i64) -> i64 {
        ((self.unit() * 2.0 - 1.0) * most as f64) as i64
    }

    pub(super) fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}
