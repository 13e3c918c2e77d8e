//! Labels of numbers. Exports before layout 3 have none of these tables.

use super::{TableSpec, int, table, text_opt};

pub const MEMCPY_OPER: TableSpec = table("ENUM_CUDA_MEMCPY_OPER", &[int("id"), text_opt("label")]);

pub const MEM_KIND: TableSpec = table("ENUM_CUDA_MEM_KIND", &[int("id"), text_opt("label")]);
