use records::testkit::TestCell;

use super::*;
use crate::{Report, ReportMeta};

const HEAD: &str = "encoding,task,train_len,seed,split,len,score";

fn read(lines: &[&str]) -> Result<Vec<RunRecord>, ScoresError> {
    let csv = lines.join("\n");
    records_of_scores(csv.as_bytes(), str::to_uppercase)
}

#[test]
fn scores_of_another_program_get_the_ranks_and_tests_of_records() {
    let mut lines = vec![HEAD.to_owned()];
    let mut own = Vec::new();
    for (encoding, better) in [("rope", 0.0), ("cope", 0.3), ("alibi", 0.29)] {
        for seed in 0..8_u64 {
            let noise = 0.01 * ((seed * 7 + 3) % 5) as f64;
            let scores =
                [("in-distribution", 64, 0.9 + noise), ("sparse", 128, 0.4 + better + noise)];
            let mut cell = TestCell::new("copy", encoding, seed).without_evals();
            cell = cell.change(|record| record.task.chance = None);
            for (split, len, score) in scores {
                lines.push(format!("{encoding},copy,64,{seed},{split},{len},{score}"));
                cell = cell.eval(split, split == TRAINED, len, score);
            }
            own.push(cell.record());
        }
    }
    let lines = lines.iter().map(String::as_str).collect::<Vec<_>>();
    let judged = read(&lines).unwrap();
    assert_eq!(judged.len(), 24);
    assert_eq!(judged[0].encoding.label, "ALIBI");
    let reports =
        [own, judged].map(|records| Report::new(records, &ReportMeta::default()).unwrap());
    let ranks = reports.each_ref().map(|report| {
        let ranking = report.workloads[0].deciding().unwrap();
        let results = ranking.results.iter();
        let results = results.map(|one| (&one.encoding, one.rank, &one.estimate, &one.per_seed));
        let pairs = ranking.pairs.iter().map(|pair| (&pair.better, &pair.worse, &pair.comparison));
        format!("{:?} {:?}", results.collect::<Vec<_>>(), pairs.collect::<Vec<_>>())
    });
    assert!(ranks[0].contains("cope"), "{}", ranks[0]);
    assert_eq!(ranks[0], ranks[1]);
}

#[test]
fn answers_and_costs_are_kept() {
    let head = format!("{HEAD},answers,step_flops,step_seconds,peak_bytes,params,chance");
    let records =
        read(&[&head, "rope,mine,8,3,longer,16,0.75,1101,5000,0.25,1024,99,0.1"]).unwrap();
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!((record.flops.train_step, record.params.total), (5000, 99));
    assert_eq!(record.train.step_seconds_median, Some(0.25));
    assert_eq!(record.peak_bytes, Some(1024));
    let eval = &record.evals[0];
    assert_eq!((eval.samples, eval.exact_match, eval.chance), (4, 0.75, Some(0.1)));
    let outcomes = eval.outcomes.as_ref().unwrap();
    assert_eq!(outcomes.answers, Answers::ExactMatch(vec![true, true, false, true]));
    assert!(!eval.in_distribution && eval.trained_split == Some(false));
}

#[test]
fn lines_of_a_cell_or_task_that_disagree_are_refused() {
    let refused = |lines: &[&str], expected: &str| {
        let error = read(lines).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    // One seed in two forms.
    for seed in ["00", "+0"] {
        let again = format!("rope,copy,8,{seed},s,8,0.9");
        refused(&[HEAD, "rope,copy,8,0,s,8,0.5", &again], "line 3: split is `s`");
    }
    let metric = format!("{HEAD},metric");
    refused(
        &[&metric, "rope,copy,8,0,s,8,0.5,", "alibi,copy,8,0,s,8,1.5,perplexity"],
        "line 3: metric is `perplexity`, expected the same metric",
    );
    let costs = format!("{HEAD},params,step_flops,chance");
    let first = "rope,copy,8,0,s,8,0.5,10,5,0.1";
    refused(&[&costs, first, "rope,copy,8,0,s,16,0.5,99,5,0.1"], "line 3: params is `99`");
    refused(&[&costs, first, "rope,copy,8,0,s,16,0.5,10,7,0.1"], "line 3: step_flops is `7`");
    assert_eq!(read(&[&costs, first, "rope,copy,8,0,s,16,0.5,,,"]).unwrap().len(), 1);
    for chance in ["NaN", "inf", "-5", "1e300"] {
        let line = format!("rope,copy,8,0,s,8,0.5,10,5,{chance}");
        refused(
            &[&costs, &line],
            &format!("line 2: chance is `{chance}`, expected an exact match"),
        );
    }
    refused(&[&format!("{HEAD},score"), "rope,copy,8,0,s,8,0.5,0.6"], "`score` occurs twice");
    refused(&[HEAD, "rope,copy,8,0,s,8,0.5,7"], "a line has more fields than the first line");
    let open = read(&[HEAD, "rope,copy,8,0,\"s,8,0.5"]).unwrap_err().to_string();
    assert!(!open.contains("infer_schema") && !open.contains("Consider"), "{open}");
}

#[test]
fn what_cannot_be_used_is_named_with_its_line() {
    let refused = |lines: &[&str], expected: &str| {
        let error = read(lines).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&["encoding,task"], "no column `train_len`");
    refused(&[&format!("{HEAD},loss"), "a,b,1,2,c,4,0.5,1"], "unknown column `loss`");
    refused(&[HEAD], "no line");
    refused(&[HEAD, "rope,copy,8,0,s,8,0.5", "rope,copy,8,1,s,8,1.5"], "line 3: score is `1.5`");
    refused(&[HEAD, "rope,copy,8,x,s,8,0.5"], "line 2: seed is `x`");
    refused(&[HEAD, "rope,copy,8,0,,8,0.5"], "line 2: split is ``");
    refused(&[HEAD, "rope,copy,8,0,s,8,0.5", "rope,copy,8,0,s,8,0.6"], "line 3: split is `s`");
    let answers = format!("{HEAD},answers");
    refused(&[&answers, "rope,copy,8,0,s,8,0.5,1110"], "a share of 0.5 right answers");
    refused(&[&answers, "rope,copy,8,0,s,8,0.5,1x"], "digits 0 and 1");
    let metric = format!("{HEAD},metric");
    refused(&[&metric, "rope,copy,8,0,s,8,0.5,perplexity"], "a perplexity of at least 1");
    refused(
        &[&metric, "rope,copy,8,0,s,8,0.5,", "rope,copy,8,0,s,9,1.5,perplexity"],
        "line 3: metric is `perplexity`, expected the same metric in all lines of a task",
    );
}
