//! What each kind of line says, in each version that has it: what is written and read again is the same.

use super::super::call::{self, Call, OPERATIONS};
use super::super::choice::{By, Choice};
use super::super::graph::{Connection, Direction, Edge, Tree};
use super::super::line::{self, Said, Unread};
use super::super::setup::{Members, STAGES, Setup, Timings};
use super::super::tokens;
use crate::nccl_prefix::Level;
use proptest::prelude::*;
use proptest::sample::select;

/// The minor number of NCCL 2.
type Version = u32;

fn pointer(at: u64) -> String {
    if at == 0 { "(nil)".to_owned() } else { format!("0x{at:x}") }
}

fn ranks(ranks: &[i64]) -> String {
    ranks.iter().map(i64::to_string).collect::<Vec<_>>().join("/")
}

fn edge(edge: &Edge, arrow: &str) -> String {
    format!("{}{arrow}{}{arrow}{}", ranks(&edge.before), edge.me, ranks(&edge.behind))
}

fn trees(trees: &[Tree]) -> String {
    let one = |tree: &Tree| {
        let halves: Vec<String> = tree.halves.iter().map(|half| edge(half, "->")).collect();
        format!("[{}] {}", tree.channel, halves.join("|"))
    };
    trees.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// As the version writes it.
fn render(said: &Said, version: Version) -> String {
    match said {
        Said::Call(call) => {
            let count =
                if version <= 21 { call.count.cast_signed().to_string() } else { call.count.to_string() };
            format!(
                "{}: opCount {:x} sendbuff {} recvbuff {} count {count} datatype {} op {} root {} comm {} [nranks={}] stream {}",
                call.operation.name(),
                call.op_count,
                pointer(call.send_buffer),
                pointer(call.receive_buffer),
                call.datatype,
                call.redop,
                call.root,
                pointer(call.comm),
                call.nranks,
                pointer(call.stream)
            )
        }
        Said::Version { nccl, cuda } => {
            format!("NCCL version {nccl}{}", cuda.map_or_else(String::new, |cuda| format!("+cuda{cuda}")))
        }
        Said::Driver(driver) => format!("cudaDriverVersion {driver}"),
        Said::Setup(it) => {
            let mut text = String::new();
            if version >= 29 && it.stage == super::super::setup::Stage::InitStart {
                text += &format!("[Rank {}] ", it.rank);
            }
            if let Some(function) = it.function {
                text += &format!("{function} ");
            }
            text += &format!("comm {} rank {} nranks {}", pointer(it.comm), it.rank, it.nranks);
            let mut field = |label: &str, value: Option<String>| {
                if let Some(value) = value {
                    text += &format!(" {label} {value}");
                }
            };
            field("cudaDev", it.cuda_device.map(|it| it.to_string()));
            field("nvmlDev", it.nvml_device.map(|it| it.to_string()));
            field("busId", it.bus_id.map(str::to_owned));
            field("parent", it.parent.map(pointer));
            field("color", it.color.map(|it| it.to_string()));
            field("key", it.key.map(|it| it.to_string()));
            field("commId", it.comm_id.map(|id| format!("0x{id:x}")));
            let stage = STAGES.iter().find(|(stage, _)| *stage == it.stage).expect("a stage").1;
            format!("{text} - {stage}")
        }
        Said::Timings(it) => {
            let function = it.function.map_or_else(String::new, |function| format!(" - {function}"));
            let parts: Vec<String> = it.parts.iter().map(|(name, s)| format!("{name} {s:.2}")).collect();
            format!(
                "Init timings{function}: rank {} nranks {} total {:.2} ({})",
                it.rank,
                it.nranks,
                it.total,
                parts.join(", ")
            )
        }
        Said::Members(it) => format!(
            "comm 0x{:x} rank {} nRanks {} nNodes {} localRanks {} localRank 0 MNNVL 0",
            it.comm, it.rank, it.nranks, it.nodes, it.local_ranks
        ),
        Said::Bootstrap(by) if version <= 23 => format!("Bootstrap : Using {by}"),
        Said::Bootstrap(by) => format!("Bootstrap: Using {by}"),
        Said::Network(name) => format!("Using network {name}"),
        Said::Provider { name, fabric, nics } => {
            let nics = nics.map_or_else(String::new, |nics| format!(" (found {nics} nics)"));
            match fabric {
                Some(fabric) => format!("NET/OFI Selected provider is {name}, fabric is {fabric}{nics}"),
                None => format!("NET/OFI Selected Provider is {name}{nics}"),
            }
        }
        Said::Cards { by, nics } => {
            let cards: Vec<String> = (0..*nics).map(|at| format!("[{at}]mlx5_{at}:1/RoCE")).collect();
            format!("{by} : Using {} [RO]; OOB eth0:10.0.0.1<0>", cards.join(" "))
        }
        Said::Plugin(version) => format!("NET/OFI Initializing aws-ofi-nccl {version}"),
        Said::Libfabric(version) => format!("NET/OFI Using Libfabric version {version}"),
        Said::Order { channel, of, ranks } => {
            let ranks: Vec<String> = ranks.iter().map(|rank| format!("{rank:4}")).collect();
            let of = of.map(|of| format!("/{of:02}")).unwrap_or_default();
            format!("Channel {channel:02}{of} :{}", ranks.concat())
        }
        Said::Ring { channel, edge: it } => format!("Ring {channel:02} : {}", edge(it, " -> ")),
        Said::Tree { channel, edge: it } => format!("Tree {channel} : {}", edge(it, " -> ")),
        Said::Trees(it) => format!("Trees {}", trees(it)),
        Said::NvlsTrees(it) => format!("NVLS Trees : {}", trees(it)),
        Said::Connection(it) => {
            let word = if version < 7 { "Ring" } else { "Channel" };
            let index = it.index.map_or_else(String::new, |index| format!("/{index}"));
            let direction = match it.direction {
                Some(Direction::Send) => " [send]",
                Some(Direction::Receive) => " [receive]",
                None => "",
            };
            format!(
                "{word} {:02}{index} : {}[{}] -> {}[{}]{direction} via {}",
                it.channel, it.from, it.from_device, it.to, it.to_device, it.via
            )
        }
        Said::Connected(what) if version >= 24 && *what == "all rings" => {
            "Connected all rings, use ring PXN 0 GDR 1".to_owned()
        }
        Said::Connected(what) => format!("Connected {what}"),
        Said::Channels { coll, collnet, nvls, p2p, per_peer } => {
            let collnet = collnet.map_or_else(String::new, |it| format!("{it} collnet channels, "));
            let nvls = nvls.map_or_else(String::new, |it| format!("{it} nvls channels, "));
            format!(
                "{coll} coll channels, {collnet}{nvls}{p2p} p2p channels, {per_peer} p2p channels per peer"
            )
        }
        Said::Choice(it) => {
            let kind = it.kind.map_or_else(String::new, |kind| format!(" [{kind}]"));
            let operation = it.operation.map_or_else(String::new, |name| format!("{name}{kind}: "));
            let by = match it.by {
                By::Algorithm { algorithm, protocol } => format!("Algo {algorithm} proto {protocol}"),
                By::Kernel(kernel) => format!("Kernel {kernel}"),
            };
            format!("{operation}{} Bytes -> {by} {}", it.bytes, it.rest)
        }
        Said::Nvls { available, device } => {
            let not = if *available { "" } else { "not " };
            format!("NVLS multicast support is {not}available on dev {device}")
        }
        Said::Variable { name, value } => format!("{name} set by environment to {value}."),
        Said::Known => "threadThresholds 8/8/64 | 16/8/64 | 512 | 512".to_owned(),
    }
}

fn call() -> impl Strategy<Value = Call> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), 0..20_u64);
    let others = (0..9_u64, 0..5000_u64, any::<u64>(), 1..5000_u64, any::<u64>());
    (select(OPERATIONS.to_vec()), numbers, others).prop_map(|(operation, numbers, others)| {
        let (op_count, send_buffer, receive_buffer, count, datatype) = numbers;
        let (redop, root, comm, nranks, stream) = others;
        Call {
            operation,
            op_count,
            send_buffer,
            receive_buffer,
            count,
            datatype,
            redop,
            root,
            comm,
            nranks,
            stream,
        }
    })
}

