//! The tables that describe how the bytes of NCCL's payloads are read: every process declares the layouts that it
//! uses, and the names of operations. The payloads themselves are made in `payload`.

use super::events::Events;
use super::payload::{Field, OPERATIONS, Payload, REDUCTIONS, layout};
use nsys::tables::write::Columns;
use nsys::tables::{
    NVTX_PAYLOAD_ENUM_ENTRIES, NVTX_PAYLOAD_ENUMS, NVTX_PAYLOAD_SCHEMA_ENTRIES, NVTX_PAYLOAD_SCHEMAS,
};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Layouts {
    domain: i64,
    pub processes: usize,
    /// The number of a layout, the function that uses it, and one of its payloads.
    pub layouts: Vec<(i64, String, Payload)>,
}

impl Layouts {
    pub(super) fn new(events: &Events, domain: i64) -> Layouts {
        let mut known: BTreeMap<(i64, i64), (String, Payload)> = BTreeMap::new();
        for range in &events.ranges {
            if let (Some(payload), Some(number)) = (range.payload, layout(&range.name)) {
                let process = range.global_tid >> 24;
                known.entry((process, number)).or_insert_with(|| (range.name.to_string(), payload));
            }
        }
        let mut processes: Vec<i64> = known.keys().map(|(process, _)| *process).collect();
        processes.dedup();
        let layouts =
            known.into_iter().map(|((_, number), (name, payload))| (number, name, payload)).collect();
        Layouts { domain, processes: processes.len(), layouts }
    }

    pub(super) fn layouts(&self) -> Result<Vec<u8>, String> {
        let rows = &self.layouts;
        let size = |payload: &Payload| Payload::offsets(&payload.fields()).1 as i64;
        Columns::new(&NVTX_PAYLOAD_SCHEMAS, rows.len())
            .numbers("domainId", rows.iter().map(|_| self.domain))
            .numbers("schemaId", rows.iter().map(|(number, ..)| *number))
            .texts("name", rows.iter().map(|(_, name, _)| Some(name)))
            .numbers("payloadSize", rows.iter().map(|(.., payload)| size(payload)))
            .bytes()
    }

    pub(super) fn fields(&self) -> Result<Vec<u8>, String> {
        let mut rows: Vec<(i64, i64, &str, Field, i64)> = Vec::new();
        for (number, _, payload) in &self.layouts {
            let fields = payload.fields();
            let (offsets, _) = Payload::offsets(&fields);
            for (at, ((name, field), offset)) in (0..).zip(fields.iter().zip(offsets)) {
                rows.push((*number, at, *name, *field, offset as i64));
            }
        }
        // The offset of the first field is left out, as real exports have it.
        let offset = |offset: i64| (offset > 0).then_some(offset);
        Columns::new(&NVTX_PAYLOAD_SCHEMA_ENTRIES, rows.len())
            .numbers("domainId", rows.iter().map(|_| self.domain))
            .numbers("schemaId", rows.iter().map(|row| row.0))
            .numbers("idx", rows.iter().map(|row| row.1))
            .numbers("type", rows.iter().map(|row| row.3.kind()))
            .texts("name", rows.iter().map(|row| Some(row.2)))
            .integers("offset", rows.iter().map(|row| offset(row.4)))
            .bytes()
    }

    pub(super) fn enumerations(&self) -> Result<Vec<u8>, String> {
        let rows = || 0..self.processes;
        Columns::new(&NVTX_PAYLOAD_ENUMS, self.processes)
            .numbers("domainId", rows().map(|_| self.domain))
            .numbers("schemaId", rows().map(|_| OPERATIONS))
            .texts("name", rows().map(|_| Some("ncclRedOp_t")))
            .numbers("size", rows().map(|_| 4))
            .bytes()
    }

    pub(super) fn names(&self) -> Result<Vec<u8>, String> {
        let words = || (0..self.processes).flat_map(|_| (0..).zip(REDUCTIONS));
        let height = self.processes * REDUCTIONS.len();
        Columns::new(&NVTX_PAYLOAD_ENUM_ENTRIES, height)
            .numbers("domainId", words().map(|_| self.domain))
            .numbers("schemaId", words().map(|_| OPERATIONS))
            .numbers("idx", words().map(|(at, _)| at))
            .texts("name", words().map(|(_, word)| Some(word)))
            .numbers("value", words().map(|(at, _)| at))
            .bytes()
    }
}
