//! The parts of the name of a domain of the plugin: `aws-ofi-nccl s_comm 0x7f01_3`, `aws-ofi-nccl dev 2_1`.

use serde::{Deserialize, Serialize};

pub(super) const PREFIX: &str = "aws-ofi-nccl ";

/// Where an event belongs. A slot is the number of a message, by eights.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct EventDomain {
    kind: Option<String>,
    pub handle: Option<String>,
    pub slot: Option<i64>,
    pub dev: Option<i64>,
    pub rail: Option<i64>,
}

impl EventDomain {
    /// `None` where the name is not a domain of the plugin. An unknown form is kept as the handle.
    pub(super) fn parse(domain: &str) -> Option<EventDomain> {
        let rest = domain.strip_prefix(PREFIX)?;
        let (kind, what) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut place = EventDomain { kind: Some(kind.to_owned()), ..EventDomain::default() };
        let parts = what.rsplit_once('_').map(|(first, last)| (first, last.parse::<i64>().ok()));
        match (kind, parts) {
            ("dev", Some((dev, Some(rail)))) if dev.parse::<i64>().is_ok() => {
                (place.dev, place.rail) = (dev.parse().ok(), Some(rail));
            }
            (_, Some((handle, Some(slot)))) if kind != "dev" => {
                (place.handle, place.slot) = (Some(handle.to_owned()), Some(slot));
            }
            _ if !what.is_empty() => place.handle = Some(what.to_owned()),
            _ => {}
        }
        Some(place)
    }

    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("default")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_domains_give_kind_handle_slot_device_and_rail() {
        let of = |name: &str| {
            let place = EventDomain::parse(name).expect("of the plugin");
            (place.kind().to_owned(), place.handle, place.slot, place.dev, place.rail)
        };
        let word = |text: &str| Some(text.to_owned());
        assert_eq!(
            of("aws-ofi-nccl s_comm 0x7f01_3"),
            ("s_comm".into(), word("0x7f01"), Some(3), None, None)
        );
        assert_eq!(of("aws-ofi-nccl gin_comm 0xa_7"), ("gin_comm".into(), word("0xa"), Some(7), None, None));
        assert_eq!(of("aws-ofi-nccl dev 12_3"), ("dev".into(), None, None, Some(12), Some(3)));
        assert_eq!(of("aws-ofi-nccl dev x"), ("dev".into(), word("x"), None, None, None));
        assert_eq!(of("aws-ofi-nccl other"), ("other".into(), None, None, None, None));
        assert_eq!(EventDomain::parse("NCCL"), None);
    }
}
