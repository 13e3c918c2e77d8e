//! Payloads of each release with its own numbers and names, from their published layouts: as JSON, as bytes with the
//! tables that declare them, and as bytes alone.

use super::*;
use crate::tables::{
    NVTX_PAYLOAD_ENUM_ENTRIES, NVTX_PAYLOAD_ENUMS, NVTX_PAYLOAD_SCHEMA_ENTRIES, NVTX_PAYLOAD_SCHEMAS,
};
use crate::testing::Made;
use rusqlite::types::Value as Sql;

/// Numbers of layouts and enumerations begin here.
const FIRST: i64 = 1 << 24;
const DOMAIN: i64 = 1;

const COMMUNICATOR: u64 = 0x1122_3344_5566_7788;
const PARENT: u64 = 0x99aa_bbcc_ddee_ff00;
const MIB: u64 = 1 << 20;

/// A release and what it calls its enumeration of reductions, without the first number.
struct Release {
    name: &'static str,
    reductions: i64,
    /// Since 2.25.
    is_new: bool,
}

const fn release(name: &'static str, reductions: i64, is_new: bool) -> Release {
    Release { name, reductions, is_new }
}

const RELEASES: [Release; 15] = [
    release("2.16", 11, false),
    release("2.17", 11, false),
    release("2.18", 11, false),
    release("2.19", 11, false),
    release("2.20", 11, false),
    release("2.21", 11, false),
    release("2.22", 11, false),
    release("2.23", 14, false),
    release("2.24", 14, false),
    release("2.25", 14, true),
    release("2.26", 15, true),
    release("2.27", 16, true),
    release("2.28.3", 19, true),
    release("2.28.7", 20, true),
    release("2.30", 24, true),
];

/// Function, number of its layout, first release, the fields with their types, the bytes, the JSON, what it says.
struct Golden {
    function: &'static str,
    number: i64,
    since: &'static str,
    fields: &'static [(&'static str, i64)],
    bytes: &'static str,
    json: &'static str,
    says: fn() -> Payload,
}

const U64: i64 = 18;
const SIZE: i64 = 22;
const INT: i64 = 5;
/// Stands for the enumeration of reductions, whatever number it has.
const OP: i64 = -1;

const SIZES: (&str, i64) = ("Message size [bytes]", SIZE);
const COMM: (&str, i64) = ("NCCL communicator ID", U64);
const ROOT: (&str, i64) = ("Root", INT);
const PEER: (&str, i64) = ("Peer rank", INT);
const REDUCTION: (&str, i64) = ("Reduction operation", OP);
const RANK: (&str, i64) = ("Rank", INT);
const RANKS: (&str, i64) = ("No. of ranks", INT);
const DEVICE: (&str, i64) = ("CUDA device", INT);

fn sized() -> Payload {
    Payload { bytes: Some(MIB), ..Payload::default() }
}

fn with_communicator() -> Payload {
    Payload { communicator: Some(COMMUNICATOR), ..sized() }
}

fn made() -> Payload {
    Payload { ranks: Some(16), rank: Some(9), device: Some(1), ..Payload::default() }
}

