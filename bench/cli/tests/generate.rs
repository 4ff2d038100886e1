//! Generation equals the full pass, and SmolLM2 gives the numbers of transformers.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

#[path = "../../llm/tests/tiny/mod.rs"]
mod tiny;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use burn::tensor::Device;
use llm::generate::{GenerateRequest, Generation, Sampling, generate};
use llm::pretrained::{MODELS, place};
use pe_zoo::Combination;
use pe_zoo::rotary::Scaling;
use pe_zoo::zoo::rope::{self, Rope};
use serde::Deserialize;
use serde_json::{Value, json};
use tiny::{logits, open};
use train::streams::{Stream, stream};

#[test]
fn generation_with_the_cache_equals_the_full_pass() {
    let pretrained = open(tiny::folder().path()).unwrap();
    let encoding = pretrained.own_encoding();
    let model = pretrained.decoder(&encoding, 64, &mut stream(0, Stream::Encoding)).unwrap();
    let id = encoding.id();
    let device = Device::flex();
    let prompt = [1, 5, 9, 22];
    let mut rng = stream(3, Stream::Data);
    for choice in [Sampling::Greedy, Sampling::Sampled { temperature: 1.5, top_p: 0.9 }] {
        let request = GenerateRequest { prompt: &prompt, tokens: 20, choice, end: &[] };
        let mut told = Vec::new();
        let mut draws = rng.clone();
        let generation = Generation::new(&model, id, &device);
        let made = generate(generation, request, &mut rng, &mut |token| told.push(token)).unwrap();
        assert_eq!((made.tokens.len(), made.decode_passes), (20, 19));
        assert_eq!(made.tokens, told);
        let mut all = prompt.to_vec();
        for token in made.tokens {
            let rows = logits(&pretrained, &encoding, &all);
            let last = rows[rows.len() - 1].iter().map(|x| *x as f32).collect::<Vec<_>>();
            assert_eq!(choice.choose(&last, &mut draws), token, "{choice:?} after {all:?}");
            all.push(token);
        }
    }
    let said = |prompt: &[u32]| Generation::new(&model, id, &device).read(prompt).unwrap_err();
    assert!(said(&[]).to_string().contains("at least one token"));
    assert!(said(&[23]).to_string().contains("23"));
}

