#!/usr/bin/env bash
# Runs all checks that a change must pass. Needs Rust, a C compiler and git.
set -euo pipefail
cd "$(dirname "$0")/.."
# One folder outside the clone saves a cold build; a fresh machine passes without it.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pe-zoo/ci-target}"
# A check builds each crate once; without incremental compilation it needs 7 GB less disk.
export CARGO_INCREMENTAL=0

steps_declared=9
steps_run=0
current=
work=$(mktemp -d)
trap '[ -z "$current" ] || echo "FAILED: $current"; rm -rf "$work"' EXIT
step() {
  local name=$1
  shift
  local start=$SECONDS
  echo "== $name: $*"
  # Not behind `||` or `if`, where bash would continue after a failing command of a function.
  current=$name
  "$@"
  current=
  steps_run=$((steps_run + 1))
  echo "== $name ok, $((SECONDS - start)) s"
}

format() {
  cargo fmt --all --check
  cargo fmt --manifest-path examples/outside/Cargo.toml --check
}

# Recomputes the table of results/README.md by a program that shares nothing with the Rust code.
front_page() {
  if python3 -c 'import numpy, pyarrow' 2>/dev/null; then
    python3 doc/front_page.py
  else
    echo "skipped: doc/front_page.py needs Python with numpy and pyarrow"
  fi
}

# First commands of a user: a sweep, the same sweep again (which must keep all records), a report.
smoke() {
  local out="$work/smoke" bench="$CARGO_TARGET_DIR/debug/pe-bench"
  "$bench" run smoke --out "$out"
  "$bench" run smoke --out "$out" | tee "$out/again.txt"
  grep -Eq "^([0-9]+) cells, \1 of them with a record" "$out/again.txt"
  "$bench" report "$out" --out "$out/again"
  for file in index.html report.md data.parquet tables/ranks.csv tables/summary.tex; do
    test -s "$out/$file"
    test -s "$out/again/$file"
  done
}

# A crate with encodings of its own: the conformance kit, a sweep that is killed and resumed, a comparison, a report.
outside() {
  # The same versions of dependencies, and so the same artifacts.
  cp Cargo.lock examples/outside/Cargo.lock
  cargo build --manifest-path examples/outside/Cargo.toml
  local out="$work/outside" program="$CARGO_TARGET_DIR/debug/outside"
  mkdir "$out"
  "$program" conform square-root cable kerple-temperature cope+square-root llama4-temperature+rope \
    'interleaved{every=2}(cope+rope)' 'interleaved(cable)' 'interleaved(tape)'
  "$program" conform llama4-temperature interleaved | tee "$out/conform.txt"
  [ "$(grep -c ": all 21 checks hold" "$out/conform.txt")" -eq 2 ]
  if "$program" conform 'kerple-temperature{temperature=0}' 2>"$out/refused.txt"; then return 1; fi
  grep -q "temperature is 0, expected a number above 0" "$out/refused.txt"
  # Exit status 137 of a killed sweep is expected.
  local encodings="square-root,cope+square-root,cable,kerple-temperature,llama4-temperature{floor=8}+rope,interleaved{every=2}(cable),rope"
  local sweep=(run smoke --encodings "$encodings" --out "$out")
  "$program" "${sweep[@]}" &
  local pid=$!
  while kill -0 "$pid" 2>/dev/null && ! ls "$out"/cells/*.json >/dev/null 2>&1; do sleep 0.1; done
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" || true
  "$program" "${sweep[@]}"
  "$program" "${sweep[@]}" | tee "$out/again.txt"
  grep -Eq "^([0-9]+) cells, \1 of them with a record" "$out/again.txt"
  "$program" compare square-root rope "$out" >"$out/compare.txt"
  grep -q "^Differences are square-root minus rope" "$out/compare.txt"
  for row in "Square root" "CABLE" "KERPLE, tempered" "CoPE + Square root"; do
    grep -q "$row" "$out/report.md" || { echo "no row of $row in the report"; return 1; }
  done
}

step "format" format
step "no machine names" bash ci/no-machine-names.sh
step "language" bash ci/language.sh
step "clippy" cargo clippy --workspace --all-targets -- -D warnings
step "tests" cargo test --workspace
step "front page" front_page
step "smoke run" smoke
step "encodings from outside" outside
step "docs" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

[ "$steps_run" -eq "$steps_declared" ] || { echo "only $steps_run of $steps_declared steps ran"; exit 1; }
echo "all $steps_run steps passed in $SECONDS s"
