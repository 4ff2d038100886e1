//! The grid of a workload: results at the default and at the selected value, and the cost of the grid.

use super::common::{disturbed_note, mark, with_interval};
use crate::document::table::{Table, TableCell};
use analysis::grid::{ChosenBy, GridReport, GridResult};
use analysis::ranking::Ranking;
use analysis::{Report, Workload};
use records::Metric;
use records::number::{listed, percent, si, thousands, three_digits};

/// Returns the table of a grid, one row for each encoding.
pub(crate) fn grid(report: &Report, workload: &Workload, grid: &GridReport) -> Table {
    let GridReport { grid, defaults } = grid;
    let defaults = defaults.iter().map(|ranking| ("default", ranking));
    let best = workload.rankings.iter().map(|ranking| ("best", ranking));
    let rankings: Vec<(&str, &Ranking)> = defaults.chain(best).collect();
    let mut table = Table::of(&grid.choices)
        .column("encoding", |choice| TableCell::of_encoding(report, &choice.encoding))
        .column("best value", |choice| match choice.by {
            ChosenBy::Validation => choice.value.to_string(),
            ChosenBy::Default => format!("{} (no validation)", choice.value),
        })
        .columns(
            grid.values.iter().enumerate(),
            |(_, value)| format!("validation at {value}"),
            |(index, _), choice| {
                let point = &choice.points[*index];
                let strong = point.value.total_cmp(&choice.value).is_eq();
                TableCell { strong, ..validation(workload.headline, point) }
            },
        )
        .columns(
            rankings,
            |(which, ranking)| {
                format!("{which}, {}: {}", ranking.region.name(), ranking.metric.name())
            },
            |(_, ranking), choice| {
                let result = ranking.results.iter().find(|s| s.encoding == choice.encoding);
                let estimate = result.and_then(|result| result.estimate);
                TableCell::optional(estimate, |e| with_interval(ranking.metric, &e))
            },
        )
        .column("cells", |choice| choice.spent.cells.to_string())
        .column("steps", |choice| thousands(choice.spent.steps))
        .column("training time (s)", |choice| {
            three_digits(choice.spent.seconds) + &mark(choice.spent.disturbed)
        })
        .column("FLOPs", |choice| si(choice.spent.flops))
        .table();
    table.notes = notes(report, workload, grid);
    table
}

fn validation(headline: Metric, point: &GridResult) -> TableCell {
    let Some(score) = point.validation else {
        return format!("– n={}", point.seeds).into();
    };
    let text = if headline.higher_is_better() {
        percent(score.exact_match)
    } else {
        headline.show(score.nll)
    };
    let diverged = match point.diverged {
        0 => String::new(),
        n => format!(", {n} diverged"),
    };
    TableCell::with_detail(text, format!("n={}{diverged}", point.seeds))
}

