//! Formats of a report. A new format is a file here that implements [`Format`] and a line in [`FORMATS`].

mod chart;
mod contents;
mod csv;
mod html;
mod markdown;
mod paper;
mod parquet;
mod png;
mod svg;
mod tex;

pub use self::contents::{Contents, Format, FormatError, OutFile};
pub use self::html::{html_document, html_table, plain_page};
pub(crate) use self::markdown::headline;
pub use self::markdown::{markdown_document, whole_table};
pub use self::paper::table_csv;
pub use self::tex::{TexWidth, tex_table};

/// All formats that [`crate::write_report`] writes.
pub const FORMATS: &[&dyn Format] = &[
    &html::Html,
    &markdown::Markdown,
    &csv::Csv,
    &tex::Tex,
    &paper::PaperTables,
    &parquet::Parquet,
    &svg::Svg,
    &png::Png,
];

#[cfg(test)]
mod tests;
