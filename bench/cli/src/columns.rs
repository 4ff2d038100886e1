//! Rows of texts in aligned columns.

use super::out::say;

/// Prints a header and rows in aligned columns.
pub(super) fn say_table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = Vec<String>>,
) {
    say_rows(&std::iter::once(row(header)).chain(rows).collect::<Vec<_>>());
}

/// Prints rows in aligned columns.
pub(super) fn say_rows(rows: &[Vec<String>]) {
    for line in aligned(rows) {
        say(&line);
    }
}

/// A row of texts.
pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Pads columns to their widest entry, except for the last one.
pub(super) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths = (0..columns).map(|column| width(column).unwrap_or(0)).collect::<Vec<_>>();
    rows.iter().map(|row| padded(row, &widths)).collect()
}

/// Pads the cells of a row to these widths, except for the last one.
pub(super) fn padded(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}
