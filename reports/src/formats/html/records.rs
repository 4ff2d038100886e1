//! The section of records: for each workload and encoding the cells with seed, host, commit and configuration.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use askama::Template;
use serde_json::Value;

use super::parts::{PageState, details, rendered, swatch, table};
use crate::analysis::{Group, Report};
use crate::document::tables;
use crate::number::count;
use crate::record::RunRecord;
use crate::text::html as escape;

/// Maximum number of cells that the page lists; `data.parquet` and `tables/cells.csv` have all of them.
const MOST: usize = 2000;

pub(super) fn section(report: &Report, state: &mut PageState) -> String {
    let pointer = "<p>Each cell is one file <code>cells/KEY.json</code> of its results folder, with its \
                   complete configuration. All of them: <code>data.parquet</code> (every evaluation), \
                   <code>tables/cells.csv</code> (every cell).</p>\n";
    let groups = report.groups();
    if report.cells.len() > MOST {
        let mut out = format!(
            "{pointer}<p class=\"note\">This report has {} cells, more than a page can show. The table has the \
             number of cells of each workload and encoding.</p>\n",
            report.cells.len()
        );
        for group in &groups {
            let _ = write!(out, "<a id=\"{}\"></a>", escape(&group.anchor));
        }
        out.push('\n');
        out.push_str(&details(
            "Cells by workload and encoding",
            &table(&tables::groups(report), state),
        ));
        return out;
    }
    let mut out = pointer.to_owned();
    let mut name = "";
    for group in &groups {
        if group.workload.name != name {
            name = &group.workload.name;
            let _ = writeln!(out, "<h3>{}</h3>", escape(name));
        }
        let text = one(report, group, state);
        out.push_str(&text);
    }
    out
}

#[derive(Template)]
#[template(path = "group.html")]
struct GroupTemplate<'a> {
    group: &'a Group<'a>,
    first: &'a RunRecord,
    slot: usize,
    display: &'a str,
    count: String,
    cells: String,
    versions: String,
    configuration: String,
}

fn one(report: &Report, group: &Group<'_>, state: &mut PageState) -> String {
    let cells = table(&tables::cells(group), state);
    let configuration = Some(configuration(group)).filter(|text| state.take(text));
    let first = &group.cells[0];
    let versions: Vec<String> = first.versions.iter().map(|(k, v)| format!("{k} {v}")).collect();
    rendered(&GroupTemplate {
        group,
        first,
        slot: report.encoding(group.encoding).map_or(0, |e| e.slot),
        display: report.display(group.encoding),
        count: count(group.cells.len() as u64, "cell"),
        cells,
        versions: versions.join(", "),
        configuration: configuration.unwrap_or_default(),
    })
}

/// The configurations of a group: one where they differ in nothing but the seed.
fn configuration(group: &Group<'_>) -> String {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for cell in group.cells {
        let mut config = cell.config.clone();
        if let Some(map) = config.as_object_mut() {
            map.remove("seed");
        }
        found.entry(lines(&config)).or_default().push(cell.seed);
    }
    let several = found.len() > 1;
    let mut out = String::new();
    for (config, seeds) in found {
        let which = if several {
            let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
            format!("Configuration of seeds {}", seeds.join(", "))
        } else {
            "Configuration (without the seed)".to_owned()
        };
        out.push_str(&details(&which, &format!("<pre>{}</pre>\n", preserved(&config))));
    }
    out
}

/// One setting a line, by its path: `train.optimizer.learning_rate = 0.001`.
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

/// Escaped, line by line: escaping alone would join the lines.
fn preserved(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}
