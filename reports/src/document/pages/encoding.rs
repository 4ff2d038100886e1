//! The page of an encoding: where it wins and loses, its prices, its gates.

use super::{PagePaths, explained, figure_of};
use crate::analysis::ranking::{EncodingResult, RankedPair, Ranking, separable};
use crate::analysis::run_metrics::RunMetrics;
use crate::analysis::{Encoding, Overall, Report, Workload, YARDSTICK};
use crate::document::figures::{Figure, Subject};
use crate::document::section::{Document, DocumentFigure, Section};
use crate::document::table::{Table, TableCell};
use crate::document::tables;
use crate::number::{
    capital, count, listed, percent, points, separator, thousands, value_and_interval,
};

/// Largest number of names in a cell; of more, all but the last places are names, and the others are counted.
const NAMED: usize = 6;

/// Builds the page of an encoding.
pub(crate) fn encoding(
    report: &Report,
    figures: &[Figure],
    paths: &PagePaths,
    own: &Encoding,
) -> Document {
    let name = &own.name;
    let described = report.meta.description(name);
    let mut paragraphs: Vec<String> = described.iter().map(|found| found.summary.clone()).collect();
    paragraphs.extend(standing(report, name));
    let mut sections = vec![
        Section::of_table("Where it wins and loses", contests(report, paths, name)),
        Section::of("By length and split", by_length(report, figures, own), Vec::new()),
        Section::of_table("Prices", prices(report, paths, name)),
    ];
    sections.extend(over_others(report, paths, name));
    sections.push(gates(report, own));
    sections.extend(inspected(report, name));
    sections.retain(|section| !section.is_empty());
    explained(Document { title: own.display.clone(), paragraphs, sections, ..Document::default() })
}

/// Workloads that rank the encoding, with the ranking of the deciding region and its result.
fn results<'a>(
    report: &'a Report,
    name: &'a str,
) -> impl Iterator<Item = (&'a Workload, &'a Ranking, &'a EncodingResult)> {
    report.workloads.iter().filter_map(move |workload| {
        let ranking = workload.deciding()?;
        let result = ranking.results.iter().find(|result| result.encoding == name)?;
        Some((workload, ranking, result))
    })
}

/// Returns sentences on the aggregate, the first ranks, and the comparison with RoPE.
fn standing(report: &Report, name: &str) -> Vec<String> {
    let display = report.display(name);
    let mut sentences = Vec::new();
    if let Some(overall) = &report.overall
        && let Some(place) = overall.scores.iter().position(|score| score.encoding == name)
    {
        let score = &overall.scores[place];
        sentences.push(format!(
            "{} over {}: {}, number {} of {}.",
            capital(Overall::NAME),
            count(overall.scored.len() as u64, "workload"),
            value_and_interval(percent(score.value), score.ci95, points),
            place + 1,
            count(overall.scores.len() as u64, "encoding"),
        ));
    }
    let telling: Vec<_> =
        results(report, name).filter(|(_, ranking, _)| ranking.has_several_ranks()).collect();
    if !telling.is_empty() {
        let first = telling.iter().filter(|(.., result)| result.group == Some(1));
        let first: Vec<String> = first.map(|(workload, ..)| workload.name.clone()).collect();
        let on =
            if first.is_empty() { String::new() } else { format!(": {}", listed(&first, "and")) };
        sentences.push(format!(
            "In the first rank on {} of {} with several ranks{on}.",
            first.len(),
            count(telling.len() as u64, "workload"),
        ));
    }
    if name != YARDSTICK && report.encoding(YARDSTICK).is_some() {
        let against = |better: bool| -> Vec<String> {
            let won = |(_, ranking, _): &(&Workload, &Ranking, &EncodingResult)| {
                let (a, b) = if better { (name, YARDSTICK) } else { (YARDSTICK, name) };
                won_against(ranking, a).any(|other| other == b)
            };
            results(report, name).filter(won).map(|(workload, ..)| workload.name.clone()).collect()
        };
        let on = |names: &[String]| match names {
            [] => "no workload".to_owned(),
            names => listed(names, "and"),
        };
        sentences.push(format!(
            "{display} is significantly better than {} on {}, and significantly worse on {}.",
            report.display(YARDSTICK),
            on(&against(true)),
            on(&against(false)),
        ));
    }
    if let Some(ratio) = report.meta.time_ratio(name, YARDSTICK).filter(|_| name != YARDSTICK) {
        sentences.push(format!(
            "A training step takes {ratio:.2} times as long as with {}, measured alone ({}).",
            report.display(YARDSTICK),
            report.meta.measured_at
        ));
    }
    sentences
}

