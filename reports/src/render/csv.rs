//! `report.csv`: aggregated evaluations. `cells.csv`: one row per cell. Empty fields: no value.

use polars::prelude::*;

use crate::model::Report;
use crate::render::OutFile;
use crate::report::ReportError;

pub(super) fn render(report: &Report) -> Result<Vec<OutFile>, ReportError> {
    let mut files = Vec::new();
    for (path, frame) in [("report.csv", &report.aggregate), ("cells.csv", &report.runs)] {
        let mut bytes = Vec::new();
        CsvWriter::new(&mut bytes).finish(&mut frame.clone())?;
        files.push(OutFile { path: path.to_owned(), bytes });
    }
    Ok(files)
}
