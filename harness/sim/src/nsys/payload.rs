//! What NCCL writes beside the ranges of its calls, as releases from 2.25 on name and order it: as JSON, and as bytes
//! with the layouts that describe them. Sizes are those of one call's own count: of one rank, or of one peer, as
//! the function counts.

use std::fmt::Write;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Payload {
    pub communicator: u64,
    pub of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Rank { ranks: u32, rank: u32, device: i64 },
    Devices { devices: u32 },
    Sized { bytes: u64 },
    Reduced { bytes: u64, reduction: Reduction },
    Rooted { bytes: u64, root: u32 },
    ReducedRooted { bytes: u64, root: u32, reduction: Reduction },
    Peer { bytes: u64, peer: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reduction(i32);

/// The operations by their numbers; programs number their own from here on.
pub(super) const REDUCTIONS: [&str; 5] = ["Sum", "Product", "Max", "Min", "Avg"];

impl Reduction {
    /// As nccl-tests name them.
    pub(super) fn from_name(name: &str) -> Reduction {
        Reduction(match name {
            "prod" => 1,
            "max" => 2,
            "min" => 3,
            "avg" => 4,
            "mulsum" => 5,
            _ => 0,
        })
    }
}

/// One field of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Id(u64),
    Size(u64),
    Number(i32),
    Operation(Reduction),
}

/// Numbers of NCCL's own layouts begin here.
const FIRST_OWN: i64 = 1 << 24;
/// The layout of the operations' names, in releases 2.27.
pub(super) const OPERATIONS: i64 = FIRST_OWN + 16;

/// The layout of a function's payload.
pub(super) fn layout(function: &str) -> Option<i64> {
    let number = match function {
        "ncclCommInitRank" => 0,
        "ncclCommInitAll" => 1,
        "ncclCommDestroy" => 2,
        "ncclAllGather" => 4,
        "ncclAllReduce" => 5,
        "ncclBroadcast" => 6,
        "ncclReduceScatter" => 7,
        "ncclReduce" => 8,
        "ncclSend" => 9,
        "ncclRecv" => 10,
        "ncclCommInitRankConfig" => 11,
        _ => return None,
    };
    Some(FIRST_OWN + number)
}

impl Field {
    pub(super) fn width(self) -> usize {
        match self {
            Field::Id(_) | Field::Size(_) => 8,
            Field::Number(_) | Field::Operation(_) => 4,
        }
    }

    /// As exports number types.
    pub(super) fn kind(self) -> i64 {
        match self {
            Field::Id(_) => 18,
            Field::Size(_) => 22,
            Field::Number(_) => 5,
            Field::Operation(_) => OPERATIONS,
        }
    }
}

impl Payload {
    pub(super) fn new(communicator: u64, of: Of) -> Payload {
        Payload { communicator, of }
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, Field)> {
        let size = |bytes| ("Message size [bytes]", Field::Size(bytes));
        let number = |key, number: i64| (key, Field::Number(number as i32));
        let operation = |reduction| ("Reduction operation", Field::Operation(reduction));
        let mut fields = vec![("NCCL communicator ID", Field::Id(self.communicator))];
        match self.of {
            Of::Rank { ranks, rank, device } => fields.extend([
                number("No. of ranks", ranks.into()),
                number("Rank", rank.into()),
                number("CUDA device", device),
            ]),
            Of::Devices { devices } => fields.push(number("No. of devices", devices.into())),
            Of::Sized { bytes } => fields.push(size(bytes)),
            Of::Reduced { bytes, reduction } => fields.extend([size(bytes), operation(reduction)]),
            Of::Rooted { bytes, root } => fields.extend([size(bytes), number("Root", root.into())]),
            Of::ReducedRooted { bytes, root, reduction } => {
                fields.extend([size(bytes), number("Root", root.into()), operation(reduction)]);
            }
            Of::Peer { bytes, peer } => fields.extend([size(bytes), number("Peer rank", peer.into())]),
        }
        fields
    }

    /// Where each field begins, and how long all of them are: each at a multiple of its width, all at one of the widest.
    pub(super) fn offsets(fields: &[(&str, Field)]) -> (Vec<usize>, usize) {
        let mut end = 0usize;
        let mut place = |(_, field): &(&str, Field)| {
            let start = end.next_multiple_of(field.width());
            end = start + field.width();
            start
        };
        let offsets = fields.iter().map(&mut place).collect();
        (offsets, end.next_multiple_of(8))
    }

    /// As an export has it.
    pub(super) fn json(&self) -> String {
        let mut text = String::from("{");
        for (at, (key, field)) in self.fields().iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            // Infallible: writing to a string.
            let _ = match field {
                Field::Id(number) | Field::Size(number) => write!(text, "{comma}\"{key}\":{number}"),
                Field::Number(number) => write!(text, "{comma}\"{key}\":{number}"),
                Field::Operation(Reduction(number)) => match REDUCTIONS.get(*number as usize) {
                    Some(name) => write!(text, "{comma}\"{key}\":\"{name}\""),
                    None => write!(text, "{comma}\"{key}\":{number}"),
                },
            };
        }
        text.push('}');
        text
    }

    /// As bytes: domain, layout, length, where the fields begin, and the fields.
    pub(super) fn blob(&self, domain: i64, function: &str) -> Option<Vec<u8>> {
        let fields = self.fields();
        let (offsets, length) = Payload::offsets(&fields);
        let head = [domain, layout(function)?, length as i64, HEAD as i64];
        let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        for (offset, (_, field)) in offsets.iter().zip(&fields) {
            bytes.resize(HEAD + offset, 0);
            match field {
                Field::Id(number) | Field::Size(number) => bytes.extend(number.to_le_bytes()),
                Field::Number(number) | Field::Operation(Reduction(number)) => {
                    bytes.extend(number.to_le_bytes());
                }
            }
        }
        bytes.resize(HEAD + length, 0);
        Some(bytes)
    }
}