/// Names of the encodings that are significantly worse than this one in a ranking.
fn won_against<'a>(ranking: &'a Ranking, name: &'a str) -> impl Iterator<Item = &'a str> {
    let won = move |pair: &&RankedPair| pair.better == name && separable(Some(&pair.comparison));
    ranking.pairs.iter().filter(won).map(|pair| &*pair.worse)
}

/// Returns the table of all workloads: score, rank, and the encodings that are significantly worse and better.
fn contests(report: &Report, paths: &PagePaths, name: &str) -> Table {
    let names = |found: Vec<&str>| -> TableCell {
        let shown: Vec<&str> = found.iter().map(|name| report.display(name)).collect();
        match shown.as_slice() {
            [] => "–".into(),
            all if all.len() <= NAMED => all.join(separator(all)).into(),
            [first @ .., _] => {
                let first = &first[..NAMED - 1];
                let names = first.join(separator(first));
                format!("{names} and {} more", found.len() - first.len()).into()
            }
        }
    };
    let columns = [
        "workload",
        "score",
        "chance",
        "rank",
        "best mean",
        "significantly better than",
        "significantly worse than",
    ];
    Table::of(columns, results(report, name), |(workload, ranking, result)| {
        let metric = ranking.metric;
        let best = ranking.ranked().first().map(|best| best.display.clone());
        let lost = |pair: &&RankedPair| pair.worse == name && separable(Some(&pair.comparison));
        let lost = ranking.pairs.iter().filter(lost).map(|pair| &*pair.better);
        let score = TableCell::optional(result.estimate, |e| {
            let interval = e.ci95.map(|ci| format!("[{}]", metric.show_interval(ci)));
            TableCell {
                strong: result.group == Some(1) && ranking.has_several_ranks(),
                ..TableCell::with_detail(metric.show(e.mean), interval.unwrap_or_default())
            }
        });
        vec![
            TableCell {
                detail: format!("{}, {}", metric.name(), ranking.region.name()),
                ..paths.cell_of(workload)
            },
            score,
            TableCell::optional(ranking.chance, percent),
            TableCell::optional(result.group, |rank| rank.to_string()),
            TableCell::optional(best, TableCell::from),
            names(won_against(ranking, name).collect()),
            names(lost.collect()),
        ]
    })
    .with_legend(
        "Score: mean over the evaluations of the region and over seeds, with its 95 % interval. Bold: first rank. \
         Significant: paired by seed, with Holm's correction over all pairs of the workload.",
    )
}

/// Figures of all workloads with this encoding, RoPE, and the best of the workload.
fn by_length(report: &Report, figures: &[Figure], own: &Encoding) -> Vec<DocumentFigure> {
    let slot = |name: &str| report.encoding(name).map(|encoding| encoding.slot);
    let of_workload = |workload: &Workload| {
        let best = workload
            .deciding()
            .and_then(|ranking| Some(ranking.ranked().first()?.encoding.clone()));
        let slots: Vec<usize> =
            [Some(own.slot), slot(YARDSTICK), best.and_then(|name| slot(&name))]
                .into_iter()
                .flatten()
                .collect();
        let headline = figures.iter().filter(|figure| {
            figure.subject == Subject::Headline && figure.workload.as_ref() == Some(&workload.name)
        });
        // The first one is along the lengths, if there are several.
        headline.take(1).filter_map(|figure| figure_of(figure, &slots)).collect::<Vec<_>>()
    };
    let evaluated = |workload: &&Workload| workload.rows.iter().any(|row| row.encoding == own.name);
    report.workloads.iter().filter(evaluated).flat_map(of_workload).collect()
}

