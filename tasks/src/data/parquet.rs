//! Reading of one column of a Parquet file.

use std::fs::File;
use std::path::Path;

use polars::prelude::{ArrowDataType, ParquetReader, SerReader};

use super::error::DataError;
use super::files::open;
use crate::caught::caught;
use crate::files::FileError;

/// Reads the strings of a column.
///
/// The file may be damaged: its footer is checked against itself and against the size of the file before memory is
/// allocated by its numbers, and a panic of the reader is an error.
pub(super) fn column(path: &Path, name: &str) -> Result<Vec<String>, DataError> {
    let broken = |why: String| DataError::Parquet { path: path.into(), why };
    let file = open(path)?;
    let size = file.metadata().map_err(FileError::of("read", path))?.len();

    let mut reader = ParquetReader::new(file);
    let schema = caught(|| reader.schema().map_err(|error| error.to_string())).map_err(broken)?;
    let is_text = |kind: &ArrowDataType| {
        matches!(kind, ArrowDataType::Utf8 | ArrowDataType::LargeUtf8 | ArrowDataType::Utf8View)
    };
    let wrong = |why: String| {
        let known = schema.iter_values().filter(|f| is_text(&f.dtype)).map(|f| f.name.as_str());
        let known = known.collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        DataError::Column { path: path.into(), why, known }
    };
    match schema.get(name) {
        None => return Err(wrong(format!("there is no column `{name}`"))),
        Some(found) if !is_text(&found.dtype) => {
            return Err(wrong(format!("column `{name}` is not of strings")));
        }
        Some(_) => {}
    }
    caught(|| agrees(&mut reader, name, size)).map_err(broken)?;
    let frame = caught(|| {
        let reader = reader.with_columns(Some(vec![name.to_owned()]));
        reader.finish().map_err(|error| error.to_string())
    });
    let frame = frame.map_err(broken)?;
    let texts = frame.column(name).and_then(|column| column.str().cloned());
    let texts = texts.map_err(|error| broken(error.to_string()))?;
    let rows = texts.iter().enumerate();
    rows.map(|(row, text)| {
        let null = || wrong(format!("row {row} of column `{name}` is null"));
        text.map(str::to_owned).ok_or_else(null)
    })
    .collect()
}

/// Checks that the footer's numbers of rows, values and bytes are consistent. The reader allocates memory by them, and
/// an impossible allocation would abort the program.
fn agrees(reader: &mut ParquetReader<File>, name: &str, size: u64) -> Result<(), String> {
    let metadata = reader.get_metadata().map_err(|error| error.to_string())?;
    let mut rows = 0_usize;
    for group in &metadata.row_groups {
        rows = rows.saturating_add(group.num_rows());
        for chunk in group.columns_under_root_iter(name).into_iter().flatten() {
            let values = usize::try_from(chunk.num_values()).ok();
            let bytes = u64::try_from(chunk.compressed_size()).ok();
            if values != Some(group.num_rows()) || bytes.is_none_or(|bytes| bytes > size) {
                return Err("a group of rows does not have the size in its footer".to_owned());
            }
        }
    }
    if rows == metadata.num_rows {
        Ok(())
    } else {
        Err(format!("its footer counts {} rows, its groups {rows}", metadata.num_rows))
    }
}
