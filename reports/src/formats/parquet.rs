//! `data.parquet`: every evaluation of every cell with all settings, and one row for each cell without evaluations.

use polars::prelude::*;

use super::contents::{Contents, FormatError, OutFile};

/// Number of cells that are joined with their evaluations at a time, which bounds the memory of a report.
const BATCH: usize = 8192;

pub(super) fn render(contents: &Contents<'_>) -> Result<Vec<OutFile>, FormatError> {
    let mut bytes = Vec::new();
    let frames = contents.report.frames.clone().with_settings()?;
    let schema = frames.slice(&(0..0))?.data()?.schema().clone();
    let mut writer = ParquetWriter::new(&mut bytes).batched(&schema)?;
    for start in (0..frames.cells.height()).step_by(BATCH) {
        writer.write_batch(&frames.slice(&(start..start + BATCH))?.data()?)?;
    }
    writer.finish()?;
    drop(writer);
    Ok(vec![OutFile { path: "data.parquet".to_owned(), bytes }])
}
