//! The payload of an NCCL range, read by the names of its fields, which stayed when layout numbers changed. Releases
//! before 2.16 have none, and those before 2.25 do not name the communicator. An unreadable payload is refused with
//! its reason.

mod binary;
#[cfg(test)]
mod golden;
mod json;
mod layouts;

pub use layouts::Layouts;

use super::function::Reduction;
use std::borrow::Cow;
use std::fmt;

/// `None` is what was not recorded, which is never a zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Payload {
    /// `Message size [bytes]`, as the function counts it; see `Function::total_bytes`.
    pub bytes: Option<u64>,
    /// `NCCL communicator ID`, not recorded before NCCL 2.25.
    pub communicator: Option<u64>,
    /// `Parent NCCL communicator ID`.
    pub parent: Option<u64>,
    /// `No. of ranks` of the communicator.
    pub ranks: Option<u32>,
    /// `Rank` in the communicator.
    pub rank: Option<u32>,
    /// `CUDA device` of the rank.
    pub device: Option<i32>,
    /// `No. of devices`: the ranks of a communicator whose payload has no `No. of ranks`.
    pub devices: Option<u32>,
    /// `Root` rank.
    pub root: Option<i32>,
    /// `Peer rank` of a send or receive.
    pub peer: Option<i32>,
    /// `Reduction operation`; also `None` where its value is not a known one.
    pub reduction: Option<Reduction>,
}

/// Why a payload says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// Its text is not a JSON object.
    NoJson,
    /// There are fewer bytes than declared.
    Short,
    /// There are more bytes than declared.
    Long,
    /// It, or a field of it, does not stand where numbers of its width stand.
    Misaligned,
    /// It has not the size that its layout has.
    NotOfItsSize,
    /// No layout is declared or published for it.
    UnknownLayout,
    /// Two layouts of one number and size differ.
    TwoLayouts,
    /// A field has a value that is none of its kind.
    Unfit,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NoJson => "not a JSON object",
            Refusal::Short => "fewer bytes than declared",
            Refusal::Long => "more bytes than declared",
            Refusal::Misaligned => "misaligned bytes",
            Refusal::NotOfItsSize => "size differs from that of its layout",
            Refusal::UnknownLayout => "unknown layout",
            Refusal::TwoLayouts => "two layouts share one number and size",
            Refusal::Unfit => "value out of range for its field",
        })
    }
}

/// The fields that are known, by the names that NCCL gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Bytes,
    Communicator,
    Parent,
    Ranks,
    Rank,
    Device,
    Devices,
    Root,
    Peer,
    Reduction,
}

impl Field {
    fn named(name: &str) -> Option<Field> {
        Some(match name {
            "Message size [bytes]" | "Bytes" => Field::Bytes,
            "NCCL communicator ID" => Field::Communicator,
            "Parent NCCL communicator ID" => Field::Parent,
            "No. of ranks" => Field::Ranks,
            "Rank" => Field::Rank,
            "CUDA device" => Field::Device,
            "No. of devices" => Field::Devices,
            "Root" => Field::Root,
            "Peer rank" => Field::Peer,
            "Reduction operation" => Field::Reduction,
            _ => return None,
        })
    }
}

/// The value of one field.
enum Value<'a> {
    Number(i128),
    Word(Cow<'a, str>),
    /// Of a shape that no field has.
    Other,
}

impl Payload {
    fn put(&mut self, field: Field, value: Value<'_>) -> Result<(), Refusal> {
        if field == Field::Reduction {
            // In 2.25 its enumeration has the number of another layout, so that it may be decoded as that: then it alone
            // is not known.
            self.reduction = match value {
                Value::Number(number) => u32::try_from(number).ok().map(Reduction::from_number),
                Value::Word(word) => Reduction::from_word(&word),
                Value::Other => None,
            };
            return Ok(());
        }
        let number = match value {
            Value::Number(number) => number,
            Value::Word(word) => number_of(&word).ok_or(Refusal::Unfit)?,
            Value::Other => return Err(Refusal::Unfit),
        };
        match field {
            Field::Bytes => self.bytes = Some(fit(number)?),
            Field::Communicator => self.communicator = Some(id(number)?),
            Field::Parent => self.parent = Some(id(number)?),
            Field::Ranks => self.ranks = Some(fit(number)?),
            Field::Rank => self.rank = Some(fit(number)?),
            Field::Device => self.device = Some(fit(number)?),
            Field::Devices => self.devices = Some(fit(number)?),
            Field::Root => self.root = Some(fit(number)?),
            Field::Peer => self.peer = Some(fit(number)?),
            Field::Reduction => {}
        }
        Ok(())
    }

    /// What another account of the same call adds.
    fn or(self, other: Payload) -> Payload {
        Payload {
            bytes: self.bytes.or(other.bytes),
            communicator: self.communicator.or(other.communicator),
            parent: self.parent.or(other.parent),
            ranks: self.ranks.or(other.ranks),
            rank: self.rank.or(other.rank),
            device: self.device.or(other.device),
            devices: self.devices.or(other.devices),
            root: self.root.or(other.root),
            peer: self.peer.or(other.peer),
            reduction: self.reduction.or(other.reduction),
        }
    }
}

fn fit<T: TryFrom<i128>>(number: i128) -> Result<T, Refusal> {
    T::try_from(number).map_err(|_| Refusal::Unfit)
}

/// Ids are bits: what was written with a sign is the same id.
fn id(number: i128) -> Result<u64, Refusal> {
    match i64::try_from(number) {
        Ok(signed) => Ok(signed as u64),
        Err(_) => fit(number),
    }
}

fn number_of(word: &str) -> Option<i128> {
    match word.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The payload of the range of this name, from its JSON, else from its bytes. What one of them lacks the other may say.
/// `None` where there is neither.
pub(crate) fn read(
    function: &str,
    json: Option<&str>,
    bytes: Option<&[u8]>,
    layouts: &Layouts,
    domain: i64,
) -> Option<Result<Payload, Refusal>> {
    let json = json.filter(|text| !text.trim().is_empty()).map(json::read);
    let complete = matches!(&json, Some(Ok(payload)) if payload.reduction.is_some());
    let bytes = bytes.filter(|bytes| !bytes.is_empty() && !complete);
    let bytes = bytes.map(|bytes| binary::read(bytes, function, layouts, domain));
    match (json, bytes) {
        (Some(Ok(json)), Some(Ok(bytes))) => Some(Ok(json.or(bytes))),
        (Some(Ok(json)), _) => Some(Ok(json)),
        (_, Some(Ok(bytes))) => Some(Ok(bytes)),
        (Some(Err(why)), _) | (None, Some(Err(why))) => Some(Err(why)),
        (None, None) => None,
    }
}
