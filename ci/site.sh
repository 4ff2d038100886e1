#!/usr/bin/env bash
# Writes the site to a folder: the guide with a page of all commands and the plan of the zoo, below zoo/ the report of the zoo's records, below inspect/ the
# inside of two models that count, and below nightly/ the report and the trend of the last night, if there is one. Checks all
# links of the guide. Needs mdbook (0.5.4), Python, and the program (PE_BENCH, or cargo builds it).
#
#   ci/site.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
site=${1:?"usage: ci/site.sh FOLDER"}
for tool in mdbook python3; do
  command -v "$tool" > /dev/null || { echo "$tool is missing; install it (mdbook: cargo install mdbook --version 0.5.4)" >&2; exit 2; }
done
mkdir -p "$site"
site=$(cd "$site" && pwd)
[ -n "${PE_BENCH:-}" ] || cargo build --quiet --workspace --bin pe-bench
bench="${PE_BENCH:-${CARGO_TARGET_DIR:-target}/debug/pe-bench}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r doc/guide "$work/guide"
# The help of every command as a page.
"$bench" completions --all "$work/man" > /dev/null
{
  printf '# Commands\n\nThis page has the help of all commands, as `pe-bench COMMAND --help` prints it.\n'
  find "$work/man" -name 'pe-bench-*.1' | sort | while read -r page; do
    page=$(basename "$page" .1)
    command=${page#pe-bench-}
    # The name of a command of a group has its words joined.
    "$bench" $command --help > "$work/help" 2> /dev/null || { command=${command/-/ }; "$bench" $command --help > "$work/help"; }
    printf '\n## pe-bench %s\n\n```text\n%s\n```\n' "$command" "$(cat "$work/help")"
  done
} > "$work/guide/commands.md"
sed -i.old 's|^- \[Keys of a suite\].*|&\n- [Commands](commands.md)|' "$work/guide/SUMMARY.md"
rm "$work/guide/SUMMARY.md.old"
# The plan of the zoo, whose links lead to files that the site does not have.
sed -E 's/\[([^]]*)\]\([^)]*\)/\1/g' results/zoo/PLAN.md > "$work/guide/plan.md"
printf -- '- [Plan of the zoo](plan.md)\n' >> "$work/guide/SUMMARY.md"
cat >> "$work/guide/index.md" << 'PAGE'

## On this site

- [The report of the zoo](zoo/index.html), with a page for each encoding and each task
- The inside of models that count: [CoPE](inspect/cope/index.html) and [RoPE](inspect/rope/index.html)
PAGE
# Pictures of pages that this script writes below.
printf '\n![Exact match by length: the best encodings, RoPE and NoPE](zoo/figures/all-tasks-exact-match-by-length.svg)\n' \
  >> "$work/guide/report.md"
printf '\n![Attention of both heads of a layer with CoPE, trained to count](inspect/cope/layer-1-attention.svg)\n' >> "$work/guide/compare.md"
mdbook build "$work/guide" --dest-dir "$site"
"$bench" report results/zoo/2-cores_2026-11 --out "$site/zoo" --link Guide=../index.html --link Plan=../plan.html \
  --link 'Inside two models=../inspect/cope/index.html'
# Two trained models, which differ beyond the trained length.
"$bench" run quick --workloads counting --encodings cope,rope --seeds 0 --keep-weights last --no-report --quiet --out "$work/quick"
for encoding in cope rope; do
  key=$("$bench" cells "$work/quick" --encodings "$encoding" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["key"])')
  "$bench" inspect "$key" --results "$work/quick" --out "$site/inspect/$encoding" --link 'All results=../../zoo/index.html' \
    --link Guide=../../index.html --link 'CoPE=../cope/index.html' --link 'RoPE=../rope/index.html'
done
nights=${NIGHTLY_DIR:-results/nights}
if [ -d "$nights/night" ]; then
  mkdir -p "$site/nightly"
  cp -r "$nights/night/." "$site/nightly/"
  rm -rf "$site/nightly/cells"
  for file in "$nights"/history/trend.* "$nights/verdict.txt"; do
    [ ! -f "$file" ] || cp "$file" "$site/nightly/"
  done
fi
python3 ci/links.py "$site"
