//! The table of metrics as a Parquet file: one column per dimension, so that any tool can query it.

use metric::unit::{Better, Unit};
use metric::{Dim, DimValue, Dims, Metric, Metrics};
use nsys::safe_parquet::{self, check_columns, check_frame, guarded, unpacked_limit};
use polars::prelude::*;
use std::io::Cursor;
use std::sync::Arc;

/// Why metrics could not be written as Parquet, or read from it.
#[derive(Debug, thiserror::Error)]
#[error("metrics: {0}")]
pub struct ParquetError(String);

impl From<PolarsError> for ParquetError {
    fn from(error: PolarsError) -> Self {
        ParquetError(error.to_string())
    }
}

/// The same metrics give the same bytes: rows are sorted, and one writer with one setting writes them.
pub fn to_parquet(metrics: &Metrics) -> Result<Vec<u8>, ParquetError> {
    let rows = metrics.rows();
    let mut columns =
        vec![Column::new("metric".into(), rows.iter().map(|row| &*row.name).collect::<Vec<_>>())];
    for dim in Dim::ALL {
        let name = PlSmallStr::from_static(dim.name());
        columns.push(if dim.is_number() {
            Column::new(name, rows.iter().map(|row| row.dims.number(dim)).collect::<Vec<_>>())
        } else {
            Column::new(name, rows.iter().map(|row| row.dims.word(dim)).collect::<Vec<_>>())
        });
    }
    columns.push(Column::new("value".into(), rows.iter().map(|row| row.value).collect::<Vec<_>>()));
    columns.push(Column::new("unit".into(), rows.iter().map(|row| row.unit.name()).collect::<Vec<_>>()));
    columns.push(Column::new("better".into(), rows.iter().map(|row| row.better.name()).collect::<Vec<_>>()));
    let mut frame = DataFrame::new(rows.len(), columns)?;
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes).with_compression(ParquetCompression::Snappy).finish(&mut frame)?;
    Ok(bytes)
}

/// Reads what `to_parquet` wrote; a damaged or hostile file is an error.
pub fn from_parquet(bytes: &[u8]) -> Result<Metrics, ParquetError> {
    guarded(|| read(bytes)).unwrap_or_else(|why| Err(ParquetError(why)))
}

fn read(bytes: &[u8]) -> Result<Metrics, ParquetError> {
    let most = unpacked_limit(bytes.len() as u64);
    let mut file = Cursor::new(bytes);
    let metadata = safe_parquet::metadata(&mut file).map_err(ParquetError)?;
    check_columns(&mut file, &metadata, |_| true, most).map_err(|refused| ParquetError(refused.why))?;
    let mut reader = ParquetReader::new(file);
    reader.set_metadata(Arc::new(metadata));
    let frame = reader.finish()?;
    check_frame(&frame, most).map_err(|refused| ParquetError(refused.why))?;
    let words = |name: &str| -> Result<Vec<Option<String>>, ParquetError> {
        Ok(frame.column(name)?.str()?.iter().map(|word| word.map(str::to_owned)).collect())
    };
    let names = words("metric")?;
    let units = words("unit")?;
    let betters = words("better")?;
    let values: Vec<Option<f64>> = frame.column("value")?.f64()?.iter().collect();
    let mut dims: Vec<Dims> = vec![Dims::new(); frame.height()];
    for dim in Dim::ALL {
        // A table of an older harness has fewer dimensions.
        if frame.column(dim.name()).is_err() {
            continue;
        }
        if dim.is_number() {
            for (dims, value) in dims.iter_mut().zip(frame.column(dim.name())?.u64()?.iter()) {
                if let Some(value) = value {
                    dims.set(dim, value);
                }
            }
        } else {
            for (dims, value) in dims.iter_mut().zip(frame.column(dim.name())?.str()?.iter()) {
                if let Some(value) = value {
                    dims.set(dim, DimValue::from(value));
                }
            }
        }
    }
    let hole = |at: usize| ParquetError(format!("row {at} has an empty cell or an unknown unit"));
    let mut rows = Vec::with_capacity(frame.height());
    for (at, dims) in dims.into_iter().enumerate() {
        let row = (|| {
            Some(Metric {
                name: Arc::from(names.get(at)?.as_deref()?),
                dims,
                value: (*values.get(at)?)?,
                unit: Unit::from_name(units.get(at)?.as_deref()?)?,
                better: better_from(betters.get(at)?.as_deref()?)?,
            })
        })();
        rows.push(row.ok_or_else(|| hole(at))?);
    }
    Ok(Metrics::from_rows(rows))
}

fn better_from(name: &str) -> Option<Better> {
    [Better::Higher, Better::Lower, Better::Neither].into_iter().find(|better| better.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_come_back_from_parquet_as_they_went_and_as_the_same_bytes() {
        let row = |name: &str, dims: Dims, value: f64| Metric {
            name: Arc::from(name),
            dims,
            value,
            unit: Unit::GigabytesPerSecond,
            better: Better::Higher,
        };
        let metrics = Metrics::from_rows(vec![
            row("nccl.busbw", Dims::new().with(Dim::Op, "scatter").with(Dim::SizeBytes, u64::MAX), 1.5),
            row("nic.rate", Dims::new().with(Dim::Node, "p5-001").with(Dim::Gpu, 7u64), -0.0),
            row("empty", Dims::new(), 0.1 + 0.2),
        ]);
        let bytes = to_parquet(&metrics).expect("written");
        assert_eq!(from_parquet(&bytes).expect("read"), metrics);
        assert_eq!(to_parquet(&metrics).expect("written again"), bytes);
    }

    #[test]
    fn no_metrics_at_all_are_a_table_too_and_a_cut_file_is_an_error() {
        let bytes = to_parquet(&Metrics::default()).expect("written");
        assert_eq!(from_parquet(&bytes).expect("read"), Metrics::default());
        assert!(from_parquet(&bytes[..bytes.len() / 2]).is_err());
        assert!(from_parquet(b"").is_err());
    }
}
