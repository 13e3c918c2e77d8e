//! Labels of numbers. Exports before layout 3 have none of these tables.

use super::{TableSpec, int, table, text_opt};

/// Labels of `copyKind` of `MEMCPY`.
pub const MEMCPY_OPER: TableSpec = table("ENUM_CUDA_MEMCPY_OPER", &[int("id"), text_opt("label")]);

/// Labels of `srcKind` and `dstKind` of `MEMCPY` and of `memKind` of `MEMSET`.
pub const MEM_KIND: TableSpec = table("ENUM_CUDA_MEM_KIND", &[int("id"), text_opt("label")]);
