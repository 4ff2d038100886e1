//! Reports on records of experiments.
//!
//! [`document`] turns the numbers of an [`analysis::Report`] into sentences, tables and figures, and [`formats`] lays those
//! out as HTML, Markdown, CSV, TeX, Parquet and SVG. [`compare`], [`trend`] and [`reproduction`] build documents of their own. [`write_report`] runs the whole chain, from records to files.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod compare;
pub mod document;
pub mod formats;
mod report;
pub mod reproduction;
#[cfg(test)]
mod testkit;
mod text;
pub mod trend;

pub use formats::{PageFoot, PlainPage, html_document, html_table, markdown_document, plain_page};
pub use report::{
    Rendered, ReportError, ReportSummary, leaders_svg, render_report, write_files, write_report,
};
