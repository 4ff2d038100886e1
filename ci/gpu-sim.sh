#!/usr/bin/env bash
# Tests the GPU kernels without a GPU: builds with the wgpu backend and runs on Mesa's lavapipe, a Vulkan on
# the processor. Checks outputs and every gradient of the kernels against the reference engine in f64 at
# small odd sizes (pe-zoo/tests/cube.rs), the operations of models likewise (cube_operations.rs), their launches and those of a
# layer with the bytes of its tensors (cube_launches.rs, cube_budgets.rs), and
# a small plan of ci/gpu.sh lab; products on tensor cores in a simulation, with the C++ compiler
# that CXX names (pe-zoo/src/kernels/gpu/testing/simulated); then the whole conformance kit with its tensors on that device.
#
#   ci/gpu-sim.sh [--install] [--kernels | --conform] [ENCODING ...]
#
#   --install   install lavapipe with apt-get if it is missing (package mesa-vulkan-drivers)
#   --kernels   only the kernels' tests, tensor cores included
#   --conform   only the conformance kit
#   ENCODING    encodings or combinations for the kit; default: all
#
# The first build takes long, because Burn is built with wgpu. The tests take minutes: every variant of a kernel is
# compiled for the processor when it is first used. The times are not measurements.
set -euo pipefail
cd "$(dirname "$0")/.."

install=false kernels=true conform=true
encodings=()
for argument in "$@"; do
  case "$argument" in
    --install) install=true ;;
    --kernels) conform=false ;;
    --conform) kernels=false ;;
    -*) echo "gpu-sim: unknown option $argument; usage: ci/gpu-sim.sh [--install] [--kernels | --conform] [ENCODING ...]" >&2
        exit 2 ;;
    *) encodings+=("$argument") ;;
  esac
done
$kernels || $conform || { echo "gpu-sim: --kernels and --conform exclude each other; leave out both options to run both parts" >&2; exit 2; }

# Path of Mesa's description of lavapipe; LAVAPIPE_ICD overrides it.
driver() {
  local file
  for file in "${LAVAPIPE_ICD:-}" /usr/share/vulkan/icd.d/lvp_icd*.json /usr/local/share/vulkan/icd.d/lvp_icd*.json /etc/vulkan/icd.d/lvp_icd*.json; do
    if [ -n "$file" ] && [ -f "$file" ]; then echo "$file"; return; fi
  done
}
icd=$(driver)
if [ -z "$icd" ] && $install; then
  command -v apt-get > /dev/null || { echo "gpu-sim: apt-get is missing; install Mesa's Vulkan drivers (lavapipe) manually" >&2; exit 1; }
  apt-get install -y -qq mesa-vulkan-drivers libvulkan1
  icd=$(driver)
fi
if [ -z "$icd" ]; then
  echo "gpu-sim: lavapipe is missing: no folder */vulkan/icd.d has a file lvp_icd*.json." >&2
  echo "gpu-sim: run ci/gpu-sim.sh --install, or install your system's Mesa Vulkan drivers, or set LAVAPIPE_ICD to the path of the file" >&2
  exit 1
fi
# Restricts Vulkan to lavapipe, which is then the default device. Older loaders use the second name.
export VK_DRIVER_FILES="$icd" VK_ICD_FILENAMES="$icd"
if [ -z "${XDG_RUNTIME_DIR:-}" ]; then
  XDG_RUNTIME_DIR=$(mktemp -d)
  chmod 700 "$XDG_RUNTIME_DIR"
  export XDG_RUNTIME_DIR
  trap 'rm -rf "$XDG_RUNTIME_DIR"' EXIT
fi
echo "gpu-sim: $icd"

# All commands use the same features, so that Burn is built once.
select=(--workspace --features pe-zoo-bench/cores-sim)
if $kernels; then
  cargo test "${select[@]}" --test cube --test cube_operations --test cube_launches --test cube_budgets
  cargo test "${select[@]}" --lib kernels::gpu::
  cargo test "${select[@]}" --example gpu-lab
fi
if $conform; then
  cargo build "${select[@]}" --bin pe-bench
  bench="${CARGO_TARGET_DIR:-target}/debug/pe-bench"
  backends=$("$bench" list backends)
  echo "$backends"
  grep '^wgpu' <<< "$backends" | grep -q llvmpipe ||
    { echo "gpu-sim: the device that wgpu finds is not lavapipe (llvmpipe), see above" >&2; exit 1; }
  "$bench" conform --backend wgpu "${encodings[@]}"
fi
echo "gpu-sim: all requested tests passed"
