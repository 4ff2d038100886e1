//! The section of an encoding: where it wins and loses, its prices, its gates.

use super::workload;
use crate::document::figures::forest;
use crate::document::plot::{Figure, Plot, Series};
use crate::document::scale::Scale;
use crate::document::section::{Element, Section};
use crate::document::table::{Table, TableCell, Target};
use crate::document::{tables, text};
use analysis::ranking::{EncodingResult, RankedPair, Ranking, separable};
use analysis::run_metrics::RunMetrics;
use analysis::{Encoding, Report, Workload, YARDSTICK};
use records::number::{percent, separator, thousands};

/// Largest number of names in a cell; of more, all but the last places are names, and the others are counted.
const NAMED: usize = 6;

/// Parts that the sections of all encodings share, by workload.
pub(super) struct SharedParts {
    /// Figures of the headline metric by length.
    pub(super) by_length: Vec<Vec<Figure>>,
    /// Comparisons with RoPE in the deciding region.
    pub(super) contrasts: Vec<Vec<RankedPair>>,
}

/// Builds the section of an encoding: what is found, its formula, how to use it, and then the numbers.
pub(super) fn section(report: &Report, encoding: &Encoding, shared: &SharedParts) -> Section {
    let name = &encoding.name;
    let known = report.meta.description(name);
    let summary = known.map(|description| Element::Prose(description.summary.clone()));
    let found = Element::List(text::encoding(report, name, &shared.contrasts));
    let mut description = known.map(super::description::section);
    let formula = description.as_mut().and_then(|own| own.take(super::description::FORMULA));
    let figures = forest::against_rope(report, name, &shared.contrasts);
    let mut sections: Vec<Section> = formula.into_iter().collect();
    sections.extend(known.and_then(|known| use_of(encoding, known.acts_outside)));
    sections.extend([
        Section::of_figures("Against RoPE", figures),
        Section::of_table("Where it wins and loses", contests(report, name)),
        Section::of_figures("By length and split", by_length(report, &shared.by_length, encoding)),
        Section::of_table("Costs", prices(report, name)).folded(),
    ]);
    sections.extend(over_others(report, name).map(Section::folded));
    sections.push(gates(report, encoding));
    sections.extend(inspected(report, name));
    sections.extend(description);
    Section {
        target: Some(Target::Encoding(name.clone())),
        sections,
        ..Section::of(&encoding.display, summary.into_iter().chain([found]).collect())
    }
}

