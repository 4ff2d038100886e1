//! Sentences on evaluations of which training draws some questions, and on answers that it lacks.

use std::collections::BTreeSet;

use analysis::Workload;
use records::number::{listed, percent};

/// Returns the sentences on a workload; none if all questions of each evaluation are alike and can be answered.
pub(crate) fn unseen(workload: &Workload) -> Vec<String> {
    let rows: BTreeSet<_> = workload
        .rows
        .iter()
        .map(|row| {
            let ceiling = row.ceiling.map(f64::to_bits);
            (row.split.as_str(), row.len, row.samples, row.unseen_samples, ceiling)
        })
        .collect();
    let (mut counted, mut trained, mut ceilings) = (Vec::new(), Vec::new(), Vec::new());
    for (split, len, samples, unseen, ceiling) in rows {
        match unseen {
            Some(0) => trained.push(format!("`{split}` at length {len}")),
            Some(unseen) => {
                counted.push(format!("{unseen} of {samples} on `{split}` at length {len}"));
            }
            None => {}
        }
        if let Some(ceiling) = ceiling.map(f64::from_bits) {
            ceilings.push(format!("{} on `{split}` at length {len}", percent(ceiling)));
        }
    }
    let mut sentences = Vec::new();
    if !counted.is_empty() {
        sentences.push(format!(
            "Only questions that are larger than every question of training count as longer: {}.",
            listed(&counted, "and")
        ));
    }
    if !trained.is_empty() {
        let all = listed(&trained, "and");
        sentences.push(format!(
            "Training can draw every question of {all}, but draws such questions less often. These questions \
             therefore count neither as in distribution nor as another distribution."
        ));
    }
    if !ceilings.is_empty() {
        sentences.push(format!(
            "Some answers practically never occur in training, so no model can be expected to give them. The best \
             exact match that can be expected on the unseen questions is {}.",
            listed(&ceilings, "and")
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{Report, ReportMeta};
    use records::testkit::TestCell;
    use records::{QuestionMarks, Unseen};

    #[test]
    fn evaluations_with_trained_sizes_are_named_and_all_others_are_not() {
        let unseen_of = |marks: Vec<bool>| Unseen {
            questions: QuestionMarks(marks),
            exact_match: 0.1,
            token_accuracy: None,
            nll: None,
            bits_per_byte: None,
            chance: None,
        };
        let cell = |change: &dyn Fn(&mut records::RunRecord)| {
            let mut record = TestCell::new("w", "rope", 0).record();
            change(&mut record);
            Report::new([record], &ReportMeta::default()).unwrap()
        };
        let none = cell(&|_| ());
        assert!(unseen(&none.workloads[0]).is_empty());
        let some = cell(&|r| {
            r.evals[1].unseen = Some(unseen_of(vec![true; 100]));
            r.evals[1].ceiling = Some(0.72);
        });
        let workload = &some.workloads[0];
        assert_eq!(
            unseen(workload),
            [
                "Only questions that are larger than every question of training count as longer: 100 of 256 on \
                 `sparse` at length 128.",
                "Some answers practically never occur in training, so no model can be expected to give them. The best \
                 exact match that can be expected on the unseen questions is 72.0% on `sparse` at length 128."
            ]
        );
        // The value of the region is that of these questions.
        assert!((workload.deciding().unwrap().results[0].mean() - 0.1).abs() < 1e-12);
        let all = cell(&|r| r.evals[1].unseen = Some(unseen_of(vec![false; 256])));
        assert!(
            unseen(&all.workloads[0])[0]
                .starts_with("Training can draw every question of `sparse`")
        );
        assert!(all.workloads[0].rankings.iter().all(|r| r.points.iter().all(|p| p.0 != "sparse")));
    }
}