fn setup(version: Version) -> impl Strategy<Value = Setup<'static>> {
    let new = version >= 18;
    let split = (21..=28).contains(&version);
    let functions = vec!["ncclCommInitRank", "ncclCommInitRankConfig", "ncclCommSplit"];
    let who = (any::<u64>(), 0..9000_u64, 1..9000_u64, 0..8_u64, any::<u64>());
    let child = (any::<u64>(), -1..9_i64, -1..9_i64);
    let stages: Vec<_> = STAGES.iter().map(|(stage, _)| *stage).collect();
    (select(stages), select(functions), select(vec!["1a000", "10001c0", "0"]), who, child).prop_map(
        move |(stage, function, bus, (comm, rank, nranks, device, id), (parent, color, key))| Setup {
            stage,
            function: (version >= 21).then_some(function),
            comm,
            rank,
            nranks,
            cuda_device: Some(device),
            nvml_device: new.then_some(device),
            bus_id: Some(bus),
            comm_id: new.then_some(id),
            parent: split.then_some(parent),
            color: split.then_some(color),
            key: split.then_some(key),
        },
    )
}

fn an_edge() -> impl Strategy<Value = Edge> {
    let ranks = || proptest::collection::vec(-1..5000_i64, 1..4);
    (ranks(), 0..5000_i64, ranks()).prop_map(|(before, me, behind)| Edge { before, me, behind })
}

