//! Tables that fit the terminal.

use reports::document::Table;

use super::out::say;

/// Number of characters to which a column is cut before another one is dropped.
const ENOUGH: usize = 40;

/// Number of characters that every column keeps.
const LEAST: usize = 8;

/// Rows of texts under heads.
#[derive(Default)]
pub(super) struct TerminalTable<'a> {
    /// Heads of the columns; empty for rows without heads.
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Heads of columns that a narrow terminal drops, the least important first.
    pub(super) spare: &'a [&'a str],
    /// Whether all columns but the first have numbers, which are aligned to the right.
    pub(super) numbers: bool,
}

impl From<&Table> for TerminalTable<'_> {
    /// The main texts of a table of a report.
    fn from(table: &Table) -> Self {
        let first = |head: &String| head.split('\n').next().unwrap_or_default().to_owned();
        let rows = table.rows.iter();
        Self {
            heads: table.columns.iter().map(first).collect(),
            rows: rows.map(|row| row.iter().map(|cell| cell.text.clone()).collect()).collect(),
            spare: &[],
            numbers: !table.words,
        }
    }
}

impl TerminalTable<'_> {
    /// Prints the table in the width of the terminal.
    pub(super) fn say(&self) {
        self.lines(width()).iter().for_each(|line| say(line));
    }

    /// Lines of at most `width` characters. A very wide column is cut. Otherwise spare columns are dropped, which a last line
    /// names, and then the widest columns are cut.
    pub(super) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let heads = Some(&self.heads).filter(|heads| !heads.is_empty());
        let rows = heads.into_iter().chain(&self.rows).collect::<Vec<_>>();
        let count = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let text = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
        let breadth = |column| rows.iter().map(|row| text(row, column).chars().count()).max();
        let mut shown =
            (0..count).map(|column| (column, breadth(column).unwrap_or(0))).collect::<Vec<_>>();
        let limit = width.unwrap_or(usize::MAX);
        let is_spare = |name: &&&str| self.heads.iter().any(|head| head == **name);
        let mut spare = self.spare.iter().filter(is_spare);
        let mut dropped = Vec::new();
        loop {
            let total: usize = shown.iter().map(|(_, breadth)| breadth + 2).sum();
            let over = total.saturating_sub(limit.saturating_add(2));
            let widest = shown.iter_mut().max_by_key(|(_, breadth)| *breadth);
            let Some((_, breadth)) = widest.filter(|_| over > 0) else { break };
            if *breadth >= ENOUGH + over || count == 1 {
                *breadth -= over.min(*breadth);
                break;
            }
            if let Some(name) = spare.next() {
                shown.retain(|(column, _)| self.heads[*column] != *name);
                dropped.push(*name);
                continue;
            }
            let room: usize = shown.iter().map(|(_, breadth)| breadth.saturating_sub(LEAST)).sum();
            if room < over && shown.len() > 1 {
                let last = shown.pop().map_or(0, |(column, _)| column);
                dropped.push(self.heads.get(last).map_or("…", |head| head));
                continue;
            }
            // The widest columns become equally wide.
            for _ in 0..over {
                let widest = shown.iter_mut().max_by_key(|(_, breadth)| *breadth);
                if let Some((_, breadth)) = widest {
                    *breadth = breadth.saturating_sub(1);
                }
            }
            break;
        }
        let line = |row: &&Vec<String>| {
            let cells = shown.iter().enumerate().map(|(at, (column, breadth))| {
                let text = cut(&text(row, *column), *breadth);
                if self.numbers && at > 0 {
                    format!("{text:>breadth$}")
                } else {
                    format!("{text:<breadth$}")
                }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut lines = rows.iter().map(line).collect::<Vec<_>>();
        if !dropped.is_empty() {
            let note = format!("(a wider terminal also shows: {})", dropped.join(", "));
            let note = wrapped(&note, limit, "", |text| text.chars().count());
            lines.extend(note.iter().map(|line| cut(line, limit)));
        }
        lines
    }
}

/// Breaks a text between words into lines of at most `limit` characters, as `shown` counts them; those after the first are
/// indented.
pub(super) fn wrapped(
    text: &str,
    limit: usize,
    indent: &str,
    shown: impl Fn(&str) -> usize,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if shown(line) + 1 + shown(word) <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{indent}{word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Width of the terminal on standard output; `None` if it is not a terminal, in which case nothing is cut.
pub(super) fn width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Cuts a text to a number of characters, without line breaks.
pub(super) fn cut(text: &str, breadth: usize) -> String {
    let text = text.replace('\n', " ");
    if text.chars().count() <= breadth {
        return text;
    }
    text.chars().take(breadth.saturating_sub(1)).chain(['…']).collect()
}

/// Prints a header and rows in aligned columns.
pub(super) fn say_table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = Vec<String>>,
) {
    let (heads, rows) = (row(header), rows.into_iter().collect());
    TerminalTable { heads, rows, ..TerminalTable::default() }.say();
}

/// Prints rows in aligned columns.
pub(super) fn say_rows(rows: Vec<Vec<String>>) {
    TerminalTable { rows, ..TerminalTable::default() }.say();
}

/// A row of texts.
pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(spare: &'static [&str]) -> TerminalTable<'static> {
        TerminalTable {
            heads: row(["split", "interval", "better"]),
            rows: vec![
                row(["in-distribution", "-1.0 to 2.0", "cope"]),
                row(["dense", "0.5 to 1.5", "not separable"]),
            ],
            spare,
            numbers: true,
        }
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let lines = columns(&["interval"]).lines(None);
        assert_eq!(lines[1], "in-distribution  -1.0 to 2.0           cope");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_dropped_columns_are_named() {
        for width in 1..60 {
            let lines = columns(&["interval"]).lines(Some(width));
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:?}");
        }
        let spare = columns(&["interval"]).lines(Some(40));
        assert_eq!(spare[1], "in-distribution           cope");
        assert_eq!(spare[3], "(a wider terminal also shows: interval)");
        let narrow = columns(&["interval"]).lines(Some(25));
        assert_eq!(narrow[1], "in-distribu…         cope", "both columns are cut");
    }

    #[test]
    fn a_long_text_is_cut_before_a_column_is_dropped() {
        let heads = row(["id", "facts", "summary"]);
        let rows = vec![row(["a", "b", &"word ".repeat(30)])];
        let wide = TerminalTable { heads, rows, spare: &["facts"], numbers: false };
        let lines = wide.lines(Some(80));
        assert!(lines[0].starts_with("id  facts  summary") && lines.len() == 2, "{lines:?}");
        assert!(lines[1].ends_with('…') && lines[1].chars().count() == 80, "{lines:?}");
        assert!(wide.lines(Some(46))[0].starts_with("id  summary"), "{:?}", wide.lines(Some(46)));
    }
}
