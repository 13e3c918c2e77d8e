//! What is taken of reports as bytes, for another process of the same program: every number comes back bit by bit.

use super::Taken;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;

pub(crate) fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    rmp_serde::to_vec(value).map_err(|error| error.to_string())
}

pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
}

/// Of what only its recipe knows the type.
pub(crate) fn taken_to_bytes<T: Any + Serialize>(taken: &Taken) -> Result<Vec<u8>, String> {
    let taken = taken.downcast_ref::<T>().ok_or_else(|| "it was taken by another recipe".to_owned())?;
    to_bytes(taken)
}

pub(crate) fn taken_from_bytes<T: Any + Send + Sync + DeserializeOwned>(
    bytes: &[u8],
) -> Result<Taken, String> {
    Ok(Box::new(from_bytes::<T>(bytes)?))
}