/// Returns the table of costs relative to RoPE, and of the chosen learning rates.
fn prices(report: &Report, paths: &PagePaths, name: &str) -> Table {
    let columns = [
        "workload",
        "its parameters",
        "FLOPs\ntimes RoPE's",
        "step time\ntimes RoPE's",
        "peak memory\ntimes RoPE's",
        "chosen rate",
        "fit rate",
    ];
    let costs = report.workloads.iter().filter_map(|workload| {
        Some((workload, workload.costs.iter().find(|cost| cost.encoding == name)?))
    });
    let ratio = |value: Option<f64>| TableCell::optional(value, |x| format!("{x:.2}"));
    Table::of(columns, costs, |(workload, cost)| {
        let chosen = workload.grid.as_ref().and_then(|found| found.grid.choice(name));
        let metrics = workload.run_metrics.iter().find(|metrics| metrics.encoding == name);
        vec![
            paths.cell_of(workload),
            thousands(cost.params_encoding).into(),
            ratio(cost.flops_ratio),
            ratio(cost.sound_step_ratio()),
            ratio(cost.memory_ratio),
            TableCell::optional(chosen, |choice| choice.value.to_string()),
            TableCell::optional(metrics.and_then(RunMetrics::fit_rate), percent),
        ]
    })
    .with_legend(
        "Prices: of a training step, relative to RoPE on the same workload. Step times are left out where cells of \
         either ran beside others, on a busy machine or for fewer than 100 steps. Chosen rate: by validation, from a grid. Fit rate: share of seeds that \
         solved training.",
    )
    .without_empty_columns()
}

/// Section with the probabilities of improvement over every other encoding.
fn over_others(report: &Report, paths: &PagePaths, name: &str) -> Option<Section> {
    let overall = report.overall.as_ref()?;
    let others = overall.ranked.iter().filter(|other| overall.improvement(name, other).is_some());
    let table = Table::of(["over", "probability of improvement"], others, |other| {
        let link = paths.encoding(other);
        let first = TableCell { link, ..TableCell::of_encoding(report, other) };
        vec![first, tables::improvement(overall, name, other)]
    });
    let table = table.with_legend(tables::improvement_legend(overall));
    Some(Section::of_table("Over the other encodings", table))
}

/// Section with the gate scores of the encoding.
fn gates(report: &Report, own: &Encoding) -> Section {
    let of_workload = |workload: &Workload| {
        let mut table = tables::gates(report, workload);
        table.rows.retain(|row| row.first().is_some_and(|cell| cell.encoding == Some(own.slot)));
        table.unlink();
        (!table.rows.is_empty()).then(|| (workload.name.clone(), table))
    };
    let tables = report.workloads.iter().filter_map(of_workload).collect();
    Section::of("Gate scores", Vec::new(), tables)
}

/// Section with links to the pages about single cells of the encoding.
fn inspected(report: &Report, name: &str) -> Option<Section> {
    let groups = report.groups();
    let own = groups.iter().filter(|group| group.encoding == name);
    let mut rows = Vec::new();
    for group in own.filter(|_| !report.meta.inspected.is_empty()) {
        for cell in report.cells_of(group).ok()? {
            let page = report.meta.inspected.iter().find(|(key, _)| *key == cell.key);
            rows.extend(page.map(|(_, path)| {
                let maps = "attention maps and gates";
                let page = TableCell { link: Some(path.clone()), ..TableCell::from(maps) };
                vec![group.workload.name.clone().into(), cell.seed.to_string().into(), page]
            }));
        }
    }
    let table = Table::of(["workload", "seed", "page"], rows, |row| row).in_words();
    Some(Section::of_table("Attention of trained cells", table))
}
