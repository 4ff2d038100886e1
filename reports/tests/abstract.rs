//! The sentences of the abstract, checked against the records: every number is computed again from the JSON files by
//! plain loops, and every text must contain its number as it is rounded.
//!
//! The folders are `results/zoo/2-cores_2026-11` and `results/contextual/2-cores_2026-11`, or those of the environment variable
//! `PE_ZOO_ABSTRACT`, separated by colons.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use analysis::folder::read_dir;
use analysis::{Report, ReportMeta};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use records::settings::Settings;
use records::{Answers, EvalPoint, RunRecord, Status};
use reports::document::text::{AbstractSentence, abstract_of, uses};
use stats::over_tasks::interquartile_mean;

/// Values by workload, encoding and seed.
type Values = BTreeMap<String, BTreeMap<String, BTreeMap<u64, f64>>>;

/// Exact match of the deciding region and in distribution, and the chance of the deciding region by workload.
#[derive(Default)]
struct Recomputed {
    deciding: Values,
    inside: Values,
    chance: BTreeMap<String, f64>,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let center = mean(values);
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Cells that a report counts: done, the newest of their encoding and seed, and of a grid with fresh seeds only those.
fn counted(mut records: Vec<RunRecord>) -> Vec<RunRecord> {
    let with_fresh: BTreeSet<String> = records
        .iter()
        .filter(|r| r.grid.as_ref().is_some_and(|grid| grid.fresh))
        .map(|r| r.workload.clone())
        .collect();
    records.retain(|r| {
        let fresh = r.grid.as_ref().is_some_and(|grid| grid.fresh);
        r.status == Status::Done && (fresh || !with_fresh.contains(&r.workload))
    });
    records
}

/// Leaves the results on the questions that training cannot draw, from the single answers.
fn only_unseen(record: &mut RunRecord) {
    for eval in &mut record.evals {
        let (Some(unseen), Some(outcomes)) = (&eval.unseen, &eval.outcomes) else { continue };
        let Answers::ExactMatch(right) = &outcomes.answers else { panic!("losses have no labels") };
        let marked = right.iter().zip(&unseen.questions.0).filter(|(_, mark)| **mark);
        let right: Vec<f64> = marked.map(|(right, _)| f64::from(u8::from(*right))).collect();
        eval.samples = right.len() as u64;
        eval.exact_match = mean(&right);
        eval.chance = unseen.chance.or(eval.chance);
    }
    record.evals.retain(|eval| eval.samples > 0);
}

/// Values of the workloads that are ranked by a metric, better ones larger.
fn recompute(records: &[RunRecord], headline: &str) -> Recomputed {
    let records: Vec<&RunRecord> = records.iter().filter(|r| r.task.headline == headline).collect();
    let value = |eval: &EvalPoint| {
        if headline == "exact-match" { eval.exact_match } else { -eval.nll }
    };
    let mut found = Recomputed::default();
    let workloads: BTreeSet<&str> = records.iter().map(|r| &*r.workload).collect();
    for workload in workloads {
        let own: Vec<&RunRecord> =
            records.iter().copied().filter(|r| r.workload == workload).collect();
        // 0: in distribution; 1: longer; 2: other distributions; 3: both.
        let region = |record: &RunRecord, at: usize| {
            let eval = &record.evals[at];
            let known = record.evals.iter().any(|other| {
                other.split == eval.split && (other.in_distribution || other.chance.is_some())
            });
            match (eval.in_distribution, eval.len > record.train_len) {
                (true, _) => 0,
                (false, true) if eval.trained_split.unwrap_or(known) => 1,
                (false, true) => 3,
                (false, false) => 2,
            }
        };
        let evals = |record: &RunRecord, wanted: usize| -> Vec<usize> {
            (0..record.evals.len()).filter(|at| region(record, *at) == wanted).collect()
        };
        let deciding =
            [1, 2, 3, 0].into_iter().find(|r| own.iter().any(|own| !evals(own, *r).is_empty()));
        let deciding = deciding.unwrap();
        for (wanted, values) in [(deciding, &mut found.deciding), (0, &mut found.inside)] {
            for record in &own {
                let at = evals(record, wanted);
                let exact: Vec<f64> = at.iter().map(|at| value(&record.evals[*at])).collect();
                if !exact.is_empty() && (wanted != 0 || deciding != 0 || wanted == deciding) {
                    let of = values.entry(workload.to_owned()).or_default();
                    let of = of.entry(record.encoding.name.clone()).or_default();
                    of.insert(record.seed, mean(&exact));
                }
            }
        }
        let chance = |record: &RunRecord, at: usize| {
            let eval = &record.evals[at];
            let same_len = record.evals.iter().filter(|other| other.len == eval.len);
            let stand_in = same_len.filter(|_| eval.trained_split.is_none()).find_map(|e| e.chance);
            eval.chance.or(record.task.chance).or(stand_in)
        };
        let known: Option<Vec<f64>> =
            evals(own[0], deciding).into_iter().map(|at| chance(own[0], at)).collect();
        found.chance.insert(workload.to_owned(), known.map_or(0.0, |known| mean(&known)));
        if deciding == 0 {
            found.inside.remove(workload);
        }
    }
    found
}

impl Recomputed {
    /// Scores above chance of an encoding, one list of seeds for each workload.
    fn scores(&self, encoding: &str) -> Vec<Vec<f64>> {
        let of = |(workload, by_encoding): (&String, &BTreeMap<String, BTreeMap<u64, f64>>)| {
            let chance = self.chance[workload];
            by_encoding[encoding].values().map(|value| (value - chance) / (1.0 - chance)).collect()
        };
        self.deciding.iter().map(of).collect()
    }
}

/// Standard deviation of a statistic over draws of the seeds of each list with replacement.
fn bootstrap(lists: &[Vec<f64>], statistic: impl Fn(&[Vec<f64>]) -> f64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let draw = |list: &Vec<f64>, rng: &mut ChaCha8Rng| -> Vec<f64> {
        (0..list.len()).map(|_| list[rng.random_range(0..list.len())]).collect()
    };
    let draws: Vec<f64> = (0..4000)
        .map(|_| statistic(&lists.iter().map(|list| draw(list, &mut rng)).collect::<Vec<_>>()))
        .collect();
    deviation(&draws)
}

/// 97.5% quantiles of Student's t, for 1 to 15 degrees of freedom.
const T: [f64; 15] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131,
];

