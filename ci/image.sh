#!/usr/bin/env bash
# Runs the steps of the Dockerfile without Docker: the commands of the build stage in a copy of the committed tree, then
# the program with the corpus of the image in an empty folder. Packages and users are not installed.
#
#   ci/image.sh FOLDER [--dev] [ARGUMENTS OF pe-bench]
#
# --dev builds with the dev profile, whose artifacts CARGO_TARGET_DIR may already have. Without arguments the image's own
# command runs.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?"usage: ci/image.sh FOLDER [--dev] [ARGUMENTS OF pe-bench]"}
shift
profile=release
if [ "${1-}" = --dev ]; then
  profile=debug
  shift
fi
mkdir -p "$folder/src" "$folder/data"
folder=$(cd "$folder" && pwd)
git -C "$root" archive HEAD | tar -x -C "$folder/src"
# As COPY does.
sed 's:/$::' "$root/.dockerignore" | grep -v '^#' | (cd "$folder/src" && xargs -r rm -rf)

# One line for each instruction.
instructions() { sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' "$root/Dockerfile" | grep -v '^#'; }
build_steps() { instructions | sed '/^FROM debian/,$d' | sed -n 's/^RUN //p' | grep -v '^apt-get'; }
command_line() { instructions | sed -n 's/^CMD //p' | tr -d '[],"'; }

cd "$folder/src"
build_steps >../steps
[ "$(wc -l <../steps)" -eq 2 ] || { echo "this script knows 2 build steps, but the Dockerfile has other steps; change the script as well"; exit 1; }
if [ "$profile" = debug ]; then
  sed -i -e 's/ --release//' -e "s/ --config '[^']*'//" -e 's:target/release:target/debug:' ../steps
fi
[ -z "${CARGO_TARGET_DIR-}" ] || ln -sfn "$CARGO_TARGET_DIR" target
while read -r step; do
  step=${step//\/cache/'"$cache"'}
  echo "== $step"
  (unset CARGO_TARGET_DIR && cache="$folder/cache" bash -ec "$step" </dev/null)
done <../steps
[ $# -gt 0 ] || read -ra words <<<"$(command_line)"
[ $# -gt 0 ] || set -- "${words[@]}"
cd "$folder/data"
echo "== pe-bench $*"
env -i HOME="$folder/data" PE_ZOO_CACHE="$folder/cache" "$folder/src/target/$profile/pe-bench" "$@"
