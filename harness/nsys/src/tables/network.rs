//! What NICs and switches carried, sampled over intervals, and the names of devices and of what was sampled.

use super::{TableSpec, int, int_opt, table, text_opt};

/// One value of one metric of a NIC, from `start` to `end`.
pub const NET_NIC_METRIC: TableSpec = table(
    "NET_NIC_METRIC",
    &[
        int("start"),
        int("end"),
        int("globalId"),
        int("metricsListId"),
        int("metricsIdx"),
        int("value"),
        int_opt("portId"),
    ],
);

/// The same for an InfiniBand switch.
pub const NET_IB_SWITCH_METRIC: TableSpec = table(
    "NET_IB_SWITCH_METRIC",
    &[
        int("start"),
        int("end"),
        int("globalId"),
        int("metricsListId"),
        int("metricsIdx"),
        int("value"),
        int_opt("portId"),
    ],
);

/// `nicId` of each `globalId` in `NET_NIC_METRIC`.
pub const NIC_ID_MAP: TableSpec = table("NIC_ID_MAP", &[int("nicId"), int("globalId")]);

/// GUID and name of each NIC.
pub const TARGET_INFO_NIC_INFO: TableSpec =
    table("TARGET_INFO_NIC_INFO", &[int("GUID"), int("nicId"), text_opt("name")]);

/// Names and units of metrics, by `metricsListId` and `metricsIdx`.
pub const TARGET_INFO_NETWORK_METRICS: TableSpec = table(
    "TARGET_INFO_NETWORK_METRICS",
    &[int("metricsListId"), int("metricsIdx"), text_opt("name"), text_opt("unit")],
);
