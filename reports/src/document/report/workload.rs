//! The section of a workload: a sample, its result in a sentence, the best encodings, figures, ranks, evaluations and costs.

use crate::document::figures::{self, lengths};
use crate::document::plot::{Figure, Plot};
use crate::document::section::{Element, Section};
use crate::document::table::{Table, TableCell, Target};
use crate::document::{tables, text};
use crate::text::slug;
use analysis::ranking::Ranking;
use analysis::{Report, Workload};
use records::Metric;
use records::number::{listed, percent, separator};

/// Builds the section of a workload. `by_length` are the figures of its headline metric by length.
pub(super) fn section(report: &Report, workload: &Workload, by_length: &[Figure]) -> Section {
    let description = report.meta.description(&workload.task_id);
    let summary = description.map_or_else(String::new, |own| format!(" {}", own.summary));
    let lens: Vec<String> = workload.train_lens.iter().map(u64::to_string).collect();
    let task = format!(
        "{}.{summary} The trained length is {} {}; encodings are ranked by {}.",
        workload.task,
        listed(&lens, "and"),
        workload.len_unit,
        workload.headline.name()
    );
    let token_accuracy = if workload.headline == Metric::ExactMatch {
        lengths::figures(report, workload, Metric::TokenAccuracy)
    } else {
        Vec::new()
    };
    let costs = [
        tables::costs(report, workload).with_id(id("costs", workload)),
        tables::flops(report, workload).with_id(id("flops", workload)),
    ];
    // Runs of other programs may have no costs.
    let costs = costs.into_iter().filter(|table| table.columns.len() > 1).map(Element::Table);
    let costs =
        figures::cost::figures(report, workload).into_iter().map(Element::Figure).chain(costs);
    let evaluations = tables::evaluations(report, workload).with_id(id("evaluations", workload));
    // Lines say more than dots, of which there may be many.
    let mut results: Vec<Figure> = by_length.to_vec();
    results.extend(figures::seeds::figure(report, workload));
    let lines = results.iter().position(|figure| matches!(figure.plot, Plot::Lines(_)));
    let first = lines.or_else(|| results.len().checked_sub(1)).map(|place| results.remove(place));
    let sections = [
        Section::of_figures("Results", results).with(statistics(report, workload)),
        Section::of_figures("By sample property", figures::slices::figures(report, workload)),
        Section::of_figures("Token accuracy", token_accuracy).folded(),
        Section::of_figures("Training", figures::training::figures(report, workload)),
        Section::of("Cost", costs.collect()),
        Section::of_table("All evaluations", evaluations).folded(),
    ];
    let mut description = description.map(super::description::section);
    let sample = description.as_mut().and_then(|own| own.take(super::description::SAMPLE));
    let best = workload.deciding().map(|ranking| tables::best(report, workload, ranking));
    let mut elements = vec![Element::Prose(task)];
    elements.extend(sample.into_iter().flat_map(|sample| sample.elements));
    elements.push(Element::Prose(text::verdict(report, workload)));
    elements.extend(best.map(Element::Table));
    elements.extend(first.map(Element::Figure));
    elements.extend(text::unseen(workload).into_iter().map(Element::Prose));
    Section {
        target: Some(Target::Workload(workload.name.clone())),
        sections: sections.into_iter().chain(description).collect(),
        ..Section::of(&workload.name, elements)
    }
}

/// Returns the name of a table of a workload, with the workload's number where names could meet.
fn id(table: &str, workload: &Workload) -> String {
    format!("{table}-{}-{}", workload.index + 1, slug(&workload.name))
}

/// Returns the statistical tables: ranks in distribution and beyond training, run metrics, gate scores, ablations, the
/// grid.
fn statistics(report: &Report, workload: &Workload) -> Vec<Section> {
    let section = |heading: String, name: String, table: Table| {
        Section::of_table(heading, table.with_id(id(&name, workload)))
    };
    let ranks = workload.rankings.iter().map(|ranking| {
        let (heading, name) = (ranking.region.name(), ranking.region.id());
        let table = tables::ranks(report, workload, ranking);
        section(format!("Ranks {heading}"), format!("ranks-{name}"), table)
    });
    let metrics = tables::run_metrics(report, workload);
    let metrics = section("Solving and effective length".into(), "solving".into(), metrics);
    let gates = section("Gate scores".into(), "gates".into(), tables::gates(report, workload));
    let bases = report.settings.ablation_base.iter();
    let changes = bases.flat_map(|base| workload.rankings.iter().map(move |of| (base, of)));
    let changes = changes.map(|(base, ranking)| {
        let region = ranking.region;
        let heading = format!("Changes of {}, {}", report.display(base), region.name());
        section(heading, format!("changes-{}", region.id()), tables::ablation(ranking, base))
    });
    let grid = workload.grid.iter().map(|grid| {
        let table = tables::grid(report, workload, grid);
        section(format!("Grid of {}", grid.grid.short_axis()), "grid".into(), table)
    });
    ranks.chain([metrics, gates]).chain(changes).chain(grid).collect()
}

/// Returns a cell with the name of a workload that leads to its section.
pub(super) fn name(workload: &Workload) -> TableCell {
    let link = Some(Target::Workload(workload.name.clone()));
    TableCell { link, ..TableCell::from(&workload.name) }
}

/// Returns the table of workloads.
pub(super) fn table(report: &Report) -> Table {
    let ranked = report.workloads.iter().filter_map(|w| Some((w, w.deciding()?)));
    Table::of(ranked)
        .column("workload", |(workload, _)| name(workload))
        .column("evaluations", |(_, ranking)| ranking.region.name())
        .column("first rank", |(_, ranking)| first_rank(ranking))
        .column("best mean", |(_, ranking)| {
            let best = ranking.ranked().first().and_then(|best| best.estimate);
            TableCell::optional(best, |estimate| ranking.metric.show(estimate.mean))
        })
        .column("chance", |(_, ranking)| TableCell::optional(ranking.chance, percent))
        .table()
        .in_words()
}

/// Returns the names of the encodings of the first rank, of many only the first.
fn first_rank(ranking: &Ranking) -> String {
    let ranked = ranking.ranked();
    let first = ranked.iter().filter(|result| result.group == Some(1));
    let first: Vec<String> = first.map(|result| result.display.clone()).collect();
    match (ranking.has_several_ranks(), first.len()) {
        (false, _) if ranking.separates() => {
            "no ranks, although some pairs differ significantly".to_owned()
        }
        (false, _) => "no ranks: no two encodings differ significantly".to_owned(),
        (true, 0..=5) => listed(&first, "and"),
        (true, n) => format!("{} and {} more", first[..4].join(separator(&first[..4])), n - 4),
    }
}