fn some_trees(halves: usize) -> impl Strategy<Value = Vec<Tree>> {
    let tree = (0..32_u64, proptest::collection::vec(an_edge(), 1..=halves));
    proptest::collection::vec(tree.prop_map(|(channel, halves)| Tree { channel, halves }), 1..6)
}

fn a_connection(version: Version) -> impl Strategy<Value = Connection<'static>> {
    let via = vec![
        "NET/AWS Libfabric/0/GDRDMA",
        "NET/AWS Libfabric/3/GDRDMA/Shared",
        "NET/IB/1(2)/GDRDMA",
        "NET/Socket/0",
        "P2P/IPC",
        "P2P/CUMEM/read",
        "P2P/direct pointer",
        "P2P/indirect/5[a0]",
        "SHM/direct/direct",
    ];
    let ends = (0..9000_u64, 0..9000_u64, select(vec!["1a000", "0", "7"]), select(vec!["b000", "3"]));
    let direction = select(vec![None, Some(Direction::Send), Some(Direction::Receive)]);
    (0..64_u64, 0..4_u64, ends, direction, select(via)).prop_map(
        move |(channel, index, (from, to, from_device, to_device), direction, via)| Connection {
            channel,
            index: (version >= 13).then_some(index),
            from,
            from_device,
            to,
            to_device,
            direction,
            via,
        },
    )
}

fn a_choice(version: Version) -> impl Strategy<Value = Choice<'static>> {
    let kinds = if version >= 27 { vec![None, Some("Symmetric"), Some("Copy Engine")] } else { vec![None] };
    let by = match version {
        ..=23 => vec![By::Algorithm { algorithm: "1", protocol: "2" }],
        24..=26 => vec![By::Algorithm { algorithm: "NVLS_TREE", protocol: "SIMPLE" }],
        _ => vec![By::Algorithm { algorithm: "PAT", protocol: "LL128" }, By::Kernel("AllGather_STMC")],
    };
    let rest = if version <= 23 { "time 12.500000" } else { "channel{Lo..Hi}={0..15}" };
    (any::<u64>(), select(vec!["AllReduce", "AllGather"]), select(kinds), select(by)).prop_map(
        move |(bytes, operation, kind, by)| Choice {
            operation: (version >= 23).then_some(operation),
            kind,
            bytes,
            by,
            rest,
        },
    )
}

fn timings(version: Version) -> impl Strategy<Value = Timings<'static>> {
    let s = || (0..100_000_u32).prop_map(|hundredths| f64::from(hundredths) / 100.0);
    (0..9000_u64, 1..9000_u64, s(), s(), s()).prop_map(move |(rank, nranks, total, kernels, rest)| Timings {
        function: (version >= 23).then_some("ncclCommInitRank"),
        rank,
        nranks,
        total,
        parts: vec![("kernels", kernels), ("bootstrap", 0.25), ("rest", rest)],
    })
}

