use super::*;
use crate::experiment::{Decay, OptimizerConfig};
use crate::experiment::{EarlyStop, ValidationConfig};

fn config(stop: Option<EarlyStop>) -> TrainConfig {
    TrainConfig {
        steps: 100,
        curve_points: 10,
        micro_batch_size: None,
        gradient_checkpointing: false,
        optimizer: OptimizerConfig {
            learning_rate: 1.0,
            warmup_steps: 0,
            decay: Decay::Constant,
            ..OptimizerConfig::default()
        },
        validation: Some(ValidationConfig {
            every_steps: Some(5),
            solved_exact_match: 0.9,
            solved_checks: 2,
            stop,
            ..ValidationConfig::default()
        }),
        ..TrainConfig::default()
    }
}

/// Simulates a training whose validations are right from step `right_from` on, with one exception.
fn trained(config: &TrainConfig, right_from: usize, slip: usize) -> (TrainProgress, Vec<f64>) {
    let (mut course, mut rates) = (TrainProgress::default(), Vec::new());
    while !course.is_over(config) {
        rates.push(course.next_rate(config));
        course.count(2.0, 10, 0.5, config);
        if course.asks_for_validation(config) {
            let right = course.step >= right_from && course.step != slip;
            let point = Validation {
                step: course.step as u64,
                exact_match: if right { 0.95 } else { 0.5 },
                token_accuracy: 1.0,
                nll: 0.0,
                samples: 4,
                seconds: course.seconds(),
            };
            course.validated(point, config);
        }
    }
    (course, rates)
}

#[test]
fn solved_is_the_first_of_two_looks_in_a_row_and_changes_nothing_by_itself() {
    let config = config(None);
    let (course, rates) = trained(&config, 30, 35);
    assert_eq!((course.step, course.validations.len()), (100, 20));
    let solved = course.solved.unwrap();
    assert_eq!((solved.step, solved.seconds, solved.exact_match), (40, 20.0, 0.9));
    assert!(!course.stops_early(&config));
    assert!(rates.iter().all(|rate| (rate - 1.0).abs() < 1e-12));
}

#[test]
fn a_solved_training_cools_down_and_ends() {
    let config = config(Some(EarlyStop { cooldown_steps: 4 }));
    let (course, rates) = trained(&config, 30, 0);
    assert_eq!(course.step, 39);
    assert!(course.stops_early(&config));
    assert_eq!(rates[34..], [1.0, 1.0, 0.75, 0.5, 0.25][..rates.len() - 34]);
    assert_eq!(course.curve.last().unwrap().step, 39);
    assert_eq!(course.validations.last().unwrap().step, 39);
}

#[test]
fn without_a_cooldown_it_ends_where_it_is_seen() {
    let config = config(Some(EarlyStop::default()));
    let (course, _) = trained(&config, 30, 0);
    assert_eq!((course.step, course.curve.last().unwrap().step), (35, 35));
}

#[test]
fn a_cooldown_beyond_the_last_step_ends_with_it() {
    let config = config(Some(EarlyStop { cooldown_steps: 50 }));
    let (course, rates) = trained(&config, 90, 0);
    assert_eq!((course.step, rates.len()), (100, 100));
    assert!(!course.stops_early(&config));
}

#[test]
fn losses_that_are_no_numbers_end_it_and_every_loss_is_in_one_point() {
    let config = config(None);
    let mut course = TrainProgress::default();
    for step in 0..15_u8 {
        course.count(f64::from(step), 10, 0.5, &config);
    }
    let losses = course.curve.iter().map(|point| point.loss).collect::<Vec<_>>();
    assert_eq!(losses, [4.5]);
    course.count(f64::NAN, 10, 0.5, &config);
    assert!(course.is_over(&config) && !course.asks_for_validation(&config));
    assert_eq!(course.diverged.as_ref().unwrap().step, 15);
    assert_eq!((course.tokens, course.step), (160, 16));
}
