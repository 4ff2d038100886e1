//! A comparison as Markdown.

use std::fmt::Write as _;

use super::{HeadToHead, tables};
use crate::table::Table;
use crate::text::visible;

/// A page of its own.
pub fn markdown(found: &HeadToHead) -> String {
    let mut out = format!("# {} against {}\n\n", escape(&found.a.label), escape(&found.b.label));
    let _ = writeln!(
        out,
        "Differences are {} minus {}, paired by seed; shares in percentage points. Better: by more than noise after \
         Holm's correction; not separable does not mean equal. The interval is not corrected.",
        escape(&found.a.name),
        escape(&found.b.name)
    );
    for section in tables(found) {
        let _ = writeln!(out, "\n## {}\n", escape(&section.heading));
        for note in &section.notes {
            let _ = writeln!(out, "- {}", escape(note));
        }
        for (caption, table) in &section.tables {
            let _ = writeln!(out, "\n### {}\n", escape(caption));
            write_table(&mut out, table);
        }
    }
    out
}

fn write_table(out: &mut String, table: &Table) {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&line(table.columns.iter().map(|column| escape(column)).collect()));
    let rule = |index: usize| if index == 0 { "---" } else { "---:" };
    out.push_str(&line((0..table.columns.len()).map(|i| rule(i).to_owned()).collect()));
    for row in &table.rows {
        let cell = |text: &str, strong: bool| {
            let text = escape(text);
            if strong { format!("**{text}**") } else { text }
        };
        out.push_str(&line(row.iter().map(|c| cell(&c.text, c.strong)).collect()));
    }
    for note in &table.notes {
        let _ = writeln!(out, "\n{}", escape(note));
    }
}

/// Names come from files that anybody may have written: they end no cell and open no tag.
fn escape(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', letter]),
            plain => out.push(plain),
        }
    }
    out
}