#[test]
fn benchmarks_are_answered_and_scored() {
    let folder = tiny::folder();
    let items = folder.path().join("items.jsonl");
    // What the model writes after "w1 w5" is taken as the reference: it must then be an exact match.
    let pretrained = open(folder.path()).unwrap();
    let encoding = pretrained.own_encoding();
    let model = pretrained.decoder(&encoding, 64, &mut stream(0, Stream::Encoding)).unwrap();
    let request = GenerateRequest {
        prompt: &[1, 5],
        tokens: 4,
        choice: Sampling::Greedy,
        end: &pretrained.end,
    };
    let generation = Generation::new(&model, "rope", &Device::flex());
    let made = generate(generation, request, &mut stream(0, Stream::Data), &mut |_| {}).unwrap();
    let answer = pretrained.tokenizer().decode(&made.tokens).unwrap();
    assert!(!answer.is_empty());
    // Both options are one token; the likelier one by the logits behind the prompt is the right one.
    let prompt = "Question: w3 w9\nAnswer:";
    let ids = pretrained.tokenizer().prompt(prompt).unwrap();
    let rows = logits(&pretrained, &encoding, &ids);
    let row = &rows[rows.len() - 1];
    let right = usize::from(row[7] > row[4]);
    let lines = [
        json!({ "input": "w1 w5", "outputs": ["nothing", answer] }),
        json!({ "question": "w3 w9", "choices": ["w4", "w7"], "answer": right }),
        json!({ "question": "w3 w9", "choices": ["w4", "w7"], "answer": 1 - right }),
    ];
    fs::write(&items, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let run = |arguments: &[&str]| {
        std::process::Command::new(env!("CARGO_BIN_EXE_pe-bench"))
            .arg("benchmark")
            .arg(folder.path())
            .args(arguments)
            .output()
            .unwrap()
    };
    let output = run(&[items.to_str().unwrap(), "--tokens", "4"]);
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let written = &said["written"];
    assert_eq!(
        (&written["items"], &written["exact_match"], &written["f1"]),
        (&json!(1), &json!(1.0), &json!(1.0))
    );
    // One item has no spread; one right and one wrong have an error of a half.
    assert_eq!(written["f1_standard_error"], Value::Null);
    assert_eq!(
        said["chosen"],
        json!({
            "items": 2, "accuracy": 0.5, "accuracy_standard_error": 0.5, "accuracy_per_byte": 0.5,
            "accuracy_per_byte_standard_error": 0.5,
        })
    );
    let [shown, asked, examples, free] =
        ["shown.json", "asked.jsonl", "examples.jsonl", "free.jsonl"]
            .map(|name| folder.path().join(name).display().to_string());
    fs::write(&free, json!({ "input": "w1 w5", "outputs": ["w2"] }).to_string()).unwrap();
    for (path, question) in [(&asked, "w3"), (&examples, "w5")] {
        let lines = ["virology", "virology", "birds"].map(|subject| {
            json!({ "question": question, "choices": ["w4", "w7"], "answer": 0, "subject": subject })
        });
        fs::write(path, lines.map(|line| line.to_string()).join("\n")).unwrap();
    }
    let letters =
        [&*asked, "--options", "letters", "--shots", "1", "--examples", &examples, "--out", &shown];
    let output = run(&letters);
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!((&said["shots"], &said["chosen"]["items"]), (&json!(1), &json!(3)));
    assert_eq!(said["chosen"]["subjects"]["virology"]["items"], 2);
    assert_eq!(said["chosen"]["groups"]["other"], said["chosen"]["subjects"]["virology"]);
    assert_eq!(said["chosen"]["macro_average"]["subjects"], 2);
    assert_eq!(said["chosen"]["subjects_in_no_group"], json!(["birds"]));
    let shown: Value = serde_json::from_str(&fs::read_to_string(&shown).unwrap()).unwrap();
    let shown = shown["files"][0]["answers"].as_array().unwrap();
    assert_eq!((shown.len(), &shown[2]["right"]), (3, &json!("A")));
    assert_eq!(shown[0]["log_likelihoods"].as_array().unwrap().len(), 2);
    let output = run(&[&letters[..1], &["--shots", "2", "--examples", &examples]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success()
            && said.contains("at most 1, the number of examples of subject `birds`"),
        "{said}"
    );
    for (option, value, expected) in
        [("--tokens", "4", "the model writes no answer"), ("--options", "letters", "no item is")]
    {
        let path = if option == "--tokens" { &asked } else { &free };
        let output = run(&[path, option, value]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{said}");
    }
    let output = run(&["/nowhere.jsonl"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere.jsonl"));
}

#[test]
fn a_record_of_a_benchmark_has_settings_numbers_and_answers_and_is_not_replaced() {
    let folder = tiny::folder();
    let [items, out] = ["items.jsonl", "kept/record.json"].map(|name| folder.path().join(name));
    let lines = [
        json!({ "id": 1, "input": "w1", "output": "w2" }),
        json!({ "question": "w3", "choices": ["w4", "w7"], "answer": 0, "subject": "virology" }),
        json!({ "id": 1, "input": "w1", "output": "w3" }),
    ];
    fs::write(&items, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let run = || {
        std::process::Command::new(env!("CARGO_BIN_EXE_pe-bench"))
            .arg("benchmark")
            .arg(folder.path())
            .arg(&items)
            .args(["--tokens", "3", "--encoding", "alibi", "--out"])
            .arg(&out)
            .output()
            .unwrap()
    };
    let output = run();
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let text = fs::read_to_string(&out).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&record["encoding"], &record["model"]), (&json!("alibi"), &said["model"]));
    let settings = &record["settings"];
    assert_eq!(
        (&settings["tokens"], &settings["options"], &settings["backend"], &settings["precision"]),
        (&json!(3), &json!("texts"), &json!("flex"), &json!("f32"))
    );
    assert_eq!(record["program"]["commit"], json!(pe_bench::BUILD.commit));
    assert!(record["program"]["host"]["logical_cpus"].as_u64().unwrap() > 0);
    let file = &record["files"][0];
    assert_eq!((&file["written"], &file["chosen"]), (&said["written"], &said["chosen"]));
    assert_eq!(file["chosen"]["groups"]["other"]["items"], 1);
    assert_eq!(file["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(file["answers"].as_array().unwrap().len(), 2);
    assert_eq!(file["answers"][0]["references"], json!(["w2", "w3"]));
    assert_eq!(
        (&file["answers"][1]["subject"], &file["answers"][1]["right"]),
        (&json!("virology"), &json!("w4"))
    );
    assert_eq!(settings["longest_prompt"], json!(64 - 3));
    let new = folder.path().join("new.json");
    let new = new.to_str().unwrap();
    for (arguments, expected) in [
        (&["--out", items.to_str().unwrap()][..], "exists, expected the name of a new file"),
        (&["--out", &format!("{new}/")], "expected the name of a new file"),
        (&["--tokens", "63"], "--tokens is 63, which leaves no room"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_pe-bench"))
            .arg("benchmark")
            .args([folder.path(), &items])
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{said}");
    }
    let output = run();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("record.json exists"), "{said}");
    assert!(output.stdout.is_empty() && fs::read_to_string(&out).unwrap() == text);
    assert_eq!(fs::read_dir(out.parent().unwrap()).unwrap().count(), 1);
}

#[derive(Deserialize)]
struct Fixture {
    file: String,
    original_max_position_embeddings: usize,
    cases: Vec<Case>,
    scaled: Vec<Scaled>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    text: String,
    ids: Vec<u32>,
    decoded: String,
    rows: Vec<Row>,
    greedy: Vec<u32>,
}

#[derive(Deserialize)]
struct Scaled {
    scaling: Value,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    place: usize,
    tokens: Vec<usize>,
    logits: Vec<f64>,
    log_sum_exp: f64,
}

/// Logits of 30 layers reach 20; sums in another order, in f32, move them by some 1e-5 of that.
const SMOLLM2_TOLERANCE: f64 = 2e-3;

#[test]
fn a_text_beyond_the_trained_length_is_said() {
    let folder = tiny::folder();
    let path = folder.path().join("config.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    // A text has no end.
    config["eos_token_id"] = Value::Null;
    fs::write(&path, config.to_string()).unwrap();
    let said_with = |options: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_pe-bench"))
            .arg("generate")
            .arg(folder.path())
            .args(["--threads", "1"])
            .args(options)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    };
    let generate = |words: usize, tokens: &str| {
        said_with(&["--prompt", &vec!["w5"; words].join(" "), "--tokens", tokens])
    };
    assert!(!generate(60, "4").contains("trained on"));
    let said = generate(60, "8");
    assert!(
        said.contains("prompt and the generated text have 68 tokens") && said.contains("of 64"),
        "{said}"
    );
    let said = generate(70, "2");
    assert!(said.contains("the prompt has 70 tokens") && said.contains("of 64"), "{said}");
    assert_eq!(said.matches("trained on").count(), 1, "{said}");
    let speed =
        |decode| said_with(&["--speed", "--prefill", "60", "--decode", decode, "--rounds", "1"]);
    assert!(!speed("4").contains("trained on"));
    let said = speed("5");
    assert!(said.contains("random sequences have 65 tokens") && said.contains("of 64"), "{said}");
}

fn assert_rows(name: &str, found: &[Vec<f64>], rows: &[Row]) {
    for row in rows {
        let found = &found[row.place];
        for (token, expected) in row.tokens.iter().zip(&row.logits) {
            let off = (found[*token] - expected).abs();
            assert!(off < SMOLLM2_TOLERANCE, "{name}, place {}, token {token}: {off}", row.place);
        }
        let sum = found.iter().map(|logit| logit.exp()).sum::<f64>().ln();
        assert!((sum - row.log_sum_exp).abs() < SMOLLM2_TOLERANCE, "{name}: {sum}");
    }
}

/// The real model, if it is on this machine; says so where it is not.
fn smollm2() -> Option<PathBuf> {
    let meta = MODELS.iter().find(|meta| meta.id == "smollm2")?;
    let here = Some(place(meta)).filter(|path| path.exists());
    if here.is_none() {
        // Not through the macros, whose output the test harness keeps back.
        let text = b"SKIPPED: smollm2 is not here; `pe-bench data fetch smollm2` brings it\n";
        std::io::stderr().write_all(text).unwrap();
    }
    here
}

#[test]
fn smollm2_gives_the_tokens_logits_and_text_of_transformers() {
    let Some(path) = smollm2() else { return };
    let text = include_str!("../../llm/fixtures/smollm2.json");
    let fixture: Fixture = serde_json::from_str(text).unwrap();
    assert_eq!(fixture.file, "SmolLM2-135M-Instruct.Q4_1.gguf");
    let pretrained = open(&path).unwrap();
    assert_eq!(pretrained.weights_sha256, MODELS[0].sha256);
    assert_eq!((pretrained.context, pretrained.vocabulary), (8192, 49_152));
    let own = pretrained.own_encoding();
    let (tokenizer, device) = (pretrained.tokenizer(), Device::flex());
    for case in &fixture.cases {
        assert_eq!(tokenizer.prompt(&case.text).unwrap(), case.ids, "{}", case.name);
        assert_eq!(tokenizer.decode(&case.ids).unwrap(), case.decoded, "{}", case.name);
        assert_rows(&case.name, &logits(&pretrained, &own, &case.ids), &case.rows);
        let model = pretrained.decoder(&own, 0, &mut stream(0, Stream::Encoding)).unwrap();
        let tokens = case.greedy.len();
        let request =
            GenerateRequest { prompt: &case.ids, tokens, choice: Sampling::Greedy, end: &[] };
        let generation = Generation::new(&model, "rope", &device);
        let mut rng = stream(0, Stream::Data);
        let made = generate(generation, request, &mut rng, &mut |_| {}).unwrap();
        assert_eq!(made.tokens, case.greedy, "{}", case.name);
    }
    let long = fixture.cases.iter().find(|case| case.name == "long").unwrap();
    let own_length = fixture.original_max_position_embeddings;
    assert!(long.ids.len() > own_length);
    for Scaled { scaling, rows } in &fixture.scaled {
        let mut scaling = scaling.clone();
        if scaling["rope_type"] == "dynamic" {
            scaling["original_max_position_embeddings"] = json!(own_length);
        }
        let scaling: Scaling = serde_json::from_value(scaling).unwrap();
        let name = scaling.id();
        let rope = rope::RopeConfig { scaling, ..pretrained.rope.clone().unwrap() };
        let encoding =
            Combination::try_from(pe_zoo::EncodingConfig::of::<Rope>(rope).unwrap()).unwrap();
        assert_rows(name, &logits(&pretrained, &encoding, &long.ids), rows);
    }
}
