#!/usr/bin/env bash
# Opens a report in headless Chromium and checks that there are no console errors and no requests, that plots are
# drawn and filters work, without horizontal scrolling, with readable contrast, with whole labels, texts for drawings, the
# answer in the first window and all columns in print, at 390, 768 and 1,440 pixels, and that no name is run as a script.
#
# usage: ci/browser-test.sh [--report DIR] [--out DIR]
#   --report DIR   test this report (a folder with index.html) instead of a generated one
#   --out DIR      screenshots go here; default: browser-test in the target folder
# exit: 0 passed, 1 something failed, 2 Chromium, Python or pe-bench is missing
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
report=""
out="$target/browser-test"
while [ $# -gt 0 ]; do
  case "$1" in
    --report) report="${2:?--report needs a folder}"; shift 2 ;;
    --out) out="${2:?--out needs a folder}"; shift 2 ;;
    *) echo "unknown argument $1; see the head of $0" >&2; exit 2 ;;
  esac
done

missing() { echo "$1" >&2; exit 2; }
command -v python3 > /dev/null || missing "python3 is missing: apt-get install python3"
chromium=""
for name in "${CHROMIUM:-chromium}" chromium-browser google-chrome google-chrome-stable; do
  if command -v "$name" > /dev/null; then chromium=$(command -v "$name"); break; fi
done
[ -n "$chromium" ] || missing "no Chromium: apt-get install chromium, or set CHROMIUM to its path"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
start=$SECONDS
mkdir -p "$out"

# Tests the checks: on a page with every fault, each fault must be reported.
python3 ci/browser/check.py "$chromium" ci/browser/saboteur "$work/shots" --hostile > "$work/saboteur.txt" && noticed=1 || noticed=0
for fault in "console error: something broke" "nobody catches this" "asks for" "contrast below 4.5" \
  "px wide in a window" "is not drawn" "no plot is drawn" "a filter without effect: changes nothing" \
  "a script in a record's name ran" "lacks a description" "cut or have braces: Randomized{a=1}" "8 lines in colour" \
  "on rgb(255, 255, 255): 1." "1 answers with a score, of 3"; do
  grep -qF "$fault" "$work/saboteur.txt" || { echo "the checks did not report this fault of the test page: $fault"; noticed=1; }
done
if [ "$noticed" -ne 0 ]; then
  cat "$work/saboteur.txt"
  echo "FAILED: the checks do not detect their faults"
  exit 1
fi

if [ -n "$report" ]; then
  python3 ci/browser/check.py "$chromium" "$report" "$out"
else
  bench="${PE_BENCH:-$target/debug/pe-bench}"
  [ -x "$bench" ] || missing "$bench is missing: cargo build --workspace, or set PE_BENCH to a pe-bench"
  # Every kind of page that the program writes: two nights, a comparison, an inspected cell, and reports of one
  # suite and of all committed records.
  quick=results/language/epyc-2-cores_2026-11
  said() { "$@" > "$work/said.txt" 2>&1 || { cat "$work/said.txt"; exit 1; }; }
  said "$bench" report results/* --out "$work/pages/all" --formats html
  said "$bench" report results/zoo/2-cores_2026-11 --out "$work/pages/zoo" --formats html
  # Of many pages of encodings, workloads and cells, three each are enough.
  for kind in all/pages/encodings all/pages/tasks all/pages/cells zoo/pages/encodings zoo/pages/tasks zoo/pages/cells; do
    find "$work/pages/$kind" -name '*.html' | sort | tail -n +4 | xargs -r -d '\n' rm
  done
  said "$bench" report "$quick" --out "$work/pages"
  said "$bench" compare cope rope --page "$work/pages/compare.html"
  # A page about a cell needs its weights.
  printf '%s\n' 'name = "inspected"' 'title = "Inspected"' 'about = "One cell."' 'seeds = [0]' 'encodings = ["cope"]' \
    '[model]' 'width = 32' '[train]' 'steps = 40' 'len = 32' '[eval]' 'lens = [32]' 'samples = 8' \
    '[[workload]]' 'name = "flip-flop"' 'task = "flip-flop"' > "$work/inspected.toml"
  said "$bench" run "$work/inspected.toml" --out "$work/inspected" --keep-weights last
  key=$(basename "$work"/inspected/cells/*.json .json)
  said "$bench" inspect "$key" --results "$work/inspected" --out "$work/pages/inspect"
  nights=(--baseline "$work/baseline" --history "$work/pages/nights")
  said "$bench" nightly results/contextual/2-cores_2026-11 "${nights[@]}" --accept
  # The gate may reject the second night, which has another configuration; only its page is tested.
  "$bench" nightly "$quick" "${nights[@]}" > "$work/said.txt" 2>&1 || [ $? -eq 3 ] || { cat "$work/said.txt"; exit 1; }
  # Its records are packed, and are files in a merged folder.
  said "$bench" records merge "$quick" --out "$work/merged"
  python3 ci/browser/hostile.py "$work/merged" "$work/hostile"
  said "$bench" report "$work/hostile" --out "$work/hostile-report"
  names=()
  for name in cope rope; do
    hostile=$(grep -l "\"id\": \"$name\"" "$work"/hostile/cells/*.json | head -n 1)
    names+=("$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["encoding"]["name"])' "$hostile")")
  done
  said "$bench" compare "${names[@]}" "$work/hostile" --page "$work/hostile-report/compare.html"
  failed=0
  echo "== the pages of the committed records"
  python3 ci/browser/check.py "$chromium" "$work/pages" "$out" || failed=1
  echo "== pages whose names are scripts"
  python3 ci/browser/check.py "$chromium" "$work/hostile-report" "$out" --hostile || failed=1
  echo "screenshots: $out; $((SECONDS - start)) s"
  exit "$failed"
fi
