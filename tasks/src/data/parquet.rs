//! Reading of one column of a Parquet file.

use std::fs::File;
use std::io::{Cursor, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use polars::prelude::{ArrowDataType, ParallelStrategy, ParquetReader, SerReader};
use polars_buffer::Buffer;
use polars_parquet::parquet::metadata::ColumnChunkMetadata;
use polars_parquet::parquet::page::CompressedPage;
use polars_parquet::parquet::read::PageReader;

use super::error::DataError;
use super::files::open;
use crate::caught::caught;
use crate::files::FileError;

/// Reads the strings of a column.
///
/// The file may be damaged: its footer and the headers of its pages are checked against each other and against the size of
/// the file before memory is allocated by their numbers, and a panic of the reader is an error.
pub(super) fn column(path: &Path, name: &str) -> Result<Vec<String>, DataError> {
    let broken = |why: String| DataError::Parquet { path: path.into(), why };
    let file = open(path)?;
    let size = file.metadata().map_err(FileError::of("read", path))?.len();
    let pages = file.try_clone().map_err(FileError::of("read", path))?;

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
            return Err(wrong(format!("column `{name}` does not contain strings")));
        }
        Some(_) => {}
    }
    caught(|| agrees(&mut reader, &pages, name, size)).map_err(broken)?;
    let frame = caught(|| {
        let reader = reader.with_columns(Some(vec![name.to_owned()]));
        let reader = reader.read_parallel(ParallelStrategy::None);
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

/// Checks that the numbers of rows, values and bytes in the footer and in the headers of pages are consistent. The reader
/// allocates memory by them, and an impossible allocation would abort the program.
fn agrees(
    reader: &mut ParquetReader<File>,
    mut file: &File,
    name: &str,
    size: u64,
) -> Result<(), String> {
    let metadata = reader.get_metadata().map_err(|error| error.to_string())?;
    let mut rows = 0_usize;
    for group in &metadata.row_groups {
        rows = rows.saturating_add(group.num_rows());
        for chunk in group.columns_under_root_iter(name).into_iter().flatten() {
            let values = usize::try_from(chunk.num_values()).ok();
            let bytes = u64::try_from(chunk.compressed_size()).ok();
            if values != Some(group.num_rows()) || bytes.is_none_or(|bytes| bytes > size) {
                return Err("a row group does not have the size that the footer states".to_owned());
            }
            let range = chunk.byte_range();
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(range.start))
                .and_then(|_| file.take(range.end - range.start).read_to_end(&mut bytes))
                .map_err(|error| error.to_string())?;
            pages_agree(bytes, chunk)?;
        }
    }
    if rows == metadata.num_rows {
        Ok(())
    } else {
        Err(format!("its footer states {} rows, but its row groups have {rows}", metadata.num_rows))
    }
}

/// Checks that the pages of a column have the number of values and at most the size that the footer states.
fn pages_agree(bytes: Vec<u8>, chunk: &ColumnChunkMetadata) -> Result<(), String> {
    let stated = usize::try_from(chunk.num_values()).unwrap_or(0);
    let most_bytes = usize::try_from(chunk.uncompressed_size()).unwrap_or(0);
    let len = bytes.len();
    let mut values = 0_usize;
    for page in PageReader::new(Cursor::new(Buffer::from(bytes)), chunk, Vec::new(), len) {
        let page = page.map_err(|error| error.to_string())?;
        let CompressedPage::Data(page) = page else { continue };
        values = values.saturating_add(page.num_values());
        if values > stated || page.uncompressed_size() > most_bytes {
            return Err("a page is larger than the footer states for its column".to_owned());
        }
    }
    if values == stated {
        Ok(())
    } else {
        Err(format!("its pages have {values} values, but its footer states {stated}"))
    }
}
