//! Tables as data, independent of formats.

/// A table: columns with heads, and rows of cells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Name of the table's file without extension; empty for a table without a file of its own.
    pub id: String,
    /// Heading above the table; empty until the page is laid out.
    pub caption: String,
    /// Column heads; text after `\n` is in smaller print. The first column is text, the others are numbers unless
    /// `words`.
    pub columns: Vec<String>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Vec<TableCell>>,
    /// Whether all columns contain text; otherwise all but the first contain numbers.
    pub words: bool,
    /// Whether pages show one line a row, coloured by [`TableCell::heat`], and details on demand.
    pub is_heat: bool,
    /// Number of columns that name a row, which every part of a wide table repeats; 0 stands for the first alone.
    pub keys: usize,
    /// Remarks on this table only, one sentence each.
    pub notes: Vec<String>,
    /// Explanations of the columns, one sentence each, which a document with many tables shows once.
    pub legends: Vec<String>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableCell {
    /// Main text of the cell.
    pub text: String,
    /// Text in smaller print, for example an interval and n; `\n` separates parts that may be on separate lines.
    pub detail: String,
    /// Whether the row that begins here contains reference values and belongs to no encoding.
    pub reference: bool,
    /// Whether the text is bold.
    pub strong: bool,
    /// Colour index of the encoding whose row begins here.
    pub encoding: Option<usize>,
    /// Place between the worst value, 0, and the best, 100, which pages show as a colour.
    pub heat: Option<u8>,
    /// Scores above chance of the runs of the cell, from which pages compute the aggregate of chosen columns.
    pub runs: Vec<f64>,
    /// Subject that the cell leads to on a page, for example the cells from which its number was computed.
    pub link: Option<Target>,
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl TableCell {
    /// A text with another one in smaller print.
    pub(crate) fn with_detail(text: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { text: text.into(), detail: detail.into(), ..Self::default() }
    }

    /// A value, or a dash if there is none.
    pub(crate) fn optional<T, C: Into<Self>>(value: Option<T>, show: impl FnOnce(T) -> C) -> Self {
        value.map_or_else(|| Self::from("–"), |value| show(value).into())
    }
}

impl Table {
    /// Begins a table with one row for each item; its columns follow.
    pub(crate) fn of<T>(items: impl IntoIterator<Item = T>) -> TableBuilder<T> {
        let items: Vec<T> = items.into_iter().collect();
        let rows = items.iter().map(|_| Vec::new()).collect();
        TableBuilder { items, table: Self { rows, ..Self::default() } }
    }

    /// Marks all columns as text.
    pub(crate) fn in_words(self) -> Self {
        Self { words: true, ..self }
    }

    /// Adds an explanation of the columns.
    pub(crate) fn with_legend(mut self, legend: impl Into<String>) -> Self {
        self.legends.push(legend.into());
        self
    }

    /// Names the file of the table.
    pub(crate) fn with_id(self, id: impl Into<String>) -> Self {
        Self { id: id.into(), ..self }
    }

    /// Removes the columns in which every row has a dash.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        let empty = |column: usize| self.rows.iter().all(|row| row[column].text == "–");
        let shown: Vec<usize> = (0..self.columns.len()).filter(|column| !empty(*column)).collect();
        if !self.rows.is_empty() {
            self.columns = shown.iter().map(|column| self.columns[*column].clone()).collect();
            for row in &mut self.rows {
                *row = shown.iter().map(|column| row[*column].clone()).collect();
            }
        }
        self
    }

    /// Splits the table into pieces of at most `most` columns besides the first. Every piece repeats the columns that name
    /// a row.
    pub(crate) fn pieces(&self, most: usize) -> Vec<Self> {
        let keys = self.keys.max(1);
        let columns = self.columns.len().saturating_sub(keys);
        // Pieces of nearly one width read better than a full one and a rest.
        let count = columns.div_ceil(most.saturating_sub(keys - 1).max(1)).max(1);
        let width = columns.div_ceil(count).max(1);
        (0..count)
            .map(|piece| {
                let from = keys + piece * width;
                let to = (from + width).min(self.columns.len());
                let cut = |row: &[TableCell]| [&row[..keys], &row[from..to]].concat();
                let last = piece + 1 == count;
                Self {
                    id: self.id.clone(),
                    caption: self.caption.clone(),
                    columns: [&self.columns[..keys], &self.columns[from..to]].concat(),
                    rows: self.rows.iter().map(|row| cut(row)).collect(),
                    words: self.words,
                    is_heat: self.is_heat,
                    keys: self.keys,
                    notes: if last { self.notes.clone() } else { Vec::new() },
                    legends: if last { self.legends.clone() } else { Vec::new() },
                }
            })
            .collect()
    }
}

/// A table that is declared by its columns.
pub(crate) struct TableBuilder<T> {
    items: Vec<T>,
    table: Table,
}

impl<T> TableBuilder<T> {
    /// Adds a column: its head, and the cell of each item.
    pub(crate) fn column<C: Into<TableCell>>(
        mut self,
        head: impl Into<String>,
        cell: impl Fn(&T) -> C,
    ) -> Self {
        self.table.columns.push(head.into());
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.push(cell(item).into());
        }
        self
    }

    /// Adds one column for each key: its head, and the cell of each item.
    pub(crate) fn columns<K>(
        self,
        keys: impl IntoIterator<Item = K>,
        head: impl Fn(&K) -> String,
        cell: impl Fn(&K, &T) -> TableCell,
    ) -> Self {
        keys.into_iter().fold(self, |table, key| table.column(head(&key), |item| cell(&key, item)))
    }

    /// Returns the table with all columns.
    pub(crate) fn table(self) -> Table {
        self.table
    }
}

/// A row of plain texts.
pub(crate) fn texts<const N: usize>(texts: [&str; N]) -> Vec<TableCell> {
    texts.map(TableCell::from).to_vec()
}

pub(crate) fn heads<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// Subject of a section that links lead to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Encoding of this name; its section is a page of its own.
    Encoding(String),
    /// Workload of this name; its section is a page of its own.
    Workload(String),
    /// Cells of the workload of this name; its section is a page of its own, and formats of one file leave it out.
    Records(String),
    /// Cells of an encoding, within those of a workload.
    Cells {
        /// Name of the workload.
        workload: String,
        /// Name of the encoding.
        encoding: String,
    },
    /// File at a path relative to the report.
    File(String),
}
