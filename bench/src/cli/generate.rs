//! `pe-bench generate`.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;

use super::out::say;
use crate::backend::{self, EngineChoice};
use crate::generate::{Choice, Generation, Request, generate};
use crate::pretrained::{Around, Pretrained};
use crate::process;

/// Arguments of `generate`.
#[derive(Args, Clone)]
pub(super) struct GenerateArgs {
    /// A model's folder, a .gguf file, or a name (`pe-bench pretrained list`).
    model: String,
    /// The text to go on from.
    #[arg(long, required_unless_present = "speed", conflicts_with = "speed")]
    prompt: Option<String>,
    /// Most tokens to make.
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Draw tokens at this temperature; default: the likeliest token each time.
    #[arg(long)]
    temperature: Option<f64>,
    /// Draw from the fewest tokens that have this share of the probability; with --temperature.
    #[arg(long, requires = "temperature", default_value_t = 1.0)]
    top_p: f64,
    /// Seed of the draws.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// An encoding instead of the rotation that the model was trained under.
    #[arg(long)]
    encoding: Option<String>,
    /// Number of CPU threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Attention engine to use.
    #[arg(long, value_enum, default_value_t)]
    engine: EngineChoice,
    /// Measure tokens per second on random tokens, one JSON line a round; see ci/peers/smollm2.py.
    #[arg(long)]
    speed: bool,
    /// Tokens that are read at once when measuring.
    #[arg(long, default_value_t = 2048)]
    prefill: usize,
    /// Tokens that are decoded one by one when measuring.
    #[arg(long, default_value_t = 64)]
    decode: usize,
    /// Rounds that are measured, after one that is not.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

pub(super) fn run(arguments: &GenerateArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(arguments.threads > 0, "--threads is 0, expected at least 1");
    if process::is_set_up(arguments.threads) {
        here(arguments)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = process::dependent(arguments.threads)?;
    command.args(std::env::args_os().skip(1));
    let status = process::status(command).context("the generating process cannot be started")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn here(arguments: &GenerateArgs) -> anyhow::Result<()> {
    let choice = match arguments.temperature {
        None => Choice::Greedy,
        Some(temperature) => Choice::Sampled { temperature, top_p: arguments.top_p },
    };
    choice.check()?;
    let device = backend::device("flex")?;
    let pretrained = Pretrained::open(&arguments.model, &device)?;
    let encoding = match &arguments.encoding {
        Some(text) => crate::encodings::parse(text)?,
        None => pretrained.own_encoding()?,
    };
    let id = encoding.id();
    let mut rng = ChaCha8Rng::seed_from_u64(arguments.seed);
    let longest = if arguments.speed { arguments.prefill + arguments.decode } else { 0 };
    let mut model = pretrained.decoder(&encoding, longest, &mut rng)?;
    let engine = backend::engine(arguments.engine, "flex")?;
    model.engine = engine;
    let generation = || Generation::new(&model, id, &device);
    let Some(prompt) = &arguments.prompt else {
        for round in 0..=arguments.rounds {
            let ids = (0..arguments.prefill)
                .map(|_| rng.random_range(0..pretrained.vocabulary as u32))
                .collect::<Vec<_>>();
            let tokens = arguments.decode + 1;
            let request = Request { prompt: &ids, tokens, choice: Choice::Greedy, end: &[] };
            let made = generate(generation(), request, &mut rng, &mut |_| {})?;
            // The first round warms up.
            if round > 0 {
                let line = json!({
                    "model": pretrained.name,
                    "encoding": encoding.to_string(),
                    "engine": engine.id(),
                    "threads": arguments.threads,
                    "prefill_tokens": ids.len(),
                    "prefill_tokens_per_second": ids.len() as f64 / made.prefill_seconds,
                    "decoded_tokens": made.decode_passes,
                    "decode_tokens_per_second": made.decode_passes as f64 / made.decode_seconds,
                    "peak_bytes": crate::host::peak_bytes(),
                });
                say(&line.to_string());
            }
        }
        return Ok(());
    };
    let tokenizer = pretrained.tokenizer();
    let ids = tokenizer.encode(prompt, Around::Added).map_err(anyhow::Error::msg)?;
    let request = Request { prompt: &ids, tokens: arguments.tokens, choice, end: &pretrained.end };
    let mut shown = Shown::default();
    let mut error = None;
    let made = generate(generation(), request, &mut rng, &mut |token| {
        shown.tokens.push(token);
        if let Err(reason) = shown.show(tokenizer) {
            error.get_or_insert(reason);
        }
    })?;
    if let Some(reason) = error {
        return Err(anyhow::Error::msg(reason)).context("the tokens cannot be shown as text");
    }
    say("");
    let rate = |count: usize, seconds: f64| count as f64 / seconds;
    super::out::complain(&format!(
        "{} tokens read at {:.1} a second, {} made at {:.1} a second",
        ids.len(),
        rate(ids.len(), made.prefill_seconds),
        made.tokens.len(),
        rate(made.decode_passes, made.decode_seconds)
    ));
    Ok(())
}

/// Text that has been printed.
#[derive(Default)]
struct Shown {
    tokens: Vec<u32>,
    text: String,
}

impl Shown {
    /// Prints what is new. A character may take several tokens: unfinished ones wait.
    fn show(&mut self, tokenizer: &dyn crate::pretrained::Tokens) -> Result<(), String> {
        let text = tokenizer.decode(&self.tokens)?;
        if !text.ends_with(char::REPLACEMENT_CHARACTER)
            && let Some(new) = text.strip_prefix(&self.text)
        {
            super::out::say_part(new);
            self.text = text;
        }
        Ok(())
    }
}
