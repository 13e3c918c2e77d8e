//! The machine, its processes and threads, and when the session began.

use super::{TableSpec, int, int_opt, table, text_opt};

/// Process ids of the operating system, and names.
pub const PROCESSES: TableSpec =
    table("PROCESSES", &[int_opt("globalPid"), int_opt("pid"), text_opt("name")]);

/// Names of threads, as ids of `STRING_IDS`, and their scheduling priority.
pub const THREAD_NAMES: TableSpec =
    table("ThreadNames", &[int("nameId"), int_opt("priority"), int_opt("globalTid")]);

/// The session's time zero: what several reports are aligned with.
pub const SESSION_START: TableSpec = table("TARGET_INFO_SESSION_START_TIME", &[int_opt("utcEpochNs")]);

/// The name under which `SYSTEM_ENV` of a simulated report says that it is one.
pub const SIMULATED: &str = "SIMULATED";

/// Facts of the machine, such as `Hostname`.
pub const SYSTEM_ENV: TableSpec = table("TARGET_INFO_SYSTEM_ENV", &[text_opt("name"), text_opt("value")]);

/// The session's span on a clock of its own: its length is that of the session, its moments are none of the report's.
pub const ANALYSIS_DETAILS: TableSpec =
    table("ANALYSIS_DETAILS", &[int_opt("startTime"), int_opt("stopTime")]);
