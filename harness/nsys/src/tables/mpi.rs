//! Calls of MPI and of UCX. Exports of 2022 have none of these tables: there MPI is a domain of NVTX.

use super::{TableSpec, int, int_opt, table};

/// Sends and receives; `size` in bytes.
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

/// Collectives; `size` is the bytes sent, `recvSize` the bytes received.
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

/// Calls that start or await communication.
pub const MPI_START_WAIT: TableSpec =
    table("MPI_START_WAIT_EVENTS", &[int("start"), int_opt("end"), int_opt("globalTid"), int_opt("textId")]);

/// Calls that are in none of the other tables of MPI.
pub const MPI_OTHER: TableSpec =
    table("MPI_OTHER_EVENTS", &[int("start"), int_opt("end"), int_opt("globalTid"), int_opt("textId")]);

/// Rank of a thread's process.
pub const MPI_RANKS: TableSpec = table("MPI_RANKS", &[int("globalTid"), int("rank")]);

/// Calls of UCX that have no size.
pub const UCP: TableSpec =
    table("UCP_EVENTS", &[int("start"), int_opt("end"), int_opt("globalTid"), int_opt("textId")]);

/// Calls of UCX that submit data; `packedSize` in bytes.
pub const UCP_SUBMIT: TableSpec = table(
    "UCP_SUBMIT_EVENTS",
    &[int("start"), int_opt("end"), int_opt("globalTid"), int_opt("textId"), int_opt("packedSize")],
);

/// Calls of UCX that progress communication; `packedSize` in bytes.
pub const UCP_PROGRESS: TableSpec = table(
    "UCP_PROGRESS_EVENTS",
    &[int("start"), int_opt("end"), int_opt("globalTid"), int_opt("textId"), int_opt("packedSize")],
);