fn t_half_width(values: &[f64]) -> f64 {
    T[values.len() - 2] * deviation(values) / (values.len() as f64).sqrt()
}

fn close(name: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{name}: {found}, recomputed {expected}");
}

/// Checks an interval: symmetric about its value unless cut at `most`, and as wide as expected, or wider where records
/// hold the error of the questions.
fn check_interval(
    name: &str,
    value: f64,
    interval: (f64, f64),
    half: f64,
    exact: bool,
    tolerance: f64,
) {
    let (low, high) = interval;
    assert!(low <= value && value <= high, "{name}: {value} is outside of {low} to {high}");
    let found = (value - low).max(high - value);
    assert!(found >= half * (1.0 - tolerance) - 1e-9, "{name}: {found} is narrower than {half}");
    assert!(
        !exact || found <= half * (1.0 + tolerance) + 1e-9,
        "{name}: {found} is wider than {half}"
    );
}

/// Settings of the report of a folder: those of its suite.
fn settings_of(folder: &Path) -> Settings {
    let suite = folder.parent().unwrap().file_name().unwrap().to_string_lossy();
    let suites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/train/suites");
    let text = std::fs::read_to_string(suites.join(format!("{suite}.toml"))).unwrap();
    let mut suite: toml::Table = toml::from_str(&text).unwrap();
    let mut settings = toml::Table::new();
    for (section, field) in [("question", "question"), ("claim", "claims"), ("use", "uses")] {
        settings.extend(suite.remove(section).map(|value| (field.to_owned(), value)));
    }
    settings.try_into().unwrap()
}

