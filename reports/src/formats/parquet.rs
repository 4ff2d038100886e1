//! `data.parquet`: every evaluation of every cell, and a row for each cell without any.

use polars::prelude::*;

use super::contents::{Contents, Format, FormatError, OutFile};
use crate::frame::data_frame;

/// Cells that are turned into columns at a time: a large store's columns at once would be the most memory
/// that a report takes.
const BATCH: usize = 8192;

pub(super) struct Parquet;

impl Format for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn render(&self, contents: &Contents<'_>) -> Result<Vec<OutFile>, FormatError> {
        let mut bytes = Vec::new();
        let schema = data_frame(&[])?.schema().clone();
        let mut writer = ParquetWriter::new(&mut bytes).batched(&schema)?;
        for cells in contents.report.cells.chunks(BATCH) {
            writer.write_batch(&data_frame(cells)?)?;
        }
        writer.finish()?;
        drop(writer);
        Ok(vec![OutFile { path: "data.parquet".to_owned(), bytes }])
    }
}
