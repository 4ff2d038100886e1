//! Tables fitted to the width of the terminal.

use reports::document::Table;

/// Width of the terminal on standard output; `None` if it is not a terminal, in which case nothing is cut.
pub(super) fn width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Formats a table within `width`. Columns named in `spare` are dropped in that order until the table fits; then the
/// first column is shortened. A last line names the dropped columns.
pub(super) fn fit(table: &Table, width: Option<usize>, spare: &[&str]) -> Vec<String> {
    let mut columns: Vec<usize> = (0..table.columns.len()).collect();
    let cells = |row: usize, column: usize| table.rows[row][column].text.as_str();
    let breadth = |column: usize| {
        let own = table.columns[column].chars().count();
        (0..table.rows.len()).map(|row| cells(row, column).chars().count()).fold(own, usize::max)
    };
    let total = |columns: &[usize]| {
        columns.iter().map(|c| breadth(*c) + 2).sum::<usize>().saturating_sub(2)
    };
    let limit = width.unwrap_or(usize::MAX);
    let mut dropped = Vec::new();
    for name in spare {
        if total(&columns) <= limit {
            break;
        }
        if let Some(at) = columns.iter().position(|c| table.columns[*c] == *name) {
            columns.remove(at);
            dropped.push(*name);
        }
    }
    let over = total(&columns).saturating_sub(limit);
    let breadths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, c)| if at == 0 { breadth(*c).saturating_sub(over).max(8) } else { breadth(*c) })
        .collect();
    let line = |texts: Vec<&str>| {
        let padded = texts.iter().zip(&breadths).enumerate().map(|(at, (text, breadth))| {
            let text = shortened(text, *breadth);
            let space = " ".repeat(breadth - text.chars().count());
            // Names are aligned left and numbers right, as in every other table.
            if at == 0 || table.words { format!("{text}{space}") } else { format!("{space}{text}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(columns.iter().map(|c| table.columns[*c].as_str()).collect())];
    for row in 0..table.rows.len() {
        lines.push(line(columns.iter().map(|c| cells(row, *c)).collect()));
    }
    if !dropped.is_empty() {
        lines.push(format!(
            "(columns dropped to fit the terminal: {}; --json prints all)",
            dropped.join(", ")
        ));
    }
    lines
}

fn shortened(text: &str, breadth: usize) -> String {
    // Control characters of a name must not reach the terminal.
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    if text.chars().count() <= breadth {
        return text.chars().map(clean).collect();
    }
    let mut cut: String = text.chars().take(breadth.saturating_sub(1)).map(clean).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |cells: [&str; 3]| cells.map(Into::into).to_vec();
        Table {
            columns: ["split", "interval", "better"].map(str::to_owned).to_vec(),
            rows: vec![
                row(["in-distribution", "-1.0 to 2.0", "cope"]),
                row(["a\u{1b}[31m", "0.5 to 1.5", "not separable"]),
            ],
            ..Table::default()
        }
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let lines = fit(&table(), None, &["interval"]);
        assert_eq!(lines[1], "in-distribution  -1.0 to 2.0           cope");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn a_narrow_terminal_loses_spare_columns_then_parts_of_names() {
        let lines = fit(&table(), Some(40), &["interval"]);
        assert!(lines[..3].iter().all(|line| line.chars().count() <= 40), "{lines:?}");
        assert!(lines[3].contains("interval"), "{lines:?}");
        let narrow = fit(&table(), Some(25), &["interval"]);
        assert!(narrow[1].starts_with("in-distri…"), "{narrow:?}");
        assert!(narrow[..3].iter().all(|line| line.chars().count() <= 25), "{narrow:?}");
    }

    #[test]
    fn names_reach_the_terminal_without_control_characters() {
        let lines = fit(&table(), None, &[]);
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "{lines:?}");
    }
}
