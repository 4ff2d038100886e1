//! Evaluation of a pretrained model on benchmark items.

use anyhow::Result;
use burn::tensor::Device;
use pe_zoo::attention::Weights;
use pe_zoo::ops::cross_entropy;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::items::BenchmarkItem;
use super::prompt::{PromptStyle, Shots};
use super::scores::{Rouge, exact_match, f1, rouge};
use crate::generate::{GenerateRequest, Generation, Sampling, generate};
use crate::pretrained::{ModelTokenizer, without_middle};
use pe_zoo::model::{Decoder, Dropout};
use train::run::scored::{read, token_ids};

/// Form and limits of prompts and answers.
#[derive(Debug, Clone, Copy)]
pub struct AskSettings<'a> {
    /// Maximum number of tokens of an answer.
    pub tokens: usize,
    /// Maximum number of tokens of the prompt of a free answer; the middle of a longer prompt is dropped.
    pub longest_prompt: usize,
    /// Maximum number of tokens of a prompt with an option; the middle of a longer prompt is dropped.
    pub longest: usize,
    /// Tokens that end an answer.
    pub end: &'a [u32],
    /// Form of the prompts of multiple-choice items.
    pub style: PromptStyle,
    /// Examples before each item.
    pub shots: Shots<'a>,
}

/// Result of one item.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemResult {
    /// Free answer, with the best scores over the references.
    Wrote {
        /// Text that was generated.
        text: String,
        /// Whether the text equals one of the references.
        exact_match: bool,
        /// F1 of words.
        f1: f64,
        /// F-measures of ROUGE, each the best over the references, as in SCROLLS.
        rouge: Rouge,
    },
    /// Answer to a multiple-choice item.
    Chose {
        /// Index of the right option.
        right: usize,
        /// Index of the most likely option.
        choice: usize,
        /// Index of the option that is most likely per byte of its text.
        choice_per_byte: usize,
        /// Log-likelihood of each option.
        scores: Vec<f64>,
    },
}

/// Tokens of an item's prompts.
enum TokenizedPrompts {
    /// The prompt of a free answer.
    Write(Vec<u32>),
    /// For each option, the prompt and the option.
    Choose(Vec<[Vec<u32>; 2]>),
}

impl TokenizedPrompts {
    fn of(
        tokens: &dyn ModelTokenizer,
        item: &BenchmarkItem,
        settings: AskSettings<'_>,
    ) -> Result<Self> {
        let encode = |text: &str| {
            let ids = tokens.prompt(text).map_err(rejected)?;
            if ids.is_empty() { Err(rejected("its prompt has no tokens")) } else { Ok(ids) }
        };
        let shots = settings.shots.before(item, settings.style)?;
        match item {
            BenchmarkItem::Write { input, .. } => {
                let prompt = encode(&format!("{shots}{input}"))?;
                Ok(Self::Write(without_middle(prompt, settings.longest_prompt)))
            }
            BenchmarkItem::Choose { question, options, .. } => {
                let prompt = shots + &settings.style.prompt(question, options);
                let asked = encode(&prompt)?;
                let with = |option: &String| {
                    let both = encode(&format!("{prompt} {option}"))?;
                    // The prompt's own length may differ: its last token may merge with the following text.
                    let kept = asked.iter().zip(&both).take_while(|(a, b)| a == b).count();
                    let (prompt, answer) = both.split_at(kept);
                    if prompt.is_empty() || answer.is_empty() {
                        let reason = format!(
                            "option `{option}` cannot be separated from the prompt, because the tokens of option and \
                             prompt merge"
                        );
                        return Err(rejected(reason));
                    }
                    let longest = settings.longest.saturating_sub(answer.len()).max(1);
                    Ok([without_middle(prompt.to_vec(), longest), answer.to_vec()])
                };
                let answers = settings.style.answers(options);
                Ok(Self::Choose(answers.iter().map(with).collect::<Result<_, _>>()?))
            }
        }
    }
}

fn rejected(reason: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("the tokenizer rejects the item: {reason}")
}

