//! `pe-bench generate`: text generation and its speed.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;

use super::compute::ComputeArgs;
use super::out::{complain, say, say_part};
use super::parsers::{MOST, number};
use super::trained;
use llm::generate::{GenerateRequest, Generation, Sampling, generate};
use llm::pretrained::ModelTokenizer;
use sweep::process;

/// Arguments of `generate`.
#[derive(Args, Clone)]
pub(super) struct GenerateArgs {
    /// Model: a folder, a .gguf file, a name from `pe-bench data list`, or weights that `pe-bench run` saved (the path
    /// of the .safetensors file, or the key of the record).
    model: String,
    /// Text to continue.
    #[arg(long, required_unless_present = "speed", conflicts_with = "speed")]
    prompt: Option<String>,
    /// Maximum number of tokens to generate.
    #[arg(long, default_value_t = 64, conflicts_with = "speed")]
    tokens: usize,
    /// Sampling temperature; default: greedy decoding.
    #[arg(long, conflicts_with = "speed")]
    temperature: Option<f64>,
    /// Probability mass of nucleus sampling; needs --temperature.
    #[arg(long, requires = "temperature", conflicts_with = "speed", default_value_t = 1.0)]
    top_p: f64,
    /// Seed of the sampling.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Encoding to use; default: the encoding that the model was trained with.
    #[arg(long, alias = "encodings")]
    encoding: Option<String>,
    /// Number of CPU threads.
    #[arg(long, default_value_t = 2, value_parser = number(1..=MOST))]
    threads: usize,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Measure tokens per second on random tokens and print one JSON object per round. `ci/peers/smollm2.py speed` of
    /// the repository measures Hugging Face Transformers in the same way.
    #[arg(long)]
    speed: bool,
    /// Number of prompt tokens with --speed.
    #[arg(long, default_value_t = 2048, requires = "speed", conflicts_with = "prompt")]
    prefill: usize,
    /// Number of decoded tokens with --speed.
    #[arg(long, default_value_t = 64, requires = "speed", conflicts_with = "prompt")]
    decode: usize,
    /// Number of measured rounds with --speed, after one warm-up round.
    #[arg(long, default_value_t = 3, requires = "speed", conflicts_with = "prompt")]
    rounds: usize,
}

