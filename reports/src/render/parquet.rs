//! `data.parquet`: every evaluation of every cell, and a row for each cell without any.

use polars::prelude::*;

use super::{Contents, Format, OutFile};
use crate::frame::data_frame;
use crate::report::ReportError;

pub(super) struct Parquet;

impl Format for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn render(&self, contents: &Contents<'_>) -> Result<Vec<OutFile>, ReportError> {
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).finish(&mut data_frame(&contents.report.cells)?)?;
        Ok(vec![OutFile { path: "data.parquet".to_owned(), bytes }])
    }
}