#[rustfmt::skip]
const OLD: &[Golden] = &[
    Golden { function: "ncclCommInitRank", number: 0, since: "2.16", fields: &[RANK, RANKS, DEVICE],
        bytes: "09000000 10000000 01000000",
        json: r#"{"Rank":9,"No. of ranks":16,"CUDA device":1}"#, says: made },
    Golden { function: "ncclCommInitAll", number: 1, since: "2.16", fields: &[("No. of devices", INT)],
        bytes: "08000000",
        json: r#"{"No. of devices":8}"#, says: || Payload { devices: Some(8), ..Payload::default() } },
    Golden { function: "ncclAllGather", number: 4, since: "2.16", fields: &[SIZES],
        bytes: "0000100000000000",
        json: r#"{"Message size [bytes]":1048576}"#, says: sized },
    Golden { function: "ncclAllReduce", number: 5, since: "2.16", fields: &[SIZES, REDUCTION],
        bytes: "0000100000000000 02000000 00000000",
        json: r#"{"Message size [bytes]":1048576,"Reduction operation":"Max"}"#,
        says: || Payload { reduction: Some(Reduction::Max), ..sized() } },
    Golden { function: "ncclBroadcast", number: 6, since: "2.16", fields: &[("Bytes", SIZE), ROOT],
        bytes: "0000100000000000 03000000 00000000",
        json: r#"{"Bytes":1048576,"Root":3}"#, says: || Payload { root: Some(3), ..sized() } },
    Golden { function: "ncclReduceScatter", number: 7, since: "2.16", fields: &[SIZES, REDUCTION],
        bytes: "0000100000000000 00000000 00000000",
        json: r#"{"Message size [bytes]":1048576,"Reduction operation":"Sum"}"#,
        says: || Payload { reduction: Some(Reduction::Sum), ..sized() } },
    Golden { function: "ncclReduce", number: 8, since: "2.16", fields: &[SIZES, ROOT, REDUCTION],
        bytes: "0000100000000000 03000000 04000000",
        json: r#"{"Message size [bytes]":1048576,"Root":3,"Reduction operation":"Avg"}"#,
        says: || Payload { root: Some(3), reduction: Some(Reduction::Avg), ..sized() } },
    Golden { function: "ncclSend", number: 9, since: "2.16", fields: &[("Bytes", SIZE), PEER],
        bytes: "0000100000000000 05000000 00000000",
        json: r#"{"Bytes":1048576,"Peer rank":5}"#, says: || Payload { peer: Some(5), ..sized() } },
    Golden { function: "ncclRecv", number: 10, since: "2.16", fields: &[("Bytes", SIZE), PEER],
        bytes: "0000100000000000 05000000 00000000",
        json: r#"{"Bytes":1048576,"Peer rank":5}"#, says: || Payload { peer: Some(5), ..sized() } },
    Golden { function: "ncclCommSplit", number: 13, since: "2.23",
        fields: &[RANK, RANKS, DEVICE, ("color", INT), ("key", INT)],
        bytes: "09000000 10000000 01000000 07000000 06000000",
        json: r#"{"Rank":9,"No. of ranks":16,"CUDA device":1,"color":7,"key":6}"#, says: made },
];

#[rustfmt::skip]
const NEW: &[Golden] = &[
    Golden { function: "ncclCommInitRank", number: 0, since: "2.25", fields: &[COMM, RANKS, RANK, DEVICE],
        bytes: "8877665544332211 10000000 09000000 01000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"No. of ranks":16,"Rank":9,"CUDA device":1}"#,
        says: || Payload { communicator: Some(COMMUNICATOR), ..made() } },
    Golden { function: "ncclCommInitAll", number: 1, since: "2.25", fields: &[COMM, ("No. of devices", INT)],
        bytes: "8877665544332211 08000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"No. of devices":8}"#,
        says: || Payload { communicator: Some(COMMUNICATOR), devices: Some(8), ..Payload::default() } },
    Golden { function: "ncclAllGather", number: 4, since: "2.25", fields: &[COMM, SIZES],
        bytes: "8877665544332211 0000100000000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576}"#,
        says: with_communicator },
    Golden { function: "ncclAllReduce", number: 5, since: "2.25", fields: &[COMM, SIZES, REDUCTION],
        bytes: "8877665544332211 0000100000000000 02000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576,"Reduction operation":"Max"}"#,
        says: || Payload { reduction: Some(Reduction::Max), ..with_communicator() } },
    Golden { function: "ncclBroadcast", number: 6, since: "2.25", fields: &[COMM, SIZES, ROOT],
        bytes: "8877665544332211 0000100000000000 03000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576,"Root":3}"#,
        says: || Payload { root: Some(3), ..with_communicator() } },
    Golden { function: "ncclReduceScatter", number: 7, since: "2.25", fields: &[COMM, SIZES, REDUCTION],
        bytes: "8877665544332211 0000100000000000 05000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576,"Reduction operation":5}"#,
        says: || Payload { reduction: Some(Reduction::Own(5)), ..with_communicator() } },
    Golden { function: "ncclReduce", number: 8, since: "2.25", fields: &[COMM, SIZES, ROOT, REDUCTION],
        bytes: "8877665544332211 0000100000000000 03000000 01000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576,"Root":3,"Reduction operation":"Product"}"#,
        says: || Payload { root: Some(3), reduction: Some(Reduction::Product), ..with_communicator() } },
    Golden { function: "ncclSend", number: 9, since: "2.25", fields: &[COMM, SIZES, PEER],
        bytes: "8877665544332211 0000100000000000 05000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576,"Peer rank":5}"#,
        says: || Payload { peer: Some(5), ..with_communicator() } },
    Golden { function: "ncclRecv", number: 10, since: "2.25", fields: &[COMM, SIZES, PEER],
        bytes: "8877665544332211 0000100000000000 05000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576,"Peer rank":5}"#,
        says: || Payload { peer: Some(5), ..with_communicator() } },
    Golden { function: "ncclCommSplit", number: 13, since: "2.25",
        fields: &[COMM, ("Parent NCCL communicator ID", U64), RANKS, RANK, DEVICE, ("Color", INT), ("Key", INT)],
        bytes: "8877665544332211 00ffeeddccbbaa99 10000000 09000000 01000000 07000000 06000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Parent NCCL communicator ID":11072869122414935808,"No. of ranks":16,"Rank":9,"CUDA device":1,"Color":7,"Key":6}"#,
        says: || Payload { communicator: Some(COMMUNICATOR), parent: Some(PARENT), ..made() } },
    Golden { function: "ncclCommFinalize", number: 14, since: "2.25", fields: &[COMM],
        bytes: "8877665544332211",
        json: r#"{"NCCL communicator ID":1234605616436508552}"#,
        says: || Payload { communicator: Some(COMMUNICATOR), ..Payload::default() } },
    Golden { function: "ncclCommShrink", number: 15, since: "2.27",
        fields: &[COMM, RANKS, RANK, DEVICE, ("num_exclude", INT)],
        bytes: "8877665544332211 10000000 09000000 01000000 02000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"No. of ranks":16,"Rank":9,"CUDA device":1,"num_exclude":2}"#,
        says: || Payload { communicator: Some(COMMUNICATOR), ..made() } },
    Golden { function: "ncclAlltoAll", number: 16, since: "2.28.3", fields: &[COMM, SIZES],
        bytes: "8877665544332211 0000100000000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576}"#,
        says: with_communicator },
    Golden { function: "ncclGather", number: 17, since: "2.28.3", fields: &[COMM, SIZES, ROOT],
        bytes: "8877665544332211 0000100000000000 03000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576,"Root":3}"#,
        says: || Payload { root: Some(3), ..with_communicator() } },
    Golden { function: "ncclScatter", number: 18, since: "2.28.3", fields: &[COMM, SIZES, ROOT],
        bytes: "8877665544332211 0000100000000000 03000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576,"Root":3}"#,
        says: || Payload { root: Some(3), ..with_communicator() } },
    Golden { function: "ncclCommGrow", number: 20, since: "2.30",
        fields: &[COMM, ("Parent NCCL communicator ID", U64), RANKS, RANK, DEVICE],
        bytes: "8877665544332211 00ffeeddccbbaa99 10000000 09000000 01000000 00000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Parent NCCL communicator ID":11072869122414935808,"No. of ranks":16,"Rank":9,"CUDA device":1}"#,
        says: || Payload { communicator: Some(COMMUNICATOR), parent: Some(PARENT), ..made() } },
    Golden { function: "ncclPutSignal", number: 21, since: "2.30",
        fields: &[COMM, SIZES, PEER, ("Context ID", INT)],
        bytes: "8877665544332211 0000100000000000 05000000 01000000",
        json: r#"{"NCCL communicator ID":1234605616436508552,"Message size [bytes]":1048576,"Peer rank":5,"Context ID":1}"#,
        says: || Payload { peer: Some(5), ..with_communicator() } },
];

fn payloads_written_by(release: &Release) -> Vec<&'static Golden> {
    let at = |name: &str| RELEASES.iter().position(|release| release.name == name).expect("a release");
    let all = if release.is_new { NEW } else { OLD };
    all.iter().filter(|golden| at(golden.since) <= at(release.name)).collect()
}

fn bytes_of(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b' ').collect();
    let pair =
        |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits");
    digits.chunks(2).map(pair).collect()
}

/// With its head; `last` is where the payload begins, or where it ends.
fn blob(number: i64, payload: &[u8], last: u64) -> Vec<u8> {
    let head = [DOMAIN as u64, (FIRST + number) as u64, payload.len() as u64, last];
    head.iter().flat_map(|word| word.to_le_bytes()).chain(payload.iter().copied()).collect()
}

fn put(made: &Made, spec: &crate::tables::TableSpec, numbers: &[(&str, i64)], name: &str) {
    let mut row: Vec<(&str, Sql)> = numbers.iter().map(|(name, value)| (*name, (*value).into())).collect();
    row.push(("name", name.to_owned().into()));
    made.put(spec, &row);
}

/// The tables of one process that runs this release.
fn declare(made: &Made, release: &Release) {
    for golden in payloads_written_by(release) {
        let id = [("domainId", DOMAIN), ("schemaId", FIRST + golden.number)];
        let size = bytes_of(golden.bytes).len() as i64;
        put(made, &NVTX_PAYLOAD_SCHEMAS, &[id[0], id[1], ("payloadSize", size)], golden.function);
        let mut offset = 0;
        for (index, (name, kind)) in golden.fields.iter().enumerate() {
            let wide = if [U64, SIZE].contains(kind) { 8 } else { 4 };
            let kind = if *kind == OP { FIRST + release.reductions } else { *kind };
            let mut numbers = vec![id[0], id[1], ("idx", index as i64), ("type", kind)];
            if index > 0 {
                numbers.push(("offset", offset));
            }
            put(made, &NVTX_PAYLOAD_SCHEMA_ENTRIES, &numbers, name);
            offset += wide;
        }
    }
    let id = [("domainId", DOMAIN), ("schemaId", FIRST + release.reductions)];
    put(made, &NVTX_PAYLOAD_ENUMS, &[id[0], id[1], ("size", 4)], "ncclRedOp_t");
    for (value, name) in ["Sum", "Product", "Max", "Min", "Avg"].iter().enumerate() {
        put(
            made,
            &NVTX_PAYLOAD_ENUM_ENTRIES,
            &[id[0], id[1], ("idx", value as i64), ("value", value as i64)],
            name,
        );
    }
}

#[test]
fn payloads_of_each_release_say_the_same_in_each_form() {
    for release in &RELEASES {
        let tables = Made::begin();
        declare(&tables, release);
        // A second process with the same release declares the same again.
        declare(&tables, release);
        let declared = Layouts::read(tables.trace().export()).expect("sound");
        let none = Layouts::default();
        for golden in payloads_written_by(release) {
            let expected = Some(Ok((golden.says)()));
            let payload = bytes_of(golden.bytes);
            let (begins, ends) =
                (blob(golden.number, &payload, 32), blob(golden.number, &payload, 32 + payload.len() as u64));
            let digits: String = begins.iter().map(|byte| format!("{byte:02X}")).collect();
            let escaped: String = begins.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            let what = format!("{} {}", release.name, golden.function);
            let of = |json, bytes, layouts: &Layouts| read(golden.function, json, bytes, layouts, DOMAIN);
            assert_eq!(of(Some(golden.json), None, &none), expected, "{what}");
            for bytes in [&begins, &ends, &digits.into_bytes(), &escaped.into_bytes()] {
                assert_eq!(of(None, Some(bytes.as_slice()), &declared), expected, "{what}");
                assert_eq!(of(None, Some(bytes.as_slice()), &none), expected, "{what}");
            }
        }
    }
}

#[test]
fn bytes_that_are_too_few_too_many_or_not_aligned_are_refused() {
    let release = RELEASES.iter().find(|release| release.name == "2.27").expect("there");
    let tables = Made::begin();
    declare(&tables, release);
    let (declared, none) = (Layouts::read(tables.trace().export()).expect("sound"), Layouts::default());
    for golden in payloads_written_by(release) {
        let payload = bytes_of(golden.bytes);
        let whole = blob(golden.number, &payload, 32);
        let refused = |bytes: &[u8], layouts: &Layouts| {
            let read = read(golden.function, None, Some(bytes), layouts, DOMAIN);
            read.expect("there").expect_err(golden.function)
        };
        for layouts in [&declared, &none] {
            for length in 1..whole.len() {
                assert_eq!(refused(&whole[..length], layouts), Refusal::Short, "{}", golden.function);
            }
            for more in [1, 8, 31] {
                let long = [whole.as_slice(), &vec![0; more]].concat();
                assert_eq!(refused(&long, layouts), Refusal::Long, "{}", golden.function);
            }
            // One byte before: all words are others.
            let shifted = [&[0], &whole[..whole.len() - 1]].concat();
            assert!(matches!(refused(&shifted, layouts), Refusal::Short | Refusal::Misaligned));
            let elsewhere = blob(golden.number, &payload, 36);
            assert_eq!(refused(&elsewhere, layouts), Refusal::Misaligned);
        }
        let smaller = blob(golden.number, &payload[..payload.len() - 4], 32);
        assert_eq!(refused(&smaller, &declared), Refusal::NotOfItsSize);
        assert_eq!(refused(&smaller, &none), Refusal::UnknownLayout);
    }
}

#[test]
fn a_layout_whose_fields_are_not_aligned_or_lie_outside_is_refused() {
    for (offset, why) in [(9, Refusal::Misaligned), (16, Refusal::NotOfItsSize)] {
        let tables = Made::begin();
        let id = [("domainId", DOMAIN), ("schemaId", FIRST + 4)];
        put(&tables, &NVTX_PAYLOAD_SCHEMAS, &[id[0], id[1], ("payloadSize", 16)], "AllGather");
        let first = [id[0], id[1], ("idx", 0), ("type", U64), ("offset", 0)];
        put(&tables, &NVTX_PAYLOAD_SCHEMA_ENTRIES, &first, COMM.0);
        let second = [id[0], id[1], ("idx", 1), ("type", SIZE), ("offset", offset)];
        put(&tables, &NVTX_PAYLOAD_SCHEMA_ENTRIES, &second, SIZES.0);
        let layouts = Layouts::read(tables.trace().export()).expect("sound");
        let read = read("ncclAllGather", None, Some(&blob(4, &[1; 16], 32)), &layouts, DOMAIN);
        assert_eq!(read, Some(Err(why)));
    }
}

#[test]
fn one_number_for_two_layouts_of_two_processes_goes_by_size_and_is_refused_where_that_is_equal() {
    let tables = Made::begin();
    for release in ["2.24", "2.27"] {
        declare(&tables, RELEASES.iter().find(|one| one.name == release).expect("there"));
    }
    let layouts = Layouts::read(tables.trace().export()).expect("sound");
    let both =
        [OLD, NEW].map(|all| all.iter().find(|golden| golden.function == "ncclAllReduce").expect("there"));
    for golden in both {
        let bytes = blob(5, &bytes_of(golden.bytes), 32);
        assert_eq!(read(golden.function, None, Some(&bytes), &layouts, DOMAIN), Some(Ok((golden.says)())));
    }
    let id = [("domainId", DOMAIN), ("schemaId", FIRST + 5)];
    put(&tables, &NVTX_PAYLOAD_SCHEMAS, &[id[0], id[1], ("payloadSize", 24)], "another");
    put(&tables, &NVTX_PAYLOAD_SCHEMA_ENTRIES, &[id[0], id[1], ("idx", 0), ("type", U64)], SIZES.0);
    let layouts = Layouts::read(tables.trace().export()).expect("sound");
    let bytes = blob(5, &bytes_of(both[1].bytes), 32);
    assert_eq!(read("ncclAllReduce", None, Some(&bytes), &layouts, DOMAIN), Some(Err(Refusal::TwoLayouts)));
}

#[test]
fn in_2_25_a_reduction_that_was_decoded_as_another_layout_is_alone_not_known() {
    let json = r#"{"NCCL communicator ID":7,"Message size [bytes]":64,"Reduction operation":{"NCCL communicator ID":2}}"#;
    let alone = read("ncclAllReduce", Some(json), None, &Layouts::default(), DOMAIN);
    let expected = Payload { communicator: Some(7), bytes: Some(64), ..Payload::default() };
    assert_eq!(alone, Some(Ok(expected)));
    // The bytes beside it say what it was.
    let fields = "0700000000000000 4000000000000000 02000000 00000000";
    let bytes = blob(5, &bytes_of(fields), 32);
    let both = read("ncclAllReduce", Some(json), Some(&bytes), &Layouts::default(), DOMAIN);
    assert_eq!(both, Some(Ok(Payload { reduction: Some(Reduction::Max), ..expected })));
}

#[test]
fn several_payloads_of_one_range_are_taken_together() {
    let (size, id) = (bytes_of("0000100000000000"), bytes_of("8877665544332211"));
    let bytes = [blob(4, &size, 32), blob(14, &id, 32)].concat();
    let read_one = read("ncclAllGather", None, Some(&bytes), &Layouts::default(), DOMAIN);
    assert_eq!(read_one, Some(Ok(sized())), "what the first one says stands");
    let json = r#"[{"Message size [bytes]":1048576},{"NCCL communicator ID":"0x1122334455667788"}]"#;
    let read_two = read("ncclAllGather", Some(json), None, &Layouts::default(), DOMAIN);
    assert_eq!(read_two, Some(Ok(with_communicator())));
}

#[test]
fn texts_that_are_no_payload_are_refused_and_ids_with_a_sign_are_the_same_ids() {
    let none = Layouts::default();
    for text in ["[1]", "1", "{", "{\"Message size [bytes]\":1e3x}"] {
        assert_eq!(read("ncclSend", Some(text), None, &none, DOMAIN), Some(Err(Refusal::NoJson)), "{text}");
    }
    for text in ["{\"Bytes\":-1}", "{\"Bytes\":1.5}", "{\"Bytes\":true}", "{\"Peer rank\":3000000000}"] {
        assert_eq!(read("ncclSend", Some(text), None, &none, DOMAIN), Some(Err(Refusal::Unfit)), "{text}");
    }
    assert_eq!(read("ncclSend", Some(" "), Some(&[]), &none, DOMAIN), None);
    let read = read("ncclSend", Some("{\"NCCL communicator ID\":-1,\"other\":[]}"), None, &none, DOMAIN);
    assert_eq!(read.and_then(Result::ok).and_then(|payload| payload.communicator), Some(u64::MAX));
}