/// Returns how to use an encoding in Rust, on the command line and in PyTorch: in a layer of attention, or in a whole model if it
/// acts outside of attention. `None` for a name that is no expression.
fn use_of(encoding: &Encoding, acts_outside: bool) -> Option<Section> {
    let name = &encoding.id;
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_+.,(){}[]/= \"".contains(c);
    if !name.chars().all(is_part) {
        return None;
    }
    let (rust, torch) = if acts_outside {
        (
            format!(
                "Decoder::new(&config, vocabulary, &Combination::parse({name:?})?, &dims, &mut rng, &mut of_encoding, &device)?"
            ),
            format!("pe_zoo.torch.encoding({name:?}, heads=4, head_dim=16)"),
        )
    } else {
        (
            format!(
                "SelfAttentionConfig::new({name:?}, 64, 4, 128).init(&mut rng, &device)?.forward(x)?"
            ),
            format!("pe_zoo.torch.SelfAttention(64, heads=4, encoding={name:?})(x)"),
        )
    };
    let control = if name == YARDSTICK { "" } else { ",rope" };
    let lines = [
        "# Rust".to_owned(),
        rust,
        "# command line".to_owned(),
        format!("pe-bench run quick --encodings '{name}{control}'"),
        "# PyTorch".to_owned(),
        torch,
    ];
    Some(Section::of("How to use it", vec![Element::Code(lines.join("\n"))]))
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

/// Returns the table of all workloads: score, rank, and the encodings that are significantly worse and better.
fn contests(report: &Report, name: &str) -> Table {
    let significant = |ranking: &Ranking, is_better: bool| {
        let pairs = ranking.pairs.iter().filter(|pair| separable(Some(&pair.comparison)));
        let others = pairs.filter_map(|RankedPair { better, worse, .. }| {
            let (own, other) = if is_better { (better, worse) } else { (worse, better) };
            (own == name).then(|| report.display(other))
        });
        listed_or_dash(&others.collect::<Vec<_>>())
    };
    Table::of(results(report, name))
        .column("workload", |(workload, ranking, _)| {
            let detail = format!("{}, {}", ranking.metric.name(), ranking.region.name());
            TableCell { detail, ..workload::name(workload) }
        })
        .column("score", |(_, ranking, result)| {
            let strong = result.group == Some(1);
            let metric = ranking.metric;
            TableCell::optional(result.estimate, |estimate| {
                let interval = estimate.ci95.map(|ci| format!("[{}]", metric.show_interval(ci)));
                let mean = metric.show(estimate.mean);
                TableCell { strong, ..TableCell::with_detail(mean, interval.unwrap_or_default()) }
            })
        })
        .column("chance", |(_, ranking, _)| TableCell::optional(ranking.chance, percent))
        .column("rank", |(.., result)| TableCell::optional(result.group, |rank| rank.to_string()))
        .column("best mean", |(_, ranking, _)| {
            let best = ranking.ranked().first().map(|best| best.display.clone());
            TableCell::optional(best, TableCell::from)
        })
        .column("significantly better than", |(_, ranking, _)| significant(ranking, true))
        .column("significantly worse than", |(_, ranking, _)| significant(ranking, false))
        .table()
        .with_legend(
            "Score: the mean over the evaluations of the region and over seeds, with its 95% interval. Bold: first \
             rank. Significance: tests paired by seed, with Holm's correction over all pairs of the workload.",
        )
}

/// Joins names, of many only the first; a dash for none.
fn listed_or_dash(names: &[&str]) -> String {
    match names {
        [] => "–".to_owned(),
        all if all.len() <= NAMED => all.join(separator(all)),
        [first @ .., _] => {
            let first = &first[..NAMED - 1];
            format!("{} and {} more", first.join(separator(first)), names.len() - first.len())
        }
    }
}

/// Returns a figure of each workload with this encoding, RoPE, and the best of the workload. Lines of shares share one figure.
fn by_length(report: &Report, figures: &[Vec<Figure>], encoding: &Encoding) -> Vec<Figure> {
    let look = |name: &str| report.encoding(name).map(|encoding| encoding.look);
    let evaluated =
        |workload: &Workload| workload.rows.iter().any(|row| row.encoding == encoding.name);
    let of_workload = |(workload, figures): (&Workload, &Vec<Figure>)| {
        let best = workload.deciding().and_then(|ranking| ranking.ranked().into_iter().next());
        let best = best.and_then(|best| look(&best.encoding));
        let looks = [Some(encoding.look), look(YARDSTICK), best];
        let looks: Vec<usize> = looks.into_iter().flatten().collect();
        // The first one is along the lengths, if there are several.
        let first = figures.first().filter(|_| evaluated(workload))?;
        Some((workload.name.clone(), of_looks(first, &looks)?))
    };
    let (mut panels, mut others) = (Vec::new(), Vec::new());
    for (name, figure) in report.workloads.iter().zip(figures).filter_map(of_workload) {
        match figure.plot {
            Plot::Lines(lines) if lines.y.scale == Scale::percent() => {
                panels.push((name, lines));
            }
            plot => others.push(Figure { plot, ..figure }),
        }
    }
    let title = format!("{} by length", encoding.display);
    let caption = "Exact match by length, on each workload's split with several lengths, of this encoding, RoPE and \
         the best encoding of the workload. Vertical line: trained length; dashed line: chance.";
    let panels = (!panels.is_empty()).then(|| Figure::new(title, caption, Plot::Panels(panels)));
    panels.into_iter().chain(others).collect()
}

/// Keeps the series of these looks in a figure; `None` if none remains.
fn of_looks(figure: &Figure, looks: &[usize]) -> Option<Figure> {
    let mut figure = figure.clone();
    let keep = |series: &mut Vec<Series>| {
        series.retain(|series| looks.contains(&series.look));
        series.len()
    };
    let series: usize = match &mut figure.plot {
        Plot::Lines(lines) => keep(&mut lines.series),
        Plot::Dots(dots) => dots.groups.iter_mut().map(|(_, series)| keep(series)).sum(),
        Plot::Scatter(_) | Plot::Heat(_) | Plot::Matrix(_) | Plot::Panels(_) => 0,
    };
    (series > 0).then_some(figure)
}

/// Returns the table of costs relative to RoPE, and of the chosen learning rates.
fn prices(report: &Report, name: &str) -> Table {
    let costs = report.workloads.iter().filter_map(|workload| {
        Some((workload, workload.costs.iter().find(|cost| cost.encoding == name)?))
    });
    let ratio = |value: Option<f64>| TableCell::optional(value, |x| format!("{x:.2}"));
    Table::of(costs)
        .column("workload", |(workload, _)| workload::name(workload))
        .column("parameters of the encoding", |(_, cost)| thousands(cost.params_encoding))
        .column("FLOPs\nrelative to RoPE", |(_, cost)| ratio(cost.flops_ratio))
        .column("step time\nrelative to RoPE", |(_, cost)| ratio(cost.sound_step_ratio()))
        .column("peak memory\nrelative to RoPE", |(_, cost)| ratio(cost.memory_ratio))
        .column("chosen learning rate", |(workload, _)| {
            let chosen = workload.grid.as_ref().and_then(|grid| grid.grid.choice(name));
            TableCell::optional(chosen, |choice| choice.value.to_string())
        })
        .column("fit rate", |(workload, _)| {
            let metrics = workload.run_metrics.iter().find(|metrics| metrics.encoding == name);
            TableCell::optional(metrics.and_then(RunMetrics::fit_rate), percent)
        })
        .table()
    .with_legend(
        "Costs are per training step and relative to RoPE on the same workload. Step times are left out if cells of \
         the encoding or of RoPE ran concurrently with other cells, on a busy machine or for fewer than 100 steps. \
         Chosen learning rate: the rate that validation chose from a grid. Fit rate: the share of seeds that solved \
         training.",
    )
    .without_empty_columns()
}

/// Returns the section with the probabilities of improvement over every other encoding.
fn over_others(report: &Report, name: &str) -> Option<Section> {
    let overall = report.overall.as_ref()?;
    let others = overall.ranked.iter().filter(|other| overall.improvement(name, other).is_some());
    let table = Table::of(others)
        .column("over", |other| TableCell::of_encoding(report, other))
        .column("probability of improvement", |other| tables::improvement(overall, name, other))
        .table();
    let table = table.with_legend(tables::improvement_legend(overall));
    Some(Section::of_table("Against the other encodings", table))
}

/// Returns the section with the gate scores of the encoding.
fn gates(report: &Report, encoding: &Encoding) -> Section {
    let of_workload = |workload: &Workload| {
        let mut table = tables::gates(report, workload);
        let is_own = |cell: &TableCell| cell.encoding == Some(encoding.look);
        table.rows.retain(|row| row.first().is_some_and(is_own));
        Section::of_table(&workload.name, table)
    };
    Section::of("Gate scores", Vec::new()).with(report.workloads.iter().map(of_workload))
}

/// Returns the section with links to the pages about single cells of the encoding.
fn inspected(report: &Report, name: &str) -> Option<Section> {
    let groups = report.groups();
    let cells = groups.iter().filter(|group| group.encoding == name);
    let mut pages = Vec::new();
    for group in cells.filter(|_| !report.meta.inspected.is_empty()) {
        for cell in report.cells_of(group).ok()? {
            let page = report.meta.inspected.iter().find(|(key, _)| *key == cell.key);
            pages.extend(page.map(|(_, path)| (group, cell.seed, path)));
        }
    }
    let table = Table::of(pages)
        .column("workload", |(group, ..)| group.workload.name.clone())
        .column("seed", |(_, seed, _)| seed.to_string())
        .column("page", |(.., path)| {
            let link = Some(Target::File((*path).clone()));
            TableCell { link, ..TableCell::from("attention maps and gates") }
        })
        .table()
        .in_words();
    Some(Section::of_table("Attention of trained cells", table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit::TestCell;

    #[test]
    fn every_expression_has_code_and_no_other_name() {
        let names = ["alibi{slopes=from-1/2}", "rope/nope", "<script>"];
        let cells = names.iter().flat_map(|name| {
            (0..3).map(move |seed| TestCell::new("copy", name, seed).beyond(0.5).record())
        });
        let report = Report::new(cells.collect::<Vec<_>>(), &ReportMeta::default()).unwrap();
        let has_code = names.map(|name| use_of(report.encoding(name).unwrap(), false).is_some());
        assert_eq!(has_code, [true, true, false]);
    }
}
