//! How payloads are laid out: by the tables of the export and the names of fields, else by the layout that NCCL
//! publishes for the range name and size. Layout numbers are not used: their meaning changed between releases.

use super::{Field, Refusal};
use crate::export::{Export, ExportError};
use crate::tables::{
    NVTX_PAYLOAD_ENUM_ENTRIES, NVTX_PAYLOAD_ENUMS, NVTX_PAYLOAD_SCHEMA_ENTRIES, NVTX_PAYLOAD_SCHEMAS,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// By domain and number of an enumeration.
type EnumLabels = HashMap<(i64, i64), HashMap<i128, String>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub size: usize,
    pub places: Vec<FieldPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldPlace {
    pub field: Field,
    pub offset: usize,
    pub width: usize,
    /// Which words its numbers stand for, by domain and number of the enumeration.
    pub enumeration: Option<(i64, i64)>,
}

/// What an export says of its payloads.
#[derive(Debug, Default)]
pub struct Layouts {
    /// By domain and number: those that differ. Each process declares its own, mostly the same.
    declared: HashMap<(i64, u64), Vec<Result<Layout, Refusal>>>,
    words: EnumLabels,
}

impl Layouts {
    /// Reads the export's tables of payload schemas and enumerations.
    pub(crate) fn read(export: &Export) -> Result<Layouts, ExportError> {
        let mut layouts = Layouts { words: enum_labels(export)?, ..Layouts::default() };
        let widths = enumerations(export)?;
        let mut sizes: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
        if let Some(rows) = export.table(&NVTX_PAYLOAD_SCHEMAS)? {
            let (domains, ids) = (rows.maybe_ints("domainId")?, rows.maybe_ints("schemaId")?);
            let of_rows = rows.maybe_ints("payloadSize")?;
            for row in 0..rows.len() {
                let size = of_rows.get(row).and_then(|size| usize::try_from(size).ok());
                if let (Some(domain), Some(id), Some(size)) = (domains.get(row), ids.get(row), size) {
                    sizes.entry((domain, id)).or_default().push(size);
                }
            }
        }
        let Some(rows) = export.table(&NVTX_PAYLOAD_SCHEMA_ENTRIES)? else { return Ok(layouts) };
        let (domains, ids, indexes) = (rows.ints("domainId")?, rows.ints("schemaId")?, rows.ints("idx")?);
        let (kinds, offsets) = (rows.maybe_ints("type")?, rows.maybe_ints("offset")?);
        let names = rows.texts("name")?;
        // Layouts of several processes stand one behind the other, each beginning with its first field.
        let mut of_id: BTreeMap<(i64, i64), Vec<Vec<Entry>>> = BTreeMap::new();
        for row in 0..rows.len() {
            let all = of_id.entry((domains[row], ids[row])).or_default();
            let begins = |last: &Vec<Entry>| last.last().is_none_or(|entry| indexes[row] <= entry.index);
            if all.last().is_none_or(begins) {
                all.push(Vec::new());
            }
            let entry = Entry {
                index: indexes[row],
                field: names.get(row).and_then(Field::named),
                kind: kinds.get(row),
                offset: offsets.get(row),
            };
            if let Some(entries) = all.last_mut() {
                entries.push(entry);
            }
        }
        for ((domain, id), all) in of_id {
            let stated = sizes.get(&(domain, id));
            let mut distinct: Vec<Result<Layout, Refusal>> = Vec::new();
            for (at, entries) in all.iter().enumerate() {
                let size = stated.and_then(|sizes| sizes.get(at).or(sizes.last()).copied());
                let layout = laid_out(domain, entries, size, &widths);
                if !distinct.contains(&layout) {
                    distinct.push(layout);
                }
            }
            layouts.declared.insert((domain, id as u64), distinct);
        }
        Ok(layouts)
    }

    /// The layout of a payload of this size in a range of this name.
    pub(super) fn layout(
        &self,
        domain: i64,
        id: u64,
        function: &str,
        size: usize,
    ) -> Result<Cow<'_, Layout>, Refusal> {
        let Some(declared) = self.declared.get(&(domain, id)) else {
            return published(function, size).map(Cow::Owned).ok_or(Refusal::UnknownLayout);
        };
        let mut fitting = declared.iter().flatten().filter(|layout| layout.size == size);
        match (fitting.next(), fitting.next()) {
            (Some(layout), None) => Ok(Cow::Borrowed(layout)),
            (Some(_), Some(_)) => Err(Refusal::TwoLayouts),
            (None, _) => Err(declared
                .iter()
                .find_map(|one| one.as_ref().err())
                .copied()
                .unwrap_or(Refusal::NotOfItsSize)),
        }
    }

    pub(super) fn word(&self, enumeration: (i64, i64), number: i128) -> Option<&str> {
        self.words.get(&enumeration)?.get(&number).map(String::as_str)
    }
}