/// A line that the version may write.
fn said(version: Version) -> BoxedStrategy<Said<'static>> {
    let (collnet, nvls) = (version >= 20, version >= 17);
    let channels = (0..64_u64, 0..64_u64, 0..64_u64, 0..64_u64, 0..64_u64).prop_map(
        move |(coll, a, b, p2p, per_peer)| Said::Channels {
            coll,
            collnet: collnet.then_some(a),
            nvls: nvls.then_some(b),
            p2p,
            per_peer,
        },
    );
    let members = (any::<u64>(), 0..99_u64, 1..99_u64, 1..9_u64, 1..9_u64).prop_map(
        |(comm, rank, nranks, nodes, local_ranks)| {
            Said::Members(Members { comm, rank, nranks, nodes, local_ranks })
        },
    );
    let provider = (select(vec![None, Some("efa"), Some("efa-direct")]), proptest::option::of(0..33_u64))
        .prop_map(|(fabric, nics)| Said::Provider { name: "efa", fabric, nics });
    let order = (0..32_u64, 1..33_u64, proptest::collection::vec(0..999_u64, 1..40)).prop_map(
        move |(channel, of, ranks)| Said::Order { channel, of: (version >= 5).then_some(of), ranks },
    );
    let fixed = select(vec![
        Said::Version { nccl: "2.18.3", cuda: Some("12.2") },
        Said::Version { nccl: "2.30.7", cuda: None },
        Said::Bootstrap("eth0:10.0.0.1<0>"),
        Said::Network("AWS Libfabric"),
        Said::Network("IB"),
        Said::Plugin("1.14.0"),
        Said::Libfabric("1.22"),
        Said::Connected("all rings"),
        Said::Connected("all trees"),
        Said::Connected("NVLS tree"),
        Said::Variable { name: "NCCL_PROTO", value: "simple" },
        Said::Cards { by: "NET/IB", nics: 8 },
        Said::Cards { by: "NET/Socket", nics: 1 },
        Said::Known,
    ]);
    let wired = prop_oneof![
        (0..32_u64, an_edge()).prop_map(|(channel, edge)| Said::Ring { channel, edge }),
        (0..32_u64, an_edge()).prop_map(|(channel, edge)| Said::Tree { channel, edge }),
        some_trees(if version <= 7 { 2 } else { 1 }).prop_map(Said::Trees),
        some_trees(1).prop_map(Said::NvlsTrees),
        a_connection(version).prop_map(Said::Connection),
        order,
    ];
    prop_oneof![
        call().prop_map(Said::Call),
        setup(version).prop_map(Said::Setup),
        wired,
        channels,
        members,
        provider,
        fixed,
        a_choice(version).prop_map(Said::Choice),
        timings(version).prop_map(Said::Timings),
        any::<u64>().prop_map(Said::Driver),
        (any::<bool>(), 0..8_u64).prop_map(|(available, device)| Said::Nvls { available, device }),
    ]
    .boxed()
}

proptest! {
    #[test]
    fn what_a_version_writes_is_read_again((version, said) in (4..=30_u32).prop_flat_map(|version| (Just(version), said(version)))) {
        let text = render(&said, version);
        prop_assert_eq!(line::parse(&text), Ok(said), "2.{}: {}", version, &text);
    }

    /// With whatever stands before it.
    #[test]
    fn a_line_is_separated_from_its_prefix(
        label in select(vec!["", "0: ", "12: ", "[1,0]<stdout>:", "[rank3]: ", "0:"]),
        stamp in select(vec!["", "[2025-01-31 12:00:00] ", "[2025-01-31 12:00:00.250] "]),
        host in select(vec!["a", "p5-dy-gpu-3", "10-0-0-1"]),
        (pid, tid, device) in (0..99_999_u64, 0..99_999_u64, 0..8_u64),
    ) {
        let text = format!("{label}{stamp}{host}:{pid}:{tid} [{device}] NCCL INFO Using network IB");
        let it = line::split(&text).expect("a line of NCCL");
        prop_assert_eq!((it.host, it.pid, it.device, it.text), (host, pid, Some(device), "Using network IB"), "{}", &text);
        prop_assert_eq!(it.stamp.is_some(), !stamp.is_empty());
    }

    /// A whole call is read by one pass to the same numbers, and what that pass does not take is left to the other.
    #[test]
    fn the_quick_way_reads_what_the_thorough_one_does(call in call(), version in 4..=30_u32, at in 0..300_usize, byte in any::<u8>()) {
        let text = render(&Said::Call(call), version);
        let is_short = |number: u64| number < 1_000_000_000_000_000_000;
        let quick = call::quick(&text);
        prop_assert!(quick == Some(call) || (quick.is_none() && !is_short(call.count)), "{}", &text);
        let mut bytes = text.into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes)
            && let Some(quick) = call::quick(&text)
        {
            prop_assert_eq!(call::parse(&text), Some(Ok(quick)), "{}", &text);
        }
    }

    /// No text makes the reader stumble.
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}", at in 0..400_usize, said in said(27)) {
        let _ = line::split(&text);
        let _ = line::parse(&text);
        let cut: String = render(&said, 27).chars().take(at).collect();
        let _ = line::parse(&cut);
    }
}