const HEAD: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_in_the_order_of_the_fields_and_numbers_are_whole() {
        let of = |of| Payload::new(u64::MAX, of).json();
        let sum = Reduction::from_name("sum");
        for (payload, text) in [
            (Of::Rank { ranks: 16, rank: 3, device: 1 }, r#""No. of ranks":16,"Rank":3,"CUDA device":1"#),
            (Of::Devices { devices: 8 }, r#""No. of devices":8"#),
            (Of::Sized { bytes: 1 << 40 }, r#""Message size [bytes]":1099511627776"#),
            (
                Of::Reduced { bytes: 8, reduction: sum },
                r#""Message size [bytes]":8,"Reduction operation":"Sum""#,
            ),
            (Of::Rooted { bytes: 8, root: 2 }, r#""Message size [bytes]":8,"Root":2"#),
            (
                Of::ReducedRooted { bytes: 8, root: 2, reduction: Reduction::from_name("mulsum") },
                r#""Message size [bytes]":8,"Root":2,"Reduction operation":5"#,
            ),
            (Of::Peer { bytes: 8, peer: 7 }, r#""Message size [bytes]":8,"Peer rank":7"#),
        ] {
            assert_eq!(of(payload), format!("{{\"NCCL communicator ID\":18446744073709551615,{text}}}"));
        }
    }

    #[test]
    fn bytes_stand_at_multiples_of_their_widths() {
        let payload = Payload::new(
            0x1122_3344_5566_7788,
            Of::Reduced { bytes: 1 << 20, reduction: Reduction::from_name("max") },
        );
        let blob = payload.blob(1, "ncclAllReduce").expect("a layout");
        assert_eq!(blob.len(), 32 + 24);
        assert_eq!(blob[..8], 1u64.to_le_bytes());
        assert_eq!(blob[8..16], ((1u64 << 24) + 5).to_le_bytes());
        assert_eq!(blob[16..24], 24u64.to_le_bytes());
        assert_eq!(blob[32..40], 0x1122_3344_5566_7788u64.to_le_bytes());
        assert_eq!(blob[48..], [2, 0, 0, 0, 0, 0, 0, 0]);
    }
}
