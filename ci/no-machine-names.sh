#!/usr/bin/env bash
# Checks that tracked files contain no host names of package registries and no paths of a developer's machine.
set -euo pipefail
cd "$(dirname "$0")/.."
dot='[.]'
hosts="(pypi${dot}org|crates${dot}io|npmjs${dot}(org|com)|${dot}debian${dot}org)"
paths="[\"' (]/(root|work|home)/[a-z]"
if git grep -nIE "$hosts|$paths" -- . ':!Cargo.lock' ':!ci/no-machine-names.sh'; then
  echo "remove the names above from the tracked files" >&2
  exit 1
fi
