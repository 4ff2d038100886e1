//! Random programs as the authors' generator draws them.

use std::ops::RangeInclusive;

use rand_chacha::ChaCha8Rng;

use crate::random::{Weighted, below};

/// Greatest number of variables, which are named by letters.
pub(super) const MAX_VARIABLES: usize = 26;

/// One statement of a program; variables are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement {
    /// `v = 0 ;`, an assignment of zero.
    Set(u32),
    /// `pass;`, a statement without effect.
    Pass,
    /// `v ++;`, an increment of a variable.
    Increment(u32),
}

/// Program with its question and answer, not truncated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountingProgram {
    /// Statements in order of execution.
    pub statements: Vec<Statement>,
    /// Variable that is printed.
    pub query: u32,
    /// Value of that variable at the end.
    pub answer: u32,
}

/// Distribution of programs.
#[derive(Debug)]
pub(super) struct Rules {
    /// Weights of set, pass, increment.
    pub(super) odds: Weighted<3>,
    /// Number of statements.
    pub(super) ops: RangeInclusive<u32>,
    pub(super) variables: u32,
    pub(super) max_value: u32,
}

/// Variables that have a value.
struct Variables {
    values: [u32; MAX_VARIABLES],
    /// Set variables in the order in which they were first set.
    set: Vec<u32>,
}

impl Rules {
    /// Draws programs until one sets a variable that can be printed.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> CountingProgram {
        let (fewest, spread) = (*self.ops.start(), self.ops.end() - self.ops.start() + 1);
        let mut statements = Vec::new();
        let mut state = Variables {
            values: [0; MAX_VARIABLES],
            set: Vec::with_capacity(self.variables as usize),
        };
        while state.set.is_empty() {
            let ops = (fewest + below(rng, spread)) as usize;
            statements.clear();
            statements.reserve(ops);
            while statements.len() < ops {
                statements.extend(self.statement(&mut state, rng));
            }
        }
        let query = state.any(rng);
        CountingProgram { statements, query, answer: state.values[query as usize] }
    }

    /// Draws and executes one statement; `None` if it is impossible.
    fn statement(&self, state: &mut Variables, rng: &mut ChaCha8Rng) -> Option<Statement> {
        let (choice, _) = self.odds.draw(rng);
        match choice {
            0 => {
                let variable = below(rng, self.variables);
                state.values[variable as usize] = 0;
                if !state.set.contains(&variable) {
                    state.set.push(variable);
                }
                Some(Statement::Set(variable))
            }
            1 => Some(Statement::Pass),
            _ if state.set.is_empty() => None,
            _ => {
                let variable = state.any(rng);
                let value = &mut state.values[variable as usize];
                if *value == self.max_value {
                    return None;
                }
                *value += 1;
                Some(Statement::Increment(variable))
            }
        }
    }
}

impl Variables {
    /// Draws a uniform variable among those set; at least one must be set.
    fn any(&self, rng: &mut ChaCha8Rng) -> u32 {
        self.set[below(rng, self.set.len() as u32) as usize]
    }
}