/// One field as the tables have it.
struct Entry {
    index: i64,
    field: Option<Field>,
    kind: Option<i64>,
    offset: Option<i64>,
}

/// Types from here on are enumerations and other layouts.
const FIRST_OWN: i64 = 1 << 24;

/// How wide a type is, and how its numbers are aligned.
fn width(domain: i64, entry: &Entry, widths: &HashMap<(i64, i64), usize>) -> Option<usize> {
    match entry.kind? {
        1 | 2 | 11 | 12 => Some(1),
        3 | 4 | 13 | 14 => Some(2),
        5 | 6 | 15 | 16 | 19 => Some(4),
        7..=10 | 17 | 18 | 20 | 22 | 23 => Some(8),
        // The number may be that of another layout too: what the field is called decides.
        own if own >= FIRST_OWN => match entry.field {
            Some(Field::Reduction) => Some(widths.get(&(domain, own)).copied().unwrap_or(4)),
            _ => widths.get(&(domain, own)).copied(),
        },
        _ => None,
    }
}

fn laid_out(
    domain: i64,
    entries: &[Entry],
    stated: Option<usize>,
    widths: &HashMap<(i64, i64), usize>,
) -> Result<Layout, Refusal> {
    let mut places = Vec::new();
    let (mut next, mut most) = (Some(0usize), 1usize);
    for entry in entries {
        let wide = width(domain, entry, widths);
        let natural = next.zip(wide).map(|(next, wide)| next.next_multiple_of(wide));
        let offset = match entry.offset {
            Some(offset) if offset > 0 || entry.index == 0 => usize::try_from(offset).ok(),
            // Not stated: the first one begins the payload, others follow the one before.
            _ => natural,
        };
        if let (Some(field), Some(offset), Some(wide)) = (entry.field, offset, wide)
            && (wide == 4 || wide == 8)
        {
            let enumeration = entry.kind.filter(|kind| *kind >= FIRST_OWN).map(|kind| (domain, kind));
            places.push(FieldPlace { field, offset, width: wide, enumeration });
        } else if entry.field.is_some() {
            return Err(Refusal::UnknownLayout);
        }
        next = offset.zip(wide).map(|(offset, wide)| offset + wide);
        most = most.max(wide.unwrap_or(1));
    }
    let size = stated.or(next.map(|end| end.next_multiple_of(most))).ok_or(Refusal::UnknownLayout)?;
    if places.iter().any(|place| place.offset % place.width != 0) {
        return Err(Refusal::Misaligned);
    }
    if places.iter().any(|place| place.offset + place.width > size) {
        return Err(Refusal::NotOfItsSize);
    }
    Ok(Layout { size, places })
}

fn enumerations(export: &Export) -> Result<HashMap<(i64, i64), usize>, ExportError> {
    let mut widths = HashMap::new();
    let Some(rows) = export.table(&NVTX_PAYLOAD_ENUMS)? else { return Ok(widths) };
    let (domains, ids, sizes) =
        (rows.maybe_ints("domainId")?, rows.maybe_ints("schemaId")?, rows.maybe_ints("size")?);
    for row in 0..rows.len() {
        let size = sizes.get(row).filter(|size| [1, 2, 4, 8].contains(size));
        if let (Some(domain), Some(id), Some(size)) = (domains.get(row), ids.get(row), size) {
            widths.insert((domain, id), size as usize);
        }
    }
    Ok(widths)
}

