//! Calls of MPI and of UCX. Exports of 2022 have none of these tables: there MPI is a domain of NVTX.

use super::{TableSpec, int, int_opt, table};

pub const MPI_P2P: TableSpec = table(
    "MPI_P2P_EVENTS",
    &[
        int("start"),
        int_opt("end"),
        int_opt("globalTid"),
        int_opt("textId"),
        int_opt("tag"),
        int_opt("remoteRank"),
        int_opt("size"),
    ],
);

pub const MPI_COLLECTIVES: TableSpec = table(
    "MPI_COLLECTIVES_EVENTS",
    &[
        int("start"),
        int_opt("end"),
        int_opt("globalTid"),
        int_opt("textId"),
        int_opt("rootRank"),
        int_opt("size"),
        int_opt("recvSize"),
    ],
);

pub const MPI_START_WAIT: TableSpec =
    table("MPI_START_WAIT_EVENTS", &[int("start"), int_opt("end"), int_opt("globalTid"), int_opt("textId")]);

pub const MPI_OTHER: TableSpec =
    table("MPI_OTHER_EVENTS", &[int("start"), int_opt("end"), int_opt("globalTid"), int_opt("textId")]);

pub const MPI_RANKS: TableSpec = table("MPI_RANKS", &[int("globalTid"), int("rank")]);

pub const UCP: TableSpec =
    table("UCP_EVENTS", &[int("start"), int_opt("end"), int_opt("globalTid"), int_opt("textId")]);

pub const UCP_SUBMIT: TableSpec = table(
    "UCP_SUBMIT_EVENTS",
    &[int("start"), int_opt("end"), int_opt("globalTid"), int_opt("textId"), int_opt("packedSize")],
);

pub const UCP_PROGRESS: TableSpec = table(
    "UCP_PROGRESS_EVENTS",
    &[int("start"), int_opt("end"), int_opt("globalTid"), int_opt("textId"), int_opt("packedSize")],
);
