//! The cells of a report: their number by workload and encoding, and each of them with its settings.

use std::collections::{BTreeMap, BTreeSet};

use polars::prelude::PolarsResult;
use serde_json::Value;

use crate::document::section::{Element, Section};
use crate::document::table::Target;
use crate::document::tables;
use analysis::{CellRow, Group, Report, Workload};
use records::number::{joined, numbered};

/// Settings of a cell without its seed, one `path = value` each.
type SettingLines = BTreeSet<String>;

/// Builds the section of cells.
///
/// # Errors
/// If polars cannot read the cells.
pub(super) fn section(report: &Report) -> PolarsResult<Section> {
    let groups = report.groups();
    let of_workload = |workload: &Workload| {
        let groups = groups.iter().filter(|group| group.workload.index == workload.index);
        records(report, workload, &groups.collect::<Vec<_>>())
    };
    let records: Vec<Section> =
        report.workloads.iter().map(of_workload).collect::<PolarsResult<_>>()?;
    let about = "Each cell is one file `cells/KEY.json` of its results folder, with its complete configuration. \
                 `data.parquet` has every evaluation, and `tables/cells.csv` has every cell.";
    let elements = vec![Element::Prose(about.to_owned()), Element::Table(tables::groups(report))];
    Ok(Section::of("Cells", elements).with(records).folded())
}

/// Builds the section of the cells of a workload: what all settings share, then the cells of each encoding.
fn records(report: &Report, workload: &Workload, groups: &[&Group<'_>]) -> PolarsResult<Section> {
    let cells: Vec<Vec<(CellRow, SettingLines)>> = groups
        .iter()
        .map(|group| Ok(report.cells_of(group)?.into_iter().map(with_settings).collect()))
        .collect::<PolarsResult<_>>()?;
    let mut settings = cells.iter().flatten().map(|(_, lines)| lines);
    let first = settings.next().cloned().unwrap_or_default();
    let shared: SettingLines = settings.fold(first, |shared, lines| &shared & lines);
    let sections = groups.iter().zip(cells).map(|(group, cells)| {
        let mut elements = vec![Element::Table(tables::cells(cells.iter().map(|(cell, _)| cell)))];
        if let Some((cell, _)) = cells.first() {
            elements.push(Element::Prose(format!(
                "Encoding `{}`; task `{}`, version {}; {}.",
                group.encoding, cell.task, cell.task_version, cell.versions
            )));
        }
        elements.extend(own_settings(&cells, &shared));
        Section {
            target: Some(Target::Cells {
                workload: workload.name.clone(),
                encoding: group.encoding.to_owned(),
            }),
            ..Section::of(report.display(group.encoding), elements)
        }
    });
    let elements = vec![
        Element::Prose("Settings that all cells share, without the seed:".to_owned()),
        Element::Code(joined(&shared, "\n")),
    ];
    Ok(Section {
        target: Some(Target::Records(workload.name.clone())),
        sections: sections.collect(),
        ..Section::of(format!("Cells of {}", workload.name), elements)
    })
}

/// Returns the settings of the cells of an encoding that not all cells of the workload share, with their seeds.
fn own_settings(cells: &[(CellRow, SettingLines)], shared: &SettingLines) -> Vec<Element> {
    let mut seeds: BTreeMap<Vec<&String>, Vec<u64>> = BTreeMap::new();
    for (cell, lines) in cells {
        seeds.entry(lines.difference(shared).collect()).or_default().push(cell.seed);
    }
    let elements =
        seeds.into_iter().filter(|(lines, _)| !lines.is_empty()).flat_map(|(lines, seeds)| {
            let seeds = format!("Settings of {}:", numbered("seed", &seeds));
            [Element::Prose(seeds), Element::Code(joined(lines, "\n"))]
        });
    elements.collect()
}

fn with_settings(cell: CellRow) -> (CellRow, SettingLines) {
    let mut config: Value = serde_json::from_str(&cell.config).unwrap_or_default();
    if let Some(map) = config.as_object_mut() {
        map.remove("seed");
    }
    let mut lines = SettingLines::new();
    flatten("", &config, &mut lines);
    (cell, lines)
}

/// Adds the values below `path`, one per line: `train.optimizer.learning_rate = 0.001`.
fn flatten(path: &str, value: &Value, lines: &mut SettingLines) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, lines);
            }
        }
        value => {
            lines.insert(format!("{path} = {value}"));
        }
    }
}
