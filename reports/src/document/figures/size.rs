//! The headline metric by the number of training samples, over workloads that differ in nothing else.

use std::collections::BTreeMap;

use serde_json::Value;

use super::lengths::scale_of;
use super::series::{drawn, note, series_of};
use crate::document::plot::{Axis, Figure, Lines, Marks, Plot, Point, Series};
use crate::document::scale::Scale;
use analysis::{Report, Workload};
use records::Metric;
use records::number::capital;
use records::settings::Region;

/// Setting of a record's configuration that contains the number of training samples.
const SETTING: &str = "train_samples";

/// Returns one figure for each family of workloads and each region.
pub(crate) fn figures(report: &Report) -> Vec<Figure> {
    families(report)
        .values()
        .filter(|family| family.len() > 1)
        .flat_map(|family| {
            Region::ALL.into_iter().filter_map(|region| figure(report, family, region))
        })
        .collect()
}

/// Groups workloads that differ only in the number of training samples, each group sorted by that number.
fn families(report: &Report) -> BTreeMap<String, BTreeMap<u64, &Workload>> {
    let mut families: BTreeMap<String, BTreeMap<u64, &Workload>> = BTreeMap::new();
    for workload in &report.workloads {
        let mut config = workload.config.clone();
        let Some(samples) = take(&mut config) else { continue };
        for own in ["encoding", "seed"] {
            if let Some(map) = config.as_object_mut() {
                map.remove(own);
            }
        }
        let id = format!("{} {config}", workload.task_id);
        families.entry(id).or_default().insert(samples, workload);
    }
    families
}

/// Removes the number of training samples from the settings of the task or of the training and
/// returns it.
fn take(config: &mut Value) -> Option<u64> {
    ["task", "train"].into_iter().find_map(|section| {
        let settings = config.get_mut(section)?.as_object_mut()?;
        let samples = settings.get(SETTING)?.as_u64()?;
        settings.remove(SETTING);
        Some(samples)
    })
}

fn figure(report: &Report, family: &BTreeMap<u64, &Workload>, region: Region) -> Option<Figure> {
    let mut lines: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    let mut metrics: Vec<Metric> = Vec::new();
    for (samples, workload) in family {
        let Some(ranking) = workload.ranking(region) else { continue };
        metrics.push(ranking.metric);
        for result in &ranking.results {
            let Some(estimate) = result.estimate else { continue };
            let (y, bar) = drawn(ranking.metric, &estimate);
            let note = format!("{} with {samples} samples", note(ranking.metric, &estimate));
            let point = Point { x: *samples as f64, y, bar, note };
            lines.entry(result.encoding.clone()).or_default().push(point);
        }
    }
    // Sizes ranked by token accuracy and sizes ranked by exact match have no common axis.
    let metric = *metrics.first()?;
    if lines.is_empty() || metrics.iter().any(|other| *other != metric) {
        return None;
    }
    let series: Vec<Series> =
        lines.into_iter().map(|(encoding, points)| series_of(report, &encoding, points)).collect();
    let sizes: Vec<f64> = family.keys().map(|samples| *samples as f64).collect();
    let x = Axis::new("training samples", Scale::at(&sizes));
    let y = Axis::new(metric.name(), scale_of(metric, &series));
    let plot = Plot::Lines(Lines::new(x, y, Marks::Points, series));
    let names: Vec<String> = family.values().map(|w| format!("`{}`", w.name)).collect();
    let (first, region) = (&family.values().next()?.name, region.name());
    let title = format!("{first}: {} by training samples, {region}", metric.name());
    let caption = format!(
        "{} {region} by the number of training samples, mean over seeds. Workloads: {}.",
        capital(metric.name()),
        names.join(", ")
    );
    Some(Figure::new(title, caption, plot))
}