/// Returns the number of tokens of the longest prompt of an item, with its option, without a pass of a model.
///
/// # Errors
/// If there are too few examples, or the tokenizer rejects the item.
pub fn prompt_len(
    tokens: &dyn ModelTokenizer,
    item: &BenchmarkItem,
    settings: AskSettings<'_>,
) -> Result<usize> {
    Ok(match TokenizedPrompts::of(tokens, item, settings)? {
        TokenizedPrompts::Write(prompt) => prompt.len(),
        TokenizedPrompts::Choose(options) => {
            options.iter().map(|parts| parts.iter().map(Vec::len).sum()).max().unwrap_or(0)
        }
    })
}

/// Evaluates a model on one item.
///
/// # Errors
/// As [`prompt_len`], and if the model has no positions for the prompt.
pub fn ask(
    model: &Decoder,
    id: &str,
    tokens: &dyn ModelTokenizer,
    item: &BenchmarkItem,
    settings: AskSettings<'_>,
    device: &Device,
) -> Result<ItemResult> {
    match (item, TokenizedPrompts::of(tokens, item, settings)?) {
        (BenchmarkItem::Write { outputs, .. }, TokenizedPrompts::Write(prompt)) => {
            let request = GenerateRequest {
                prompt: &prompt,
                tokens: settings.tokens,
                choice: Sampling::Greedy,
                end: settings.end,
            };
            let generation = Generation::new(model, id, device);
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            let made = generate(generation, request, &mut rng, &mut |_| {})?;
            let text = tokens.decode(&made.tokens).map_err(rejected)?;
            // Examples end with a blank line, after which a model may go on with a next item.
            let ends = settings.shots.count > 0 && outputs.iter().all(|o| !o.contains("\n\n"));
            let text = match text.trim_start().split_once("\n\n") {
                Some((answer, _)) if ends => answer.to_owned(),
                _ => text,
            };
            let best = |score: &dyn Fn(&str) -> f64| {
                outputs.iter().map(|output| score(output)).fold(0.0, f64::max)
            };
            let rouges = outputs.iter().map(|output| rouge(&text, output)).collect::<Vec<_>>();
            let most = |score: fn(&Rouge) -> f64| rouges.iter().map(score).fold(0.0, f64::max);
            Ok(ItemResult::Wrote {
                exact_match: outputs.iter().any(|output| exact_match(&text, output)),
                f1: best(&|output| f1(&text, output)),
                rouge: Rouge {
                    one: most(|rouge| rouge.one),
                    two: most(|rouge| rouge.two),
                    longest: most(|rouge| rouge.longest),
                },
                text,
            })
        }
        (BenchmarkItem::Choose { options, right, .. }, TokenizedPrompts::Choose(prompts)) => {
            let answers = settings.style.answers(options);
            let score = |both: &[Vec<u32>; 2]| {
                log_likelihood(model, id, &both.concat(), both[1].len(), device)
            };
            let scores = prompts.iter().map(score).collect::<Result<Vec<_>>>()?;
            // The first of equal ones; a file has at least one option.
            let best = |score: &dyn Fn(usize) -> f64| {
                let better = |a: usize, b: usize| if score(b) > score(a) { b } else { a };
                (0..scores.len()).reduce(better).unwrap_or(0)
            };
            Ok(ItemResult::Chose {
                right: *right,
                choice: best(&|n| scores[n]),
                choice_per_byte: best(&|n| scores[n] / answers[n].len().max(1) as f64),
                scores,
            })
        }
        (_, _) => unreachable!("the prompts are of the item's kind"),
    }
}

/// Sum of the log-probabilities of the last `answer` tokens, given those before them.
fn log_likelihood(
    model: &Decoder,
    id: &str,
    tokens: &[u32],
    answer: usize,
    device: &Device,
) -> Result<f64> {
    let read_tokens = tokens.len() - 1;
    let at = model.positions(id, 0, read_tokens)?;
    let input = token_ids(&tokens[..read_tokens], device).unsqueeze_dim::<2>(0);
    let hidden = model.forward(input, &at, None, Dropout::off(), Weights::Drop).hidden;
    let rows = hidden.slice_dim(1, read_tokens - answer..read_tokens).squeeze_dim::<2>(0);
    let labels = token_ids(&tokens[tokens.len() - answer..], device);
    let sum = cross_entropy(model.logits(rows), labels).sum().neg();
    let values = read(sum)?;
    Ok(values.iter().map(|sum| f64::from(*sum)).sum())
}
