//! What NCCL writes beside the ranges of its calls, as releases from 2.25 on name and order it. Sizes are those of one
//! call's own count: of one rank, or of one peer, as the function counts.

use std::fmt::Write;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    pub communicator: u64,
    pub of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Rank { ranks: u32, rank: u32, device: i64 },
    Devices { devices: u32 },
    Sized { bytes: u64 },
    Reduced { bytes: u64, reduction: Reduction },
    Rooted { bytes: u64, root: u32 },
    ReducedRooted { bytes: u64, root: u32, reduction: Reduction },
    Peer { bytes: u64, peer: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    Named(&'static str),
    /// Made by the program: no name is known for it.
    Made(i32),
}

impl Reduction {
    /// As nccl-tests name them.
    pub fn of(name: &str) -> Reduction {
        match name {
            "prod" => Reduction::Named("Product"),
            "max" => Reduction::Named("Max"),
            "min" => Reduction::Named("Min"),
            "avg" => Reduction::Named("Avg"),
            "mulsum" => Reduction::Made(5),
            _ => Reduction::Named("Sum"),
        }
    }
}

impl Payload {
    pub fn new(communicator: u64, of: Of) -> Payload {
        Payload { communicator, of }
    }

    /// As an export has it.
    pub fn json(&self) -> String {
        let mut text = format!("{{\"NCCL communicator ID\":{}", self.communicator);
        let mut number = |key: &str, value: i128| {
            // Infallible: writing to a string.
            let _ = write!(text, ",\"{key}\":{value}");
        };
        let mut size = |bytes: u64| number("Message size [bytes]", i128::from(bytes));
        let reduction = match self.of {
            Of::Rank { ranks, rank, device } => {
                number("No. of ranks", i128::from(ranks));
                number("Rank", i128::from(rank));
                number("CUDA device", i128::from(device));
                None
            }
            Of::Devices { devices } => {
                number("No. of devices", i128::from(devices));
                None
            }
            Of::Sized { bytes } => {
                size(bytes);
                None
            }
            Of::Reduced { bytes, reduction } => {
                size(bytes);
                Some(reduction)
            }
            Of::Rooted { bytes, root } => {
                size(bytes);
                number("Root", i128::from(root));
                None
            }
            Of::ReducedRooted { bytes, root, reduction } => {
                size(bytes);
                number("Root", i128::from(root));
                Some(reduction)
            }
            Of::Peer { bytes, peer } => {
                size(bytes);
                number("Peer rank", i128::from(peer));
                None
            }
        };
        // Infallible: writing to a string.
        let _ = match reduction {
            Some(Reduction::Named(name)) => write!(text, ",\"Reduction operation\":\"{name}\""),
            Some(Reduction::Made(number)) => write!(text, ",\"Reduction operation\":{number}"),
            None => Ok(()),
        };
        text.push('}');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_in_the_order_of_the_fields_and_numbers_are_whole() {
        let of = |of| Payload::new(u64::MAX, of).json();
        let sum = Reduction::of("sum");
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
                Of::ReducedRooted { bytes: 8, root: 2, reduction: Reduction::of("mulsum") },
                r#""Message size [bytes]":8,"Root":2,"Reduction operation":5"#,
            ),
            (Of::Peer { bytes: 8, peer: 7 }, r#""Message size [bytes]":8,"Peer rank":7"#),
        ] {
            assert_eq!(of(payload), format!("{{\"NCCL communicator ID\":18446744073709551615,{text}}}"));
        }
    }
}
