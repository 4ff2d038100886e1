#!/usr/bin/env bash
# Runs the library tests of pe-zoo with the instructions of other processors, under QEMU: x86-64 with AVX2 but without
# AVX-512, and aarch64 with NEON. Tests compare the kernels with the scalar references, and their bits on several numbers of
# threads. Times under QEMU mean nothing.
#
#   ci/instruction-sets.sh [avx2|neon] [FILTER ...]      default: both, all tests
#
# Needs qemu-user-static, and for NEON gcc-aarch64-linux-gnu and libc6-dev-arm64-cross (names of Debian's packages) and
# `rustup target add aarch64-unknown-linux-gnu`. With the filters `math:: kernels:: ops::` a run takes two minutes after the
# build, without filters about an hour.
set -euo pipefail
cd "$(dirname "$0")/.."

# Status 2: a tool is missing.
missing() { echo "instruction-sets: $*" >&2; exit 2; }
need() { command -v "$1" >/dev/null || missing "$1 is missing; install $2"; }

sets=(avx2 neon)
case "${1:-}" in avx2 | neon) sets=("$1"); shift ;; esac
for set in "${sets[@]}"; do
  case $set in
    avx2)
      need qemu-x86_64-static qemu-user-static
      target=x86_64-unknown-linux-gnu
      export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="qemu-x86_64-static -cpu Haswell"
      ;;
    neon)
      need qemu-aarch64-static qemu-user-static
      need aarch64-linux-gnu-gcc "gcc-aarch64-linux-gnu and libc6-dev-arm64-cross"
      target=aarch64-unknown-linux-gnu
      [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || missing "run rustup target add $target"
      export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
      export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
      ;;
  esac
  echo "== $set"
  cargo test --package pe-zoo --lib --target "$target" -- "$@"
done
