//! Ranges of a fork of NCCL that writes into range names what upstream writes into payloads: `ncclAllReduce():
//! commHash 0x5f, stream 0x7f, data_size 4096, type_size 4, red_op 0, pid 17`. The size is in bytes already.

use super::function::{Function, Reduction};
use super::payload::Payload;

pub(super) fn read(text: &str) -> Option<(Function, Payload)> {
    let (name, fields) = text.split_once("(): ")?;
    let function = Function::from_name(name)?;
    let mut payload = Payload::default();
    for field in fields.split(',') {
        let mut words = field.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next_back()) else { continue };
        match name {
            "commHash" => {
                payload.communicator = u64::from_str_radix(value.trim_start_matches("0x"), 16).ok();
            }
            "data_size" => payload.bytes = value.parse().ok(),
            "red_op" => payload.reduction = value.parse().ok().map(Reduction::from_number),
            "root" => payload.root = value.parse().ok(),
            // Of the other side of a pair; words such as `rank` may stand between.
            "receiver" | "sender" | "peer" => payload.peer = value.parse().ok(),
            _ => {}
        }
    }
    // A name of upstream has nothing of it.
    payload.communicator.map(|_| (function, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_taken_as_bytes_whatever_the_type() {
        let text = "ncclReduceScatter(): commHash 0x5f0a, stream 0x7f00, data_size 65536, type_size 4, red_op 2, pid 17";
        let (function, payload) = read(text).expect("of the fork");
        assert_eq!(function, Function::ReduceScatter);
        assert_eq!((payload.bytes, payload.communicator), (Some(65536), Some(0x5f0a)));
        assert_eq!((payload.reduction, payload.ranks), (Some(Reduction::Max), None));
    }

    #[test]
    fn other_names_are_none_of_it_and_a_size_that_is_none_is_not_recorded() {
        for text in ["ncclAllReduce", "ncclAllReduce(): ", "ncclNothing(): commHash 0x1", "x(): commHash 0x1"]
        {
            assert_eq!(read(text), None, "{text}");
        }
        let (_, payload) = read("ncclAllReduce(): commHash 0x1, data_size many").expect("of the fork");
        assert_eq!(payload.bytes, None);
    }
}
