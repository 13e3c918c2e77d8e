//! `kind = "nic-pairs"`: flows between the NICs of two nodes.

use super::super::Placement;
use super::Workload;
use super::table::{Refusal, Setting, SettingValue, WorkloadKind, WorkloadTable};
use crate::form::{Form, Key, Type};
use crate::toml_reader::Table;
use crate::toml_reader::quantity::size_of;
use job::script::FlowMemory;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    names: &["nic-pairs"],
    form,
    read,
    settings: &[Setting { key: "seconds", about: "nic-pairs: how long a flow lasts at line rate" }],
};

/// Flows between pairs of nodes, one for each NIC, in both directions.
#[derive(Debug, Clone, PartialEq)]
pub struct NicPairs {
    /// How long a flow lasts at line rate.
    pub seconds: f64,
    /// The port of the first device; each further device has the next.
    pub base_port: u16,
    /// Of one write or read; 1 MiB by default.
    pub message_bytes: u64,
    /// Whose memory is moved; `auto` by default.
    pub memory: FlowMemory,
}

impl WorkloadTable for NicPairs {
    /// A flow prints its rate at its end.
    fn stall_s(&self) -> Option<u64> {
        Some(180 + 2 * self.seconds.ceil() as u64)
    }

    fn usual_placement(&self) -> Option<Placement> {
        Some(Placement::Pairs)
    }

    fn refuse_placement(&self, placement: Placement) -> Option<Refusal> {
        let refusal = ("`nic-pairs` runs between two nodes at a time", "write `placement = \"pairs\"`");
        (placement != Placement::Pairs).then_some(refusal)
    }

    fn refuse_profile(&self) -> Option<&'static str> {
        Some("`nic-pairs` runs nothing on a GPU: there is nothing to profile")
    }

    fn refuse_repeats(&self) -> Option<Refusal> {
        let why = "`repeats` has no effect on `nic-pairs`: a NIC is judged by the best of its flows";
        Some((why, "remove `repeats`"))
    }

    fn refuse_nccl_log(&self) -> Option<&'static str> {
        Some("a `nic-pairs` workload does not run NCCL; remove `nccl_log` from `recipes`")
    }

    fn setting(&mut self, key: &str) -> Option<SettingValue<'_>> {
        (key == "seconds").then_some(SettingValue::Number { value: &mut self.seconds, least: 5.0 })
    }

    fn flows(&self) -> Option<&NicPairs> {
        Some(self)
    }
}

fn form(_: &str) -> Form {
    let memory = Type::OneOf(|_| FlowMemory::ALL.map(|memory| memory.name().to_owned()).to_vec());
    Form::new([
        Key::usual("seconds", "5", Type::Number, "how long a flow lasts at line rate, from 5 on"),
        Key::usual(
            "base_port",
            "18515",
            Type::WHOLE,
            "the port of the first device; each further device has the next",
        ),
        Key::usual("message_bytes", "\"1MiB\"", Type::Size, "of one write or read"),
        Key::usual("memory", "\"auto\"", memory, "whose memory is moved"),
    ])
}

fn read(table: &Table<'_>, _: &str) -> Option<Workload> {
    let seconds = table.get("seconds").map_or(Some(5.0), |value| {
        let seconds = value.number()?;
        if !(5.0..=3600.0).contains(&seconds) {
            value.diagnostic(format!("a flow must last between 5 and 3600 s at line rate, not: {seconds}"));
            return None;
        }
        Some(seconds)
    });
    // Each device of a node has its own port from here on, so that some must be left above.
    let base_port = table.get("base_port").map_or(Some(18_515), |value| value.small(1024..=65_000));
    let message_bytes = table.get("message_bytes").map_or(Some(1 << 20), |value| size_of(&value));
    let memories = FlowMemory::ALL.map(|memory| (memory.name(), memory));
    let memory = table.get("memory").map_or(Some(FlowMemory::Auto), |value| value.one_of(&memories));
    Some(Workload::NicPairs(NicPairs {
        seconds: seconds?,
        base_port: u16::try_from(base_port?).ok()?,
        message_bytes: message_bytes?,
        memory: memory?,
    }))
}