pub(super) fn run(arguments: &GenerateArgs) -> anyhow::Result<ExitCode> {
    if process::is_set_up(arguments.threads) {
        process::compute_on_this_thread(arguments.threads)?;
        here(arguments)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = process::dependent(arguments.threads)?;
    command.args(std::env::args_os().skip(1));
    let status =
        process::status(&mut command).context("cannot start the process that generates text")?;
    if let Some(killed) = process::killed(status) {
        anyhow::bail!("the process that generates text {killed}");
    }
    // Otherwise it has said why.
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn here(arguments: &GenerateArgs) -> anyhow::Result<()> {
    let choice = match arguments.temperature {
        None => Sampling::Greedy,
        Some(temperature) => Sampling::Sampled { temperature, top_p: arguments.top_p },
    };
    choice.check()?;
    let compute = arguments.compute.open()?;
    let device = compute.device.clone();
    let pretrained = trained::pretrained(&arguments.model, &device)?;
    let encoding = match &arguments.encoding {
        Some(text) => train::encodings::parse(text)?,
        None => pretrained.own_encoding(),
    };
    let id = encoding.id();
    let mut rng = ChaCha8Rng::seed_from_u64(arguments.seed);
    let tokenizer = pretrained.tokenizer();
    let prompt = arguments.prompt.as_deref().map(tasks::without_mark);
    anyhow::ensure!(prompt != Some(""), "--prompt is empty, expected a text");
    let prompt = prompt.map(|text| tokenizer.prompt(text));
    let prompt = prompt.transpose()?;
    let longest = match &prompt {
        // One token more is predicted, but not read.
        None => arguments.prefill.saturating_add(arguments.decode).saturating_add(1),
        Some(ids) => ids.len().saturating_add(arguments.tokens),
    };
    let options = match prompt {
        None => "--prefill and --decode are",
        Some(_) => "the prompt and --tokens are",
    };
    anyhow::ensure!(
        longest <= LONGEST,
        "{options} {longest} tokens in total, expected at most {LONGEST}; choose smaller values"
    );
    let is_told = match &prompt {
        None => trained::complain_beyond("the random sequences have", longest - 1, &pretrained),
        Some(ids) => trained::complain_beyond("the prompt has", ids.len(), &pretrained),
    };
    let mut model = pretrained.decoder(&encoding, longest, &mut rng)?;
    (model.engine, model.precision) = (compute.engine, compute.precision());
    let generation = || Generation::new(&model, id, &device);
    let Some(ids) = prompt else {
        for round in 0..=arguments.rounds {
            let ids = (0..arguments.prefill)
                .map(|_| rng.random_range(0..pretrained.vocabulary as u32))
                .collect::<Vec<_>>();
            let tokens = arguments.decode + 1;
            let request =
                GenerateRequest { prompt: &ids, tokens, choice: Sampling::Greedy, end: &[] };
            let made = generate(generation(), request, &mut rng, &mut |_| {})?;
            // The first round warms up.
            if round > 0 {
                let line = json!({
                    "model": pretrained.name,
                    "encoding": encoding.to_string(),
                    "backend": compute.backend,
                    "engine": compute.engine.id(),
                    "precision": compute.precision().id(),
                    "threads": arguments.threads,
                    "prefill_tokens": ids.len(),
                    "prefill_tokens_per_second": ids.len() as f64 / made.prefill_seconds,
                    "decoded_tokens": made.decode_passes,
                    "decode_tokens_per_second": made.decode_passes as f64 / made.decode_seconds,
                    "peak_bytes": train::host::peak_bytes(),
                    "device_bytes": device.memory_pool_usage().map(|usage| usage.bytes_reserved),
                });
                say(&line.to_string());
            }
        }
        return Ok(());
    };
    let request =
        GenerateRequest { prompt: &ids, tokens: arguments.tokens, choice, end: &pretrained.end };
    let mut shown = Shown::default();
    let mut error = None;
    let made = generate(generation(), request, &mut rng, &mut |token| {
        shown.tokens.push(token);
        if let Err(reason) = shown.show(tokenizer, false) {
            error.get_or_insert(reason);
        }
    })?;
    if let Err(reason) = shown.show(tokenizer, true) {
        error.get_or_insert(reason);
    }
    if let Some(reason) = error {
        return Err(reason).context("cannot decode the generated tokens");
    }
    say("");
    if !is_told {
        let whole = ids.len() + made.tokens.len();
        trained::complain_beyond("the prompt and the generated text have", whole, &pretrained);
    }
    let rate = |count: usize, seconds: f64| count as f64 / seconds;
    complain(&format!(
        "{} prompt tokens at {:.1} tokens/s, {} generated tokens at {:.1} tokens/s",
        ids.len(),
        rate(ids.len(), made.prefill_seconds),
        made.tokens.len(),
        rate(made.decode_passes, made.decode_seconds)
    ));
    Ok(())
}

/// Maximum length of a prompt with what follows: larger positions are not exact in f32.
const LONGEST: usize = 1 << 24;

/// Generated tokens and the text printed so far.
#[derive(Default)]
struct Shown {
    tokens: Vec<u32>,
    text: String,
}

impl Shown {
    /// Prints the new part of the text. A character may span several tokens and is printed when it is complete, or at the
    /// end.
    fn show(&mut self, tokenizer: &dyn ModelTokenizer, at_end: bool) -> anyhow::Result<()> {
        say_part(self.new_part(tokenizer.decode(&self.tokens)?, at_end));
        Ok(())
    }

    /// The part of a text that was not printed yet. More tokens may change the last characters that were printed, where bytes
    /// of a character stand alone; the part then begins with those.
    fn new_part(&mut self, mut text: String, at_end: bool) -> &str {
        if !at_end {
            text.truncate(text.trim_end_matches(char::REPLACEMENT_CHARACTER).len());
        }
        let equal = self.text.chars().zip(text.chars()).take_while(|(a, b)| a == b);
        let equal = equal.map(|(a, _)| a.len_utf8()).sum::<usize>();
        if equal == text.len() {
            return "";
        }
        self.text = text;
        &self.text[equal..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_printed_once_it_is_complete_or_at_the_end() {
        let mut shown = Shown::default();
        let mut part = |text: &str, at_end| shown.new_part(text.to_owned(), at_end).to_owned();
        assert_eq!(part("A", false), "A");
        assert_eq!(part("A\u{fffd}", false), "");
        assert_eq!(part("Aé", false), "é");
        // A byte that completes no character changes what was printed.
        assert_eq!(part("A\u{fffd}\u{fffd}x", false), "\u{fffd}\u{fffd}x");
        assert_eq!(part("A\u{fffd}\u{fffd}x\u{fffd}", false), "");
        assert_eq!(part("A\u{fffd}\u{fffd}x\u{fffd}", true), "\u{fffd}");
        assert_eq!(part("A\u{fffd}\u{fffd}x\u{fffd}", true), "");
    }
}