fn notes(report: &Report, workload: &Workload, grid: &analysis::grid::WorkloadGrid) -> Vec<String> {
    let by = if workload.headline.higher_is_better() {
        "the highest exact match in validation, averaged over seeds. If several values have the same exact match, the \
         one with the lowest loss is the best"
    } else {
        "the lowest loss in validation, averaged over seeds"
    };
    let mut notes = vec![format!(
        "Each encoding was trained with every value of `{}`. All numbers of this workload, except those under \
         \"default\", are for the best value of the encoding. The best value has {by}. All seeds of an encoding use \
         the same value. Validations share no sample with the evaluations. The columns from cells to FLOPs show the \
         cost of the whole grid.",
        grid.axis
    )];
    let edge: Vec<String> =
        grid.at_the_edge().into_iter().map(|name| report.display(name).to_owned()).collect();
    if !edge.is_empty() {
        notes.push(format!(
            "The best value is at the edge of the grid, so a wider grid may contain a better one: {}.",
            listed(&edge, "and")
        ));
    }
    if !grid.fresh_seeds.is_empty() {
        let seeds: Vec<String> = grid.fresh_seeds.iter().map(u64::to_string).collect();
        notes.push(format!(
            "Results at the best value are from the fresh seeds {}, which took no part in choosing it. Results under \
             \"default\" are from the seeds that were used to choose it.",
            listed(&seeds, "and")
        ));
    }
    notes.extend(disturbed_note(grid.choices.iter().map(|choice| choice.spent.disturbed)));
    if grid.choices.iter().any(|choice| choice.by == ChosenBy::Default) {
        let no =
            "No validation: no value was validated with every seed, so the default value is used.";
        notes.push(no.to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit::{TestCell, grid_cell};
    use records::{GridPoint, RunRecord};

    #[test]
    fn a_disturbed_time_of_training_is_marked() {
        let at = |encoding: &str, value: f64, jobs: u64| {
            let cell = TestCell::new("w", encoding, 0).change(|r| {
                let axis = "train.optimizer.learning_rate".to_owned();
                r.grid = Some(GridPoint { axis, value, default: value < 2e-3, fresh: false });
                r.config = serde_json::json!({ "encoding": encoding, "value": value });
                r.key = records::store::cell_key(&r.config);
                r.host.jobs = jobs;
            });
            cell.record()
        };
        let records =
            [at("cope", 1e-3, 1), at("cope", 3e-3, 1), at("rope", 1e-3, 1), at("rope", 3e-3, 2)];
        let report = Report::new(&records, &ReportMeta::default()).unwrap();
        let workload = &report.workloads[0];
        let table = grid(&report, workload, workload.grid.as_ref().unwrap());
        let column = table.columns.iter().position(|column| column == "training time (s)").unwrap();
        let seconds: Vec<&str> = table.rows.iter().map(|row| &*row[column].text).collect();
        assert_eq!(seconds, ["8.00", "8.00 †"]);
        assert!(table.notes.iter().any(|note| note.starts_with('†')), "{:?}", table.notes);
    }

    #[test]
    fn a_grid_without_validations_is_noted() {
        let blind = |r: &mut RunRecord| r.train.validations.clear();
        let records = [
            grid_cell("rope", 0, 1e-3, 0.1, 0.1).change(blind).record(),
            grid_cell("rope", 0, 3e-3, 0.9, 0.9).change(blind).record(),
        ];
        let report = Report::new(&records, &ReportMeta::default()).unwrap();
        let workload = &report.workloads[0];
        let table = grid(&report, workload, workload.grid.as_ref().unwrap());
        assert!(table.notes.iter().any(|note| note.starts_with("No valid")), "{:?}", table.notes);
    }

    #[test]
    fn the_best_and_the_default_are_shown() {
        let records: Vec<RunRecord> = (0..3_u64)
            .flat_map(|seed| {
                let s = 0.002 * seed as f64;
                [
                    grid_cell("cope", seed, 1e-3, 0.80, 0.80 + s).record(),
                    grid_cell("cope", seed, 3e-3, 0.81, 0.82 + 2.0 * s).record(),
                    grid_cell("rope", seed, 1e-3, 0.50, 0.50 + 2.0 * s).record(),
                    grid_cell("rope", seed, 3e-3, 0.95, 0.95 + s).record(),
                ]
            })
            .collect();
        let report = Report::new(&records, &ReportMeta::default()).unwrap();
        let workload = &report.workloads[0];
        let notes = crate::document::tables::summary(&report).notes;
        let chosen =
            "Chosen by validation for each encoding: `learning_rate` out of 0.001, 0.003 (on `w`).";
        assert!(notes.iter().any(|note| note == chosen), "{notes:?}");
        let table = grid(&report, workload, workload.grid.as_ref().unwrap());
        let rope: Vec<&str> = table.rows[1].iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(rope[1], "0.003");
        assert_eq!(rope[2..4], ["50.0%", "95.0%"]);
        assert_eq!(rope[8..10], ["6", "1\u{2009}200"]);
        assert!(table.columns.iter().any(|c| c.starts_with("default, on other")));
        assert!(table.columns.iter().any(|c| c.starts_with("best, on other")));
    }
}