#[test]
fn a_call_of_which_anything_is_missing_is_garbled() {
    let whole = "AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x5";
    assert!(matches!(line::parse(whole), Ok(Said::Call(_))));
    let begin = whole.find(" opCount").expect("a field") + " opCount".len();
    let end = whole.find("0x5 [nranks").expect("a field");
    for at in begin..end {
        let cut = &whole[..at];
        assert!(matches!(line::parse(cut), Err(Unread::Call(_))), "{cut}");
    }
    for (right, wrong) in [
        ("AllReduce:", "AllReduce;"),
        ("count 4", "count 4.5"),
        ("count 4", "count +4"),
        ("opCount 0", "opCount 0x0"),
        ("0x2", "2"),
    ] {
        let line = whole.replacen(right, wrong, 1);
        assert!(matches!(line::parse(&line), Err(Unread::Call(_))), "{line}");
    }
}

#[test]
fn a_call_with_fields_that_are_not_known_is_read_all_the_same() {
    let whole = "AllReduce: opCount 1f sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x5";
    let more = whole.replacen("count 4", "acc (nil) count 4", 1) + " task 0 globalrank 3";
    let more = more.replacen("root 0", "flags 12 root 0", 1);
    assert_eq!(line::parse(&more), line::parse(whole));
    // What another line broke into is none, and neither is a field of which only the name is there.
    for broken in ["n1:12 NCCL count 4", "acc count 4", "acc 0x1 flags 2 count 4"] {
        let line = whole.replacen("count 4", broken, 1);
        assert!(matches!(line::parse(&line), Err(Unread::Call(_))), "{line}");
    }
}

#[test]
fn a_warning_of_which_only_the_place_is_left_is_one() {
    for text in ["net.cc:6 NCCL WARN no memory", "nccl_net_ofi_init:45 NCCL WARN no memory"] {
        let it = line::split(text).expect("a line of NCCL");
        assert_eq!((it.level, it.host, it.text), (Level::Warn, "", "no memory"), "{text}");
    }
}

#[test]
fn prose_that_speaks_of_nccl_is_no_line_of_it() {
    for text in [
        "grep -a \"NCCL INFO Broadcast\" main_log.txt",
        "see NCCL version 2.18",
        "export NCCL_DEBUG=INFO",
        "it says net.cc:6 NCCL WARN no memory",
        "net.cc NCCL WARN no memory",
    ] {
        assert_eq!(line::split(text), None, "{text}");
    }
}

#[test]
fn numbers_are_digits_and_nothing_else() {
    assert_eq!(
        (tokens::whole("18446744073709551615"), tokens::whole("18446744073709551616")),
        (Some(u64::MAX), None)
    );
    assert_eq!((tokens::whole(""), tokens::whole("+1"), tokens::whole("1x")), (None, None, None));
    assert_eq!((tokens::signed("-1"), tokens::signed("--1"), tokens::signed("7")), (Some(-1), None, Some(7)));
    assert_eq!(
        (tokens::pointer("(nil)"), tokens::pointer("0xff"), tokens::pointer("0x")),
        (Some(0), Some(255), None)
    );
    assert_eq!(
        (tokens::seconds("1.25"), tokens::seconds(".5"), tokens::seconds("1.2.3")),
        (Some(1.25), None, None)
    );
}
