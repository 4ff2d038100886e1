#!/usr/bin/env bash
# Tracked files name no package registry's host and no path of somebody's machine.
set -euo pipefail
cd "$(dirname "$0")/.."
dot='[.]'
hosts="(pypi${dot}org|crates${dot}io|npmjs${dot}(org|com)|${dot}debian${dot}org)"
paths="[\"' (]/(root|work|home)/[a-z]"
if git grep -nIE "$hosts|$paths" -- . ':!Cargo.lock' ':!ci/no-machine-names.sh'; then
  echo "take the names above out of the tracked files" >&2
  exit 1
fi
