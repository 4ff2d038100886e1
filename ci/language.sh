#!/usr/bin/env bash
# Checks the wording of doc comments in every tracked source file, and that no type name has two definitions
# (ci/type-names.sh); the rules are in CONTRIBUTING.md, "Language". Prints four counts and every place; fails unless all
# counts are zero.
set -euo pipefail
cd "$(dirname "$0")/.."

# Phrases that a reader of plain English stumbles over, one a line.
phrases='as it were
at odds
cares for
comes about
dearer
for ever
goes on from
in its stead
in truth
kindred
least p
less what
nobody is told
of which there
says which
stand together
stands in the way
the news
the whole less
thrice
what becomes of
what it is
what there is
without a word'

mapfile -t files < <(git ls-files '*.rs' | awk '/\/src\//')
[ "${#files[@]}" -gt 0 ] || { echo "no source files are tracked"; exit 1; }

failed=0
PHRASES="$phrases" awk '
BEGIN { phrase_count = split(tolower(ENVIRON["PHRASES"]), phrase, "\n") }

function report(rule, line, text) {
  found[rule]++
  printf "%s:%d: %s: %s\n", FILENAME, line, rule, text
}

# Whole words in lower case, whatever the punctuation between them.
function check_phrases(text,   i, words) {
  words = tolower(text)
  gsub(/[^a-z0-9]+/, " ", words)
  for (i = 1; i <= phrase_count; i++)
    if (index(" " words " ", " " phrase[i] " ")) report("forbidden phrase \"" phrase[i] "\"", doc_line, text)
}

# `item` is the first line of the documented item, empty for the documentation of a module (`//!`).
function finish(item,   words, count, public) {
  if (doc == "") return
  sub(/^ +/, "", doc)
  if (item != "" && doc ~ /^What /) report("begins with \"What\"", doc_line, doc)
  # Items of a public trait and variants of a public enum have no `pub` of their own.
  public = item ~ /^ *pub / || (open_public && item ~ /^    [A-Za-z#]/)
  count = split(doc, words, /[ \t]+/)
  if (item != "" && public && count < 4) report("fewer than four words", doc_line, doc)
  check_phrases(doc)
  doc = ""
}

FNR == 1 { finish(""); open_public = 0 }
/^ *\/\/[\/!]/ {
  if (doc == "") doc_line = FNR
  line = $0
  sub(/^ *\/\/[\/!] ?/, "", line)
  doc = doc " " line
  next
}
# Attributes may separate the comment from its item.
doc != "" && /^ *#\[/ { attribute = $0 !~ /\] *$/; next }
doc != "" && attribute { attribute = $0 !~ /\] *$/; next }
{ finish($0) }
/^pub (unsafe )?(enum|trait) / { open_public = $0 !~ /\} *$/ }
/^}/ { open_public = 0 }

END {
  finish("")
  for (rule in found) {
    if (rule ~ /^begins/) what += found[rule]
    else if (rule ~ /^fewer/) short += found[rule]
    else banned += found[rule]
  }
  printf "doc comments that begin with \"What\": %d\n", what
  printf "doc comments of public items with fewer than four words: %d\n", short
  printf "forbidden phrases in doc comments: %d\n", banned
  exit what + short + banned > 0
}' "${files[@]}" || failed=1

bash ci/type-names.sh || failed=1
exit "$failed"
