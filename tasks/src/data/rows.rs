//! Reading of data files as documents: text, JSON lines, Parquet.

use std::path::Path;

use serde_json::Value;

use super::error::DataError;
use super::files::read_text;
#[cfg(feature = "parquet")]
use super::parquet::column;
use super::parts::TextDocument;
use crate::files;

/// Field or column of rows that is read unless another is named.
const FIELD: &str = "text";

/// Format of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Text,
    JsonLines,
    Parquet,
}

/// Endings of data files in folders, with their formats.
const ENDINGS: &[(&str, FileKind)] = &[
    ("txt", FileKind::Text),
    ("text", FileKind::Text),
    ("raw", FileKind::Text),
    ("tokens", FileKind::Text),
    ("jsonl", FileKind::JsonLines),
    ("ndjson", FileKind::JsonLines),
    ("parquet", FileKind::Parquet),
];

fn format_by_ending(path: &Path) -> Option<FileKind> {
    let ending = path.extension()?.to_str()?;
    ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format)
}

/// Whether a file in a folder is a data file.
pub(super) fn is_data(path: &Path) -> bool {
    format_by_ending(path).is_some()
}

/// Lists the endings of data files for messages.
pub(super) fn endings() -> String {
    ENDINGS.iter().map(|(ending, _)| format!(".{ending}")).collect::<Vec<_>>().join(", ")
}

/// Reads the documents of a file in order. `name` is its path within the data; the number of the row is appended.
pub(super) fn documents(
    path: &Path,
    name: &str,
    field: Option<&str>,
) -> Result<Vec<TextDocument>, DataError> {
    let numbered = |texts: Vec<String>| {
        let rows = texts.into_iter().enumerate();
        let document = |(row, text)| TextDocument {
            name: format!("{name}:{row}"),
            text: files::without_marks(text),
        };
        rows.map(document).collect()
    };
    match format_by_ending(path).unwrap_or(FileKind::Text) {
        FileKind::Text => match field {
            Some(field) => {
                Err(DataError::FieldOfText { path: path.into(), field: field.to_owned() })
            }
            None => Ok(vec![TextDocument { name: name.to_owned(), text: read_text(path)? }]),
        },
        FileKind::JsonLines => json_lines(path, field.unwrap_or(FIELD)).map(numbered),
        #[cfg(feature = "parquet")]
        FileKind::Parquet => column(path, field.unwrap_or(FIELD)).map(numbered),
        #[cfg(not(feature = "parquet"))]
        FileKind::Parquet => Err(DataError::NoParquet { path: path.into() }),
    }
}

fn json_lines(path: &Path, field: &str) -> Result<Vec<String>, DataError> {
    each_line(path, field, |line| {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let Value::Object(mut fields) = value else {
            return Err("the line is not an object".to_owned());
        };
        match fields.remove(field) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(format!("`{field}` is {other}")),
            None => {
                let known: Vec<_> = fields.keys().map(String::as_str).collect();
                Err(format!("the line has no `{field}`, only {}", known.join(", ")))
            }
        }
    })
}

fn each_line<T>(
    path: &Path,
    field: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, DataError> {
    let text = read_text(path)?;
    files::json_lines(&text)
        .map(|(number, line)| {
            let (path, field) = (path.to_path_buf(), field.to_owned());
            read(line).map_err(|why| DataError::Line { path, line: number, field, why })
        })
        .collect()
}

/// Serialises documents as JSON lines with `name` and `text`.
pub(crate) fn documents_text(documents: &[TextDocument]) -> String {
    let lines = documents.iter().map(|document| {
        // A structure of strings has no value that JSON cannot hold.
        serde_json::to_string(document).unwrap_or_default() + "\n"
    });
    lines.collect()
}

/// Reads a file written by [`documents_text`].
pub(crate) fn named_documents(path: &Path) -> Result<Vec<TextDocument>, DataError> {
    each_line(path, FIELD, |line| serde_json::from_str(line).map_err(|e| e.to_string()))
}
