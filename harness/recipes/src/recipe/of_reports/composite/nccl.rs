//! Ranges of NCCL as NVTX has them, with their payloads as JSON and as what these say.

use super::WHOLE;
use crate::recipe::of_reports::{RecipeKind, ReportRecipe};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::nccl::{NcclCalls, TABLES, is_of_nccl};
use nsys::tables::NVTX_EVENTS;
use nsys::trace::nvtx::{Domains, MARK, PUSH_POP, START_END};
use nsys::trace::{Trace, pid_of, tid_of};
use std::borrow::Cow;
use std::collections::HashMap;

pub(crate) const NCCL: ReportRecipe = ReportRecipe {
    name: "NCCL",
    title: "NCCL Ranges",
    about: "ranges and marks of the domain `NCCL` with their payloads, decoded for calls that move data",
    definition: WHOLE,
    arguments: &[],
    tables: TABLES,
    kind: RecipeKind::Rows {
        columns: &[&[
            "text",
            "start",
            "end",
            "globalTid",
            "endGlobalTid",
            "domainId",
            "domainName",
            "eventType",
            "jsonText",
            "pid",
            "tid",
            "bytes",
            "communicator",
            "ranks",
            "rank",
            "root",
            "peer",
            "reduction",
            "group",
        ]],
        of: |trace, _| ranges(trace),
    },
};

const COLUMNS: [&str; 10] = [
    "start",
    "end",
    "eventType",
    "text",
    "textId",
    "globalTid",
    "endGlobalTid",
    "domainId",
    "jsonText",
    "jsonTextId",
];

fn ranges(trace: &Trace) -> Result<Option<ResultTable>, ExportError> {
    let Some(rows) = trace.rows(&NVTX_EVENTS, &COLUMNS)? else { return Ok(None) };
    let (starts, types) = (rows.ints("start")?, rows.ints("eventType")?);
    let (tids, of_domain) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("domainId")?);
    let domains = Domains::read(trace.export())?;
    let strings = trace.strings()?;
    let (texts, ids) = (rows.texts("text")?, rows.maybe_ints("textId")?);
    let text = |row: usize| match texts.get(row) {
        Some(text) => Some(Cow::Borrowed(text)),
        None => ids.get(row).map(|id| strings.render(id)),
    };
    let of_nccl = |row: usize| {
        let domain = of_domain.get(row).unwrap_or_default();
        let name = domains.name(tids.get(row).unwrap_or_default(), domain);
        is_of_nccl(name, domain, &text(row).unwrap_or_default())
    };
    let mut order: Vec<usize> = (0..rows.len())
        .filter(|row| [MARK, PUSH_POP, START_END].contains(&types[*row]) && of_nccl(*row))
        .collect();
    if order.is_empty() {
        return Ok(None);
    }
    order.sort_by_key(|row| (starts[*row], *row));
    let nccl = NcclCalls::read(trace)?.unwrap_or_default();
    // A thread begins and ends no two calls at once.
    let calls =
        nccl.calls.iter().map(|call| ((call.global_tid, call.start, call.end, call.function.name()), call));
    let calls: HashMap<_, _> = calls.collect();
    let (jsons, json_ids) = (rows.texts("jsonText")?, rows.maybe_ints("jsonTextId")?);
    let ends = rows.maybe_ints("end")?;
    let of_order: Vec<_> = order
        .iter()
        .map(|row| {
            let text = text(*row)?;
            calls.get(&(tids.get(*row)?, starts[*row], ends.get(*row)?, &*text)).copied()
        })
        .collect();
    let plain = Quantity::Plain;
    let number = |name: &str, value: &dyn Fn(&nsys::nccl::Call) -> Option<i64>| {
        Column::maybe_integers(name, plain, of_order.iter().map(|call| call.and_then(value)))
    };
    let mut columns =
        vec![Column::maybe_texts("text", order.iter().map(|row| text(*row).map(Cow::into_owned)))];
    for name in ["start", "end", "globalTid", "endGlobalTid", "domainId"] {
        let values = rows.maybe_ints(name)?;
        columns.push(Column::maybe_integers(name, plain, order.iter().map(|row| values.get(*row))));
    }
    columns.push(Column::texts("domainName", order.iter().map(|_| "NCCL")));
    columns.push(Column::integers("eventType", plain, order.iter().map(|row| types[*row])));
    let json = |row: &usize| jsons.get(*row).or_else(|| strings.get(json_ids.get(*row)?));
    columns.push(Column::maybe_texts("jsonText", order.iter().map(json)));
    columns.push(Column::maybe_integers("pid", plain, order.iter().map(|row| tids.get(*row).map(pid_of))));
    columns.push(Column::maybe_integers("tid", plain, order.iter().map(|row| tids.get(*row).map(tid_of))));
    columns.push(number("bytes", &|call| i64::try_from(call.bytes?).ok()));
    let communicator = |call: &Option<&nsys::nccl::Call>| call.and_then(|call| call.communicator);
    columns.push(Column::maybe_texts(
        "communicator",
        of_order.iter().map(|call| communicator(call).map(|id| format!("0x{id:x}"))),
    ));
    columns.push(number("ranks", &|call| call.ranks.map(i64::from)));
    columns.push(number("rank", &|call| call.rank.map(i64::from)));
    columns.push(number("root", &|call| call.root.map(i64::from)));
    columns.push(number("peer", &|call| call.peer.map(i64::from)));
    columns.push(Column::maybe_texts(
        "reduction",
        of_order
            .iter()
            .map(|call| call.and_then(|call| call.reduction).map(|reduction| reduction.to_string())),
    ));
    columns.push(number("group", &|call| call.group.map(i64::from)));
    Ok(Some(ResultTable::new(NCCL.name, NCCL.title, columns)))
}
