//! Formats of a report. A new format of documents is an implementation of `format::Format`, a function [`Render`] and a line in
//! [`FORMATS`].

mod chart;
mod contents;
mod csv;
mod format;
mod html;
mod markdown;
mod parquet;
mod tex;

pub(crate) use self::chart::svg;
pub use self::contents::{Contents, FormatError, OutFile, Render};
pub use self::csv::table_csv;
pub use self::html::{PageFoot, PlainPage, html_document, html_table, plain_page};
pub(crate) use self::markdown::headline;
pub use self::markdown::{markdown_document, whole_table};
pub use self::tex::{TexWidth, tex_table};

/// All formats that [`crate::write_report`] writes, by name.
pub const FORMATS: &[(&str, Render)] = &[
    ("html", |contents| Ok(html::render(contents))),
    ("markdown", |contents| Ok(markdown::render(contents))),
    ("csv", csv::render),
    ("tex", |contents| Ok(tex::render(contents))),
    ("parquet", parquet::render),
    ("svg", |contents| Ok(chart::render(contents))),
];

#[cfg(test)]
mod tests;
