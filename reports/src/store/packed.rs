//! Records in one Parquet file, `records.parquet`, for results that are kept in a repository.
//!
//! A row has the key of a cell, what it was, and its record as JSON with the checksum. Rows of similar cells are
//! neighbours, so that most of their text compresses away.

use std::io::Cursor;
use std::path::Path;

use polars::polars_utils::compression::ZstdLevel;
use polars::prelude::*;
use rayon::prelude::*;

use super::error::RecordError;
use crate::record::{CurvePoint, RunRecord, Validation};

/// Name of the file in a results folder.
pub const PACKED: &str = "records.parquet";

/// Level of compression; higher ones take longer and save less than 1 %.
const LEVEL: i32 = 19;

/// Packs records into the bytes of a Parquet file.
///
/// # Errors
/// [`RecordError::Unwritable`] and [`RecordError::Packing`].
pub fn pack(records: &[RunRecord]) -> Result<Vec<u8>, RecordError> {
    let mut order: Vec<&RunRecord> = records.iter().collect();
    order.sort_by_key(|r| {
        let fresh = r.grid.as_ref().map(|grid| grid.fresh);
        (&r.suite, &r.workload, fresh, &r.encoding.name, r.seed, &r.key)
    });
    let texts: Result<Vec<String>, RecordError> = order.iter().map(|r| r.line()).collect();
    let column = |get: fn(&RunRecord) -> &str| order.iter().map(|r| get(r)).collect::<Vec<_>>();
    let write = |texts: Vec<String>| -> PolarsResult<Vec<u8>> {
        let mut frame = df!(
            "key" => column(|r| &r.key),
            "suite" => column(|r| &r.suite),
            "workload" => column(|r| &r.workload),
            "encoding" => column(|r| &r.encoding.name),
            "seed" => order.iter().map(|r| r.seed).collect::<Vec<_>>(),
            "status" => column(|r| r.status.name()),
            "record" => texts,
        )?;
        let mut bytes = Vec::new();
        let compression = ParquetCompression::Zstd(Some(ZstdLevel::try_new(LEVEL)?));
        ParquetWriter::new(&mut bytes).with_compression(compression).finish(&mut frame)?;
        Ok(bytes)
    };
    Ok(write(texts?)?)
}

/// Reads the packed records of a results folder, with one result for each row; none without such a file.
///
/// # Errors
/// [`RecordError::Io`] if the file cannot be read, [`RecordError::Damaged`] if it is no file of packed records.
pub(super) fn read_packed(dir: &Path) -> Result<Vec<Result<RunRecord, RecordError>>, RecordError> {
    let path = dir.join(PACKED);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let bytes = std::fs::read(&path).map_err(|error| RecordError::io("read", &path, error))?;
    let texts = || -> PolarsResult<Vec<String>> {
        let frame = ParquetReader::new(Cursor::new(bytes)).finish()?;
        Ok(frame
            .column("record")?
            .str()?
            .iter()
            .map(|text| text.unwrap_or_default().to_owned())
            .collect())
    };
    let damaged =
        |error: PolarsError| RecordError::Damaged { path: path.clone(), reason: error.to_string() };
    let parsed = |text: String| RunRecord::parse(&path, text.as_bytes());
    Ok(texts().map_err(damaged)?.into_par_iter().map(parsed).collect())
}

impl RunRecord {
    /// Removes what a report of a repository does not need: results by sample property, digits of curves after the
    /// fourth, and of cells that only chose a value of a grid also the training curve, gates, and answers to single
    /// questions.
    pub fn lean(&mut self) {
        let only_chose = self.grid.as_ref().is_some_and(|grid| !grid.fresh);
        for eval in &mut self.evals {
            eval.slices.clear();
            if only_chose {
                eval.outcomes = None;
            }
        }
        if only_chose {
            self.train.curve.clear();
            self.gates.clear();
        }
        for CurvePoint { loss, learning_rate, seconds, .. } in &mut self.train.curve {
            for number in [loss, learning_rate, seconds] {
                shorten(number);
            }
        }
        let others = self.train.split_validations.iter_mut().map(|other| &mut other.result);
        for Validation { token_accuracy, nll, seconds, .. } in
            self.train.validations.iter_mut().chain(others)
        {
            for number in [token_accuracy, nll, seconds] {
                shorten(number);
            }
        }
    }
}

/// Rounds a number to four significant digits.
fn shorten(number: &mut f64) {
    *number = format!("{number:.3e}").parse().unwrap_or(*number);
}
