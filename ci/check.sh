#!/usr/bin/env bash
# The one door: everything that must hold before a change is taken. Needs Rust and a C compiler. On two cores
# 33 minutes with an empty target folder, most of it building Burn and polars; 5 with a warm one.
set -euo pipefail
cd "$(dirname "$0")/.."
# One folder outside the clone saves a cold build; a fresh machine passes without it.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pe-zoo/ci-target}"

steps_declared=7
steps_run=0
step() {
  local name=$1
  shift
  local start=$SECONDS
  echo "== $name: $*"
  "$@" || { echo "FAILED: $name"; exit 1; }
  steps_run=$((steps_run + 1))
  echo "== $name ok, $((SECONDS - start)) s"
}

# rustfmt does not follow modules that a macro declares: those files are named.
format() {
  cargo fmt --all --check
  rustfmt --check pe-zoo/src/zoo/*.rs tasks/src/suite/*.rs tasks/src/suite/*/*.rs
}

# What a user tries first: a sweep, the same sweep again (which must keep everything), a report.
smoke() {
  local out
  out=$(mktemp -d)
  local bench="$CARGO_TARGET_DIR/debug/pe-bench"
  "$bench" run smoke --out "$out"
  "$bench" run smoke --out "$out" | tee "$out/again.txt"
  grep -Eq "^([0-9]+) cells, \1 of them kept" "$out/again.txt"
  "$bench" report "$out" --out "$out/again"
  for file in index.html report.md data.parquet tables/ranks.csv tables/summary.tex; do
    test -s "$out/$file"
    test -s "$out/again/$file"
  done
  rm -rf "$out"
}

step "format" format
step "tests" cargo test --workspace
step "generated docs" "$CARGO_TARGET_DIR/debug/pe-bench" docs --check
step "smoke run" smoke
step "clippy" cargo clippy --workspace --all-targets -- -D warnings
step "docs" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
step "no machine names" bash ci/no-machine-names.sh

[ "$steps_run" -eq "$steps_declared" ] || { echo "only $steps_run of $steps_declared steps ran"; exit 1; }
echo "all $steps_run steps passed in $SECONDS s"
