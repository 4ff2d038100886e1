#!/usr/bin/env bash
# Checks that tracked files contain no host names of package registries and no paths of a developer's machine.
set -euo pipefail
cd "$(dirname "$0")/.."
dot='[.]'
hosts="(pypi${dot}org|crates${dot}io|npmjs${dot}(org|com)|${dot}debian${dot}org)"
paths="(^|[^A-Za-z0-9_.}/-])/(root|work|home)/[a-z]"
status=0
git grep -nIE "$hosts|$paths" -- . ':!Cargo.lock' ':!ci/no-machine-names.sh' || status=$?
case $status in
  0) echo "remove the names above from the tracked files" >&2; exit 1 ;;
  1) ;; # nothing found
  *) echo "no-machine-names: git grep ended with status $status" >&2; exit 1 ;;
esac
