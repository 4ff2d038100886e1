//! Section of records: the cells of each workload and encoding with seed, host, commit and configuration.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use askama::Template;
use polars::prelude::PolarsResult;
use serde_json::Value;

use super::parts::{PageState, details, rendered, swatch, table};
use crate::analysis::{CellRow, Group, Report};
use crate::document::tables;
use crate::formats::contents::Contents;
use crate::number::{count, joined};
use crate::text::html as escape;

/// Maximum number of cells on the page; `data.parquet` and `tables/cells.csv` contain all of them.
const MOST: usize = 2000;

pub(super) fn section(contents: &Contents<'_>, state: &mut PageState) -> PolarsResult<String> {
    let Contents { report, .. } = contents;
    let files = [
        ("parquet", "<code>data.parquet</code> (every evaluation)"),
        ("csv", "<code>tables/cells.csv</code> (every cell)"),
    ];
    let files = files.into_iter().filter(|(format, _)| contents.has(format));
    let files: Vec<&str> = files.map(|(_, file)| file).collect();
    let all = if files.is_empty() {
        String::new()
    } else {
        format!(" All of them: {}.", files.join(", "))
    };
    let pointer = format!(
        "<p>Each cell is one file <code>cells/KEY.json</code> of its results folder, with its complete \
         configuration.{all}</p>\n"
    );
    let groups = report.groups();
    let count = report.frames.cells.height();
    if count > MOST {
        let mut out = format!(
            "{pointer}<p class=\"note\">This report has {count} cells, more than a page can show. The table has the \
             number of cells of each workload and encoding.</p>\n"
        );
        for group in &groups {
            let _ = write!(out, "<a id=\"{}\"></a>", escape(&group.anchor));
        }
        out.push('\n');
        out.push_str(&details(
            "Cells by workload and encoding",
            &table(&tables::groups(report), state),
        ));
        return Ok(out);
    }
    let mut out = pointer;
    let mut name = "";
    for group in &groups {
        if group.workload.name != name {
            name = &group.workload.name;
            let _ = writeln!(out, "<h3>{}</h3>", escape(name));
        }
        let text = one(report, group, state)?;
        out.push_str(&text);
    }
    Ok(out)
}

#[derive(Template)]
#[template(path = "group.html")]
struct GroupTemplate<'a> {
    group: &'a Group<'a>,
    first: &'a CellRow,
    slot: usize,
    display: &'a str,
    count: String,
    cells: String,
    configuration: String,
}

fn one(report: &Report, group: &Group<'_>, state: &mut PageState) -> PolarsResult<String> {
    let listed = report.cells_of(group)?;
    let cells = table(&tables::cells(&listed), state);
    let configuration = Some(configuration(&listed)).filter(|text| state.take(text));
    Ok(rendered(&GroupTemplate {
        group,
        first: &listed[0],
        slot: report.encoding(group.encoding).map_or(0, |e| e.slot),
        display: report.display(group.encoding),
        count: count(group.count, "cell"),
        cells,
        configuration: configuration.unwrap_or_default(),
    }))
}

/// Renders the configurations of a group; cells that differ only in the seed share one.
fn configuration(cells: &[CellRow]) -> String {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for cell in cells {
        let mut config: Value = serde_json::from_str(&cell.config).unwrap_or_default();
        if let Some(map) = config.as_object_mut() {
            map.remove("seed");
        }
        found.entry(lines(&config)).or_default().push(cell.seed);
    }
    let several = found.len() > 1;
    let mut out = String::new();
    for (config, seeds) in found {
        let which = if several {
            format!("Configuration of seeds {}", joined(seeds, ", "))
        } else {
            "Configuration (without the seed)".to_owned()
        };
        out.push_str(&details(&which, &format!("<pre>{}</pre>\n", preserved(&config))));
    }
    out
}

/// Formats a configuration with one setting per line: `train.optimizer.learning_rate = 0.001`.
fn lines(config: &Value) -> String {
    let mut out = String::new();
    flatten("", config, &mut out);
    out
}

fn flatten(path: &str, value: &Value, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, out);
            }
        }
        value => {
            let _ = writeln!(out, "{path} = {value}");
        }
    }
}

/// Escapes text line by line, so that line breaks are kept.
fn preserved(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}
