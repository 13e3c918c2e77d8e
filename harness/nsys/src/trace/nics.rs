//! The NICs of a report, as samples of networks name them.

use super::Trace;
use crate::export::ExportError;
use crate::tables::{NIC_ID_MAP, TARGET_INFO_NIC_INFO};
use std::collections::HashMap;

/// A NIC as samples name it.
pub struct Nic {
    /// `nicId` of the report.
    pub id: i64,
    /// GUID, with its bits as a signed number.
    pub guid: i64,
    /// Device name; `None` if not recorded.
    pub name: Option<String>,
}

/// NICs by the number that samples carry.
pub fn nics(trace: &Trace) -> Result<HashMap<i64, Nic>, ExportError> {
    let (Some(map), Some(info)) =
        (trace.export().table(&NIC_ID_MAP)?, trace.export().table(&TARGET_INFO_NIC_INFO)?)
    else {
        return Ok(HashMap::new());
    };
    let (guids, ids, names) = (info.ints("GUID")?, info.ints("nicId")?, info.texts("name")?);
    let of_id: HashMap<i64, usize> = ids.iter().enumerate().map(|(row, id)| (*id, row)).collect();
    let pairs = map.ints("nicId")?.iter().zip(map.ints("globalId")?);
    let known = pairs.filter_map(|(id, global)| {
        let row = *of_id.get(id)?;
        Some((*global, Nic { id: *id, guid: guids[row], name: names.get(row).map(str::to_owned) }))
    });
    Ok(known.collect())
}