fn enum_labels(export: &Export) -> Result<EnumLabels, ExportError> {
    let mut words = EnumLabels::new();
    let Some(rows) = export.table(&NVTX_PAYLOAD_ENUM_ENTRIES)? else { return Ok(words) };
    let (domains, ids, values) = (rows.ints("domainId")?, rows.ints("schemaId")?, rows.maybe_ints("value")?);
    for (row, name) in rows.texts("name")?.iter().enumerate() {
        if let (Some(value), Some(name)) = (values.get(row), name) {
            let of_id = words.entry((domains[row], ids[row])).or_default();
            of_id.insert(value.into(), name.to_owned());
        }
    }
    Ok(words)
}

/// The fields that a range of this name has, before 2.25 and since, in their order.
fn fields(function: &str) -> Option<[&'static [(Field, usize)]; 2]> {
    use Field::*;
    const NEW: (Field, usize) = (Communicator, 8);
    const SIZE: (Field, usize) = (Bytes, 8);
    Some(match function {
        "ncclAllGather" | "ncclAlltoAll" => [&[SIZE], &[NEW, SIZE]],
        "ncclAllReduce" | "ncclReduceScatter" => [&[SIZE, (Reduction, 4)], &[NEW, SIZE, (Reduction, 4)]],
        "ncclBroadcast" | "ncclGather" | "ncclScatter" => [&[SIZE, (Root, 4)], &[NEW, SIZE, (Root, 4)]],
        "ncclReduce" => [&[SIZE, (Root, 4), (Reduction, 4)], &[NEW, SIZE, (Root, 4), (Reduction, 4)]],
        "ncclSend" | "ncclRecv" | "ncclPutSignal" => [&[SIZE, (Peer, 4)], &[NEW, SIZE, (Peer, 4)]],
        "ncclCommInitRank"
        | "ncclCommInitRankConfig"
        | "ncclCommInitRankScalable"
        | "ncclCommDestroy"
        | "ncclCommAbort" => {
            [&[(Rank, 4), (Ranks, 4), (Device, 4)], &[NEW, (Ranks, 4), (Rank, 4), (Device, 4)]]
        }
        "ncclCommInitAll" => [&[(Devices, 4)], &[NEW, (Devices, 4)]],
        // Colour and key stand behind these, and are not needed.
        "ncclCommSplit" => {
            [&[(Rank, 4), (Ranks, 4), (Device, 4)], &[NEW, (Parent, 8), (Ranks, 4), (Rank, 4), (Device, 4)]]
        }
        "ncclCommShrink" => [&[], &[NEW, (Ranks, 4), (Rank, 4), (Device, 4)]],
        "ncclCommGrow" => [&[], &[NEW, (Parent, 8), (Ranks, 4), (Rank, 4), (Device, 4)]],
        "ncclCommFinalize" | "ncclCommRevoke" => [&[], &[NEW]],
        _ => return None,
    })
}

/// What stands behind the fields that are needed.
fn unneeded(function: &str) -> usize {
    match function {
        "ncclCommSplit" => 8,
        "ncclCommShrink" | "ncclPutSignal" => 4,
        _ => 0,
    }
}

/// The published layout of this size: no range has one of the same size before 2.25 and since.
fn published(function: &str, size: usize) -> Option<Layout> {
    fields(function)?.into_iter().filter(|fields| !fields.is_empty()).find_map(|fields| {
        let mut next = 0usize;
        let places = fields.iter().map(|(field, width)| {
            let offset = next.next_multiple_of(*width);
            next = offset + width;
            FieldPlace { field: *field, offset, width: *width, enumeration: None }
        });
        let places: Vec<FieldPlace> = places.collect();
        let widest = fields.iter().map(|(_, width)| *width).max()?;
        let whole = (next + unneeded(function)).next_multiple_of(widest);
        (whole == size).then_some(Layout { size, places })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_function_has_one_size_in_two_releases() {
        let names = ["ncclAllGather", "ncclAllReduce", "ncclReduce", "ncclCommInitRank", "ncclCommInitAll"];
        for name in names.iter().chain(&["ncclSend", "ncclCommSplit", "ncclBroadcast"]) {
            let sizes: Vec<usize> = (0..64).filter(|size| published(name, *size).is_some()).collect();
            assert_eq!(sizes.len(), 2, "{name}: {sizes:?}");
        }
    }
}