#[expect(clippy::too_many_lines, reason = "one check for each kind of number")]
fn check(folder: &Path) {
    let mut records = read_dir(folder).unwrap();
    records.iter_mut().for_each(only_unseen);
    let (frames, errors) = analysis::frame::read_frames(folder).unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    let settings = settings_of(folder);
    let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
    let mut found = uses(&report);
    // One for each use, and one for all tasks.
    let named = settings.uses.len();
    assert_eq!(found.len(), if named > 0 { named + 1 } else { 0 }, "{found:#?}");
    let own = abstract_of(&report);
    assert_eq!(own.len(), 4, "{}: {own:#?}", folder.display());
    found.extend(own);
    let records = counted(records);
    let again = recompute(&records, "exact-match");
    let texts = recompute(&records, "perplexity");
    // Without answers to single questions, intervals are over seeds alone.
    let exact = records.iter().flat_map(|r| &r.evals).all(|eval| eval.outcomes.is_none());
    for AbstractSentence { text, numbers } in &found {
        for number in numbers {
            let words: Vec<&str> = number.name.split(' ').collect();
            if words[0] == "measured" {
                // One run of `speed`, without an interval.
                assert!(text.contains(&format!("{:.2} times the time", number.value)), "{text}");
                continue;
            }
            if let ["use", encoding, ref name @ ..] = words[..] {
                let name = name.join(" ");
                let one = settings.uses.iter().find(|one| one.name == name).unwrap();
                let values = |all: &Values| -> Option<f64> {
                    let of = |task: &String| {
                        let seeds = all.get(task)?[encoding].values().copied();
                        Some(mean(&seeds.collect::<Vec<f64>>()))
                    };
                    let means: Option<Vec<f64>> = one.tasks.iter().map(of).collect();
                    Some(mean(&means?))
                };
                let (value, shown) = if let Some(exact) = values(&again.deciding) {
                    (exact, format!("{:.1}%", 100.0 * exact))
                } else {
                    let nll = -values(&texts.deciding).unwrap();
                    (nll, format!(" {:.2}", nll.exp()))
                };
                close(&number.name, number.value, value, 1e-9);
                assert!(text.contains(&shown), "{text} lacks {shown}");
                continue;
            }
            let (low, high) = number.interval.unwrap();
            let shown = match words[0] {
                "flops" | "seconds" | "training" => {
                    format!("{:.2} times [{low:.2}, {high:.2}]", number.value)
                }
                _ => format!("[{:.1}, {:.1}]", 100.0 * low, 100.0 * high).replace("-0.0", "0.0"),
            };
            // Changes lose their sign to the verb.
            assert!(words[0] == "change" || text.contains(&shown), "{text} lacks {shown}");
            match words[..] {
                ["score", encoding] => {
                    let scores = again.scores(encoding);
                    close(
                        &number.name,
                        number.value,
                        interquartile_mean(&mut scores.concat()),
                        1e-9,
                    );
                    let n = scores.iter().map(Vec::len).min().unwrap() as f64;
                    let df = scores.iter().map(|own| own.len() - 1).sum::<usize>() / 2;
                    let factor = (n / (n - 1.0)).sqrt() * T[df.clamp(1, 15) - 1];
                    let sd = bootstrap(&scores, |lists| interquartile_mean(&mut lists.concat()));
                    check_interval(
                        &number.name,
                        number.value,
                        (low, high),
                        factor * sd,
                        exact,
                        0.1,
                    );
                }
                ["difference", better, worse, ref workload @ ..] => {
                    let own = &again.deciding[&workload.join(" ")];
                    let pairs =
                        own[better].iter().filter_map(|(seed, x)| Some(x - own[worse].get(seed)?));
                    let pairs: Vec<f64> = pairs.collect();
                    close(&number.name, number.value, mean(&pairs), 1e-9);
                    check_interval(
                        &number.name,
                        number.value,
                        (low, high),
                        t_half_width(&pairs),
                        exact,
                        0.01,
                    );
                }
                ["change", encoding] => {
                    let of = |workload: &String| {
                        let (out, inside) = (
                            &again.deciding[workload][encoding],
                            &again.inside[workload][encoding],
                        );
                        out.iter()
                            .map(|(seed, x)| (*seed, x - inside[seed]))
                            .collect::<BTreeMap<_, _>>()
                    };
                    // The workloads that have both encodings of the sentence.
                    let has_both = |workload: &&String| {
                        let names = numbers.iter().filter_map(|n| n.name.strip_prefix("change "));
                        names.into_iter().all(|name| {
                            [&again.inside, &again.deciding]
                                .iter()
                                .all(|values| values[*workload].contains_key(name))
                        })
                    };
                    let all: Vec<BTreeMap<u64, f64>> =
                        again.inside.keys().filter(has_both).map(of).collect();
                    let count = format!("means over {} workload", all.len());
                    assert!(text.contains(&count), "{text} lacks {count}");
                    let seeds =
                        all[0].keys().filter(|seed| all.iter().all(|own| own.contains_key(seed)));
                    let values: Vec<f64> = seeds
                        .map(|seed| mean(&all.iter().map(|own| own[seed]).collect::<Vec<_>>()))
                        .collect();
                    close(&number.name, number.value, mean(&values), 1e-9);
                    check_interval(
                        &number.name,
                        number.value,
                        (low, high),
                        t_half_width(&values),
                        true,
                        0.01,
                    );
                    let points = format!("{:.1} points", (100.0 * number.value).abs());
                    assert!(text.contains(&points), "{text} lacks {points}");
                }
                [kind @ ("flops" | "training"), encoding] => {
                    let workloads: BTreeSet<&str> = records.iter().map(|r| &*r.workload).collect();
                    let flops = |workload: &str, encoding: &str| {
                        let own =
                            |r: &&RunRecord| r.workload == workload && r.encoding.name == encoding;
                        let steps = |r: &RunRecord| if kind == "flops" { 1 } else { r.train.steps };
                        let all = records.iter().filter(own);
                        let all = all.map(|r| (r.flops.train_step * steps(r)) as f64);
                        let all: Vec<f64> = all.collect();
                        (!all.is_empty()).then(|| mean(&all))
                    };
                    let ratio = |workload: &&str| {
                        Some(flops(workload, encoding)? / flops(workload, "rope")?)
                    };
                    let mut ratios: Vec<f64> = workloads.iter().filter_map(ratio).collect();
                    ratios.sort_by(f64::total_cmp);
                    close(&number.name, low, ratios[0], 1e-9);
                    close(&number.name, high, *ratios.last().unwrap(), 1e-9);
                    let middle =
                        f64::midpoint(ratios[(ratios.len() - 1) / 2], ratios[ratios.len() / 2]);
                    close(&number.name, number.value, middle, 1e-9);
                }
                ["seconds", encoding] => {
                    let own =
                        records.iter().filter(|r| [encoding, "rope"].contains(&&*r.encoding.name));
                    assert!(own.clone().count() > 0);
                    assert!(
                        own.clone().all(|r| r.disturbance().is_none()),
                        "times of a busy machine are stated"
                    );
                }
                _ => panic!("unknown number {}", number.name),
            }
        }
    }
}

#[test]
fn the_sentences_of_the_abstract_hold_the_numbers_of_the_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = match std::env::var("PE_ZOO_ABSTRACT") {
        Ok(list) => list.split(':').map(PathBuf::from).collect(),
        Err(_) => ["zoo", "contextual"]
            .map(|suite| root.join("results").join(suite).join("2-cores_2026-11"))
            .to_vec(),
    };
    for folder in folders {
        check(&folder);
    }
}
