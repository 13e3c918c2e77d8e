//! Encodes extracts as bytes for another process of the same program: every number comes back bit by bit.

use super::Extract;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;

pub(crate) fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    rmp_serde::to_vec(value).map_err(|error| error.to_string())
}

pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
}

/// Of an extract whose type only its recipe knows.
pub(crate) fn extract_to_bytes<T: Any + Serialize>(extract: &Extract) -> Result<Vec<u8>, String> {
    let extract = extract.downcast_ref::<T>().ok_or_else(|| "the extract is of another recipe".to_owned())?;
    to_bytes(extract)
}

pub(crate) fn extract_from_bytes<T: Any + Send + Sync + DeserializeOwned>(
    bytes: &[u8],
) -> Result<Extract, String> {
    Ok(Box::new(from_bytes::<T>(bytes)?))
}
