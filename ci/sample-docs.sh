#!/usr/bin/env bash
# Usage: ci/sample-docs.sh SEED REV
# Prints a random sample of 100 doc comments of items in the source files of REV, each with the first line of its item.
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,3s/^# //p' "$0"; exit 2; }
cd "$(dirname "$0")/.."

commit=$(git rev-parse --verify --quiet "$2^{commit}") || { echo "no commit $2"; exit 2; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git archive "$commit" | tar -x -C "$tree"
cd "$tree"

find . -name '*.rs' -path './*/src/*' | sed 's|^\./||' | LC_ALL=C sort | tr '\n' '\0' | xargs -0 awk '
FNR == 1 { doc = ""; attribute = 0 }
/^ *\/\/\/( |$)/ {
  if (doc == "") line = FNR
  text = $0
  sub(/^ *\/\/\/ ?/, "", text)
  doc = doc (doc == "" || text == "" ? "" : " ") text
  next
}
# Attributes may separate the comment from its item.
doc != "" && (attribute || /^ *#\[/) { attribute = $0 !~ /\] *$/; next }
doc != "" {
  item = $0
  sub(/^ +/, "", item)
  print FILENAME ":" line ": " doc "  =>  " item
  doc = ""
}' >"$tree/all.txt"

# Uses the generator of Park and Miller, because the random numbers of awk differ between implementations.
awk -v seed="$1" '
{ doc[NR] = $0 }
END {
  state = seed % 2147483646 + 1
  for (i = 0; i < 20; i++) state = state * 16807 % 2147483647
  count = NR < 100 ? NR : 100
  for (i = 1; i <= count; i++) {
    state = state * 16807 % 2147483647
    j = i + state % (NR - i + 1)
    chosen = doc[j]; doc[j] = doc[i]; doc[i] = chosen
    print chosen
  }
}' "$tree/all.txt"
