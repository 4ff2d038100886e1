//! `report.parquet`: every evaluation of every cell, not aggregated.

use polars::prelude::*;

use crate::model::Report;
use crate::render::OutFile;
use crate::report::ReportError;

pub(super) fn render(report: &Report) -> Result<Vec<OutFile>, ReportError> {
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes).finish(&mut report.evals.clone())?;
    Ok(vec![OutFile { path: "report.parquet".to_owned(), bytes }])
}
