#!/usr/bin/env bash
# Runs pe-bench on another machine with an NVIDIA GPU. It has three commands:
#
#   ci/gpu.sh pack DIR [--with-FEATURE]     here: builds one stripped, compressed program and puts it into
#                                           DIR with this script and the peer; copy DIR to the other machine
#   DIR/gpu.sh run DIR [--minutes N] [--only conform,attention,speed,paper] [--suites A,B] [--lens T,...]
#              [--precisions bf16,f32,tf32] [--encodings A,B] [--modes eager,sdpa,flex,compile,sdpa-compile]
#                                           there: runs as much as fits into N minutes (default 60)
#   DIR/gpu.sh lab DIR [--seconds N] [--records FOLDER] [--only first,warm,peers,ncu,programs,rest]
#                                           there: answers the open questions of speed in N seconds (default 400)
#
# The other machine is x86-64 Linux with glibc 2.36 or newer, libstdc++, zlib, the NVIDIA driver and
# libdevice.10.bc, which has the kernels' exponentials: it is part of the CUDA toolkit and of PyTorch
# (triton). PyTorch is used if `python3` (or PEER_PYTHON) has it, and otherwise skipped with a message. No
# compiler, no network.
#
# `run` works in this order and leaves small files under DIR/records:
#   conform   the conformance kit with its tensors on the GPU                conform.json, conform/*.txt
#   attention time and memory of one layer's attention, forward and backward, in bf16 and f32, heads of 64
#             and 128, next to torch_step.py in each of its modes; the peak rates of the GPU's products and
#             copies (ceilings.json); table.md has the ratios          attention/*.json, table.md
#   speed     time of a training step, tokens/s and memory of every encoding next to torch_step.py in
#             each of its modes, each in a separate process                  speed/*.json
#   paper     as many cells of the papers' suites as fit                     paper/SUITE/
# In f32 neither side rounds factors; tf32 and bf16 round them on both.
# Measurements with a record are not repeated: run the same command again to continue, also after an interruption
# (Ctrl-C, SIGTERM, the end of the minutes), which ends every process that was started. A record whose
# status is not "done" is repeated.
#
# `lab` is for machines that are lent for minutes. Its parts run in this order, the most important first, and each
# finished measurement is one line of FOLDER/lab.jsonl (DIR/records/lab) at once, so that a call that is killed keeps
# what it has; logs and the PTX of all kernels follow in FOLDER/logs.tar.*, and compiled kernels in FOLDER/kernels.tar.*:
#   first     the beginning of ci/gpu/lab.jsonl: kernels of a training step by name, attention, products
#   warm      a training step in a second process, which finds compiled kernels and tuning on disk
#   peers     PyTorch by ci/gpu/peers.jsonl, in one process
#   ncu       Nsight Compute's counters of the forward and the backward kernel of attention, if it is installed
#   programs  a training step by each other program of the pack, such as one with `cuda-cpp`
#   rest      the rest of ci/gpu/lab.jsonl
# Copy what an earlier call left (lab.jsonl, kernels.tar.*) to DIR/before, and the next call compiles and measures only the rest.
#
# Exit status: 0 done or out of time; 1 something failed, with a message; 2 a command line that cannot be
# read; 3 no GPU, or no program; 130 interrupted.
set -euo pipefail

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
fail() { echo "gpu: $2" >&2; exit "$1"; }

# The folder of the lab's files: this one in a pack, ci/gpu in the project's tree.
lab_files=$(cd "$(dirname "$0")" && pwd)
[ ! -d "$lab_files/gpu" ] || lab_files=$lab_files/gpu

pack() {
  [ $# -ge 1 ] || usage
  local out=$1 root target features name
  shift
  root=$(cd "$(dirname "$0")/.." && pwd)
  [ -f "$root/Cargo.toml" ] || fail 2 "pack works in the project's own tree"
  command -v xz > /dev/null || fail 1 "xz is missing; install it with the system's package manager"
  mkdir -p "$out"
  out=$(cd "$out" && pwd)
  cd "$root"
  target="${CARGO_TARGET_DIR:-target}"
  # flex is included, because the scalar checks and the errors of other backends need it.
  features=pe-zoo-bench/cuda,pe-zoo-bench/lab
  name=pe-bench
  for feature in "$@"; do
    [[ "$feature" =~ ^--with-[a-z-]+$ ]] || fail 2 "unknown option $feature; known: --with-FEATURE"
    features=$features,pe-zoo-bench/${feature#--with-}
    name=$name+${feature#--with-}
  done
  cargo build --release --workspace --features "$features" --example gpu-lab ||
    fail 1 "the build failed; if Burn could not fetch LLVM, run ci/llvm-for-cuda.sh once"
  cp "$target/release/examples/gpu-lab" "$out/$name.new"
  strip "$out/$name.new"
  # Calls within the program compress better as absolute addresses.
  xz -T0 --x86 --lzma2=preset=9e,dict=128MiB -f "$out/$name.new"
  mv "$out/$name.new.xz" "$out/$name.xz"
  rm -f "$out/$name"
  # Text of the suite gpu-slot, because the other machine has no network.
  PE_ZOO_CACHE="$out/cache" "$target/release/examples/gpu-lab" data fetch rust-code
  cp ci/gpu.sh ci/gpu/*.sh ci/gpu/*.jsonl ci/peers/torch_step.py ci/peers/ceilings.py ci/peers/gpu_table.py "$out/"
  echo "gpu: packed $(wc -c < "$out/$name.xz") bytes of program; copy $out and run there: ./gpu.sh run . or ./gpu.sh lab ."
}

# unpacked NAME: the program DIR/NAME of DIR/NAME.xz.
unpacked() {
  local program="$here/$1"
  [ ! -x "$program" ] || return 0
  [ -f "$program.xz" ] || fail 3 "there is no program $1 in $here; make one with ci/gpu.sh pack"
  if command -v xz > /dev/null; then
    xz -dc "$program.xz" > "$program.new"
  else
    python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], "wb"))' \
      "$program.xz" "$program.new"
  fi
  chmod +x "$program.new"
  mv "$program.new" "$program"
}

# Finds the GPU, libdevice and Python; sets device, python and CUDA_PATH.
gpu_present() {
  command -v nvidia-smi > /dev/null && nvidia-smi -L > /dev/null 2>&1 ||
    fail 3 "no NVIDIA GPU here: nvidia-smi finds none"
  device=$(nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader | head -n 1)
  python=${PEER_PYTHON:-python3}
  libdevice
}

# Remaining seconds, at least 0.
left() { local rest=$((deadline - $(date +%s))); echo $((rest > 0 ? rest : 0)); }

# The running command, as the leader of its own process group.
running=
# A sweep that is interrupted leaves a checkpoint of each cell; it gets 20 seconds for that.
end_group() {
  local beat
  kill -INT -- "-$running" 2> /dev/null || true
  for beat in $(seq 40); do
    kill -0 -- "-$running" 2> /dev/null || return 0
    # Some programs ignore the first signal.
    [ "$beat" -ne 20 ] || kill -TERM -- "-$running" 2> /dev/null || true
    sleep 0.5
  done
  kill -KILL -- "-$running" 2> /dev/null || true
}
stop() {
  trap '' INT TERM
  [ -z "$running" ] || end_group
  echo "gpu: interrupted; finished records are kept, run the same command to continue" >&2
  exit 130
}

# limited SECONDS OUT COMMAND ...: runs a command with its output in a file, at most for these seconds and at most
# until the end of the minutes. 124: out of time.
limited() {
  local seconds=$1 out=$2 rest start status=0
  shift 2
  rest=$(left)
  [ "$seconds" -lt "$rest" ] || seconds=$rest
  [ "$seconds" -gt 0 ] || return 124
  set -m
  "$@" > "$out" 2>&1 &
  running=$!
  set +m
  start=$(date +%s)
  while kill -0 "$running" 2> /dev/null; do
    if [ $(($(date +%s) - start)) -ge "$seconds" ]; then
      end_group
      status=124
      break
    fi
    sleep 0.2
  done
  local code=0
  wait "$running" 2> /dev/null || code=$?
  running=
  [ "$status" -ne 0 ] || status=$code
  return "$status"
}

# Text as a JSON string.
quoted() { printf '"%s"' "$(printf '%s' "$1" | tr '\n\t' '  ' | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g' | cut -c 1-600)"; }

# done_already FILE: whether there is a record with the status "done".
done_already() { [ -s "$1" ] && grep -q '"status":"done"' "$1"; }

# record FILE NAME STATUS SECONDS LINE: writes a record in one go; LINE is JSON or empty.
record() {
  printf '{"name":%s,"status":"%s","seconds":%s,"device":%s,"measured":%s}\n' \
    "$(quoted "$2")" "$3" "$4" "$(quoted "$device")" "${5:-null}" > "$1.new"
  mv "$1.new" "$1"
}

# measured FILE NAME LIMIT COMMAND ...: stores one line of JSON in a record, with the status of the command.
measured() {
  local file=$1 name=$2 limit=$3 start status=0 line
  shift 3
  if done_already "$file"; then return 0; fi
  [ "$(left)" -gt 0 ] || return 0
  start=$(date +%s)
  limited "$limit" "$log" "$@" || status=$?
  local seconds=$(($(date +%s) - start))
  line=$(grep '^{' "$log" | tail -n 1 || true)
  if [ "$status" -eq 0 ] && [ -n "$line" ]; then
    record "$file" "$name" done "$seconds" "$line"
    echo "gpu: $name: $line"
  elif [ "$status" -eq 124 ]; then
    record "$file" "$name" timed-out "$seconds" ""
    echo "gpu: $name: out of time after $seconds s"
  else
    record "$file" "$name" failed "$seconds" "{\"said\":$(quoted "$(tail -n 5 "$log")")}"
    echo "gpu: $name: failed: $(tail -n 1 "$log")" >&2
    failures=$((failures + 1))
  fi
}

# holds ID: whether the kit has found nothing wrong with an encoding.
holds() { grep -qs ': all .* checks hold' "$records/conform/$1.txt"; }

# One process per encoding, as many at a time as there are processors: most of the time goes into compiling kernels.
conformance() {
  local status=0 start held=0 id
  mkdir -p "$records/conform"
  start=$(date +%s)
  for id in $(cat "$log.encodings"); do holds "$id" || echo "$id"; done > "$log.conform"
  [ -s "$log.conform" ] || { echo "gpu: conform: every encoding has a record of all checks"; return 0; }
  [ "$(left)" -gt 0 ] || return 0
  limited 1800 "$log" xargs -P "$(nproc)" -a "$log.conform" -I ID \
    bash -c '"$1" conform --backend cuda "$2" > "$3/$2.txt" 2>&1' conform "$bench" ID "$records/conform" || status=$?
  for id in $(cat "$log.encodings"); do
    if holds "$id"; then held=$((held + 1)); else echo "gpu: conform: $id has no record of all checks" >&2; fi
  done
  case "$status" in
    0) status=done ;;
    124) status=timed-out ;;
    *) status=failed; failures=$((failures + 1)) ;;
  esac
  record "$records/conform.json" conform "$status" "$(($(date +%s) - start))" "{\"encodings_that_hold\":$held}"
  echo "gpu: conform: $held encodings pass all checks; status $status; see $records/conform"
}

# asked LIST NAME: whether a list of names separated by commas is empty or has the name.
asked() { [ -z "$1" ] || [[ ",$1," == *",$2,"* ]]; }

# Our id and the peer's for each encoding that is asked for; the peer's modes, or `-` if none of them is asked for.
peers() {
  local id peer its mode wanted
  while read -r id peer its; do
    grep -qx -e "$id" "$log.encodings" || continue
    wanted=
    for mode in ${its//,/ }; do
      asked "$modes_asked" "$mode" && wanted="$wanted,$mode"
    done
    wanted=${wanted#,}
    echo "$id $peer ${wanted:--}"
  done <<'LIST'
nope nope eager,sdpa,flex,compile,sdpa-compile
rope rope eager,sdpa,flex,compile,sdpa-compile
alibi alibi eager,sdpa,flex,compile,sdpa-compile
t5-bias t5 eager,sdpa,flex,compile,sdpa-compile
relative shaw eager,flex,compile
fox fox eager,sdpa,flex,compile,sdpa-compile
cope cope eager,compile
LIST
}

# Attention alone: 16 heads, with sequences of 32768 tokens in total, up to a single one of 32768 tokens.
attention() {
  local len batch width dtype id peer modes mode sizes
  mkdir -p "$records/attention"
  if $torch; then
    measured "$records/ceilings.json" "ceilings" 300 "$python" "$here/ceilings.py" --device cuda
  fi
  peers > "$log.peers"
  for len in ${lens//,/ } 32768; do
    batch=$((32768 / len))
    [ "$batch" -gt 0 ] || batch=1
    for width in 64 128; do
      for dtype in ${precisions//,/ }; do
        sizes=(--attention --batch "$batch" --len "$len" --dim $((16 * width)) --heads 16 --steps 9)
        while read -r id peer modes; do
          case "$id" in rope | cope | fox | alibi) ;; *) continue ;; esac
          measured "$records/attention/pe-bench-$id-$dtype-$width-$len.json" \
            "pe-bench attention $id $dtype, heads of $width, $len" 300 \
            "$bench" speed --json --backend cuda --encodings "$id" --precision "$dtype" "${sizes[@]}"
          $torch && [ "$modes" != - ] || continue
          # Without blocks, 32768 tokens need 32 GiB for one matrix of logits.
          [ "$len" -lt 32768 ] || modes=$(echo "$modes" | tr , '\n' | grep -x 'sdpa\|flex\|sdpa-compile' | paste -sd , || true)
          [ "$id" != alibi ] && [ "$id" != fox ] || [ "$len" -lt 32768 ] || modes=flex
          for mode in ${modes//,/ }; do
            measured "$records/attention/torch-$peer-$mode-$dtype-$width-$len.json" \
              "torch attention $peer $mode $dtype, heads of $width, $len" 300 \
              "$python" "$here/torch_step.py" --device cuda --pe "$peer" --mode "$mode" --dtype "$dtype" "${sizes[@]}"
          done
        done < "$log.peers"
      done
    done
  done
  "$python" "$here/gpu_table.py" "$records" > "$records/table.md" ||
    echo "gpu: no table: $python cannot run gpu_table.py" >&2
}

# Batches of equal size in tokens: width 512, 8 heads of 64, 4 layers.
speed() {
  local len batch dtype id peer modes mode sizes
  mkdir -p "$records/speed"
  for len in ${lens//,/ }; do
    batch=$((65536 / len))
    [ "$batch" -gt 0 ] || batch=1
    sizes=(--batch "$batch" --len "$len" --dim 512 --heads 8 --layers 4 --vocab 64 --steps 7)
    # PyTorch and pe-bench alternate, so that slow phases of the machine affect both.
    peers > "$log.peers"
    for dtype in ${precisions//,/ }; do
      while read -r id peer modes; do
        measured "$records/speed/pe-bench-$id-$dtype-$len.json" "pe-bench $id $dtype $len" 300 \
          "$bench" speed --json --backend cuda --encodings "$id" --precision "$dtype" "${sizes[@]}"
        $torch && [ "$modes" != - ] || continue
        for mode in ${modes//,/ }; do
          measured "$records/speed/torch-$peer-$mode-$dtype-$len.json" "torch $peer $mode $dtype $len" 600 \
            "$python" "$here/torch_step.py" --device cuda --pe "$peer" --mode "$mode" --dtype "$dtype" "${sizes[@]}"
        done
      done < "$log.peers"
      # Encodings without a peer are compared with rope.
      for id in $(cat "$log.encodings"); do
        measured "$records/speed/pe-bench-$id-$dtype-$len.json" "pe-bench $id $dtype $len" 300 \
          "$bench" speed --json --backend cuda --encodings "$id" --precision "$dtype" "${sizes[@]}"
      done
    done
  done
}

# Sets CUDA_PATH to a folder with nvvm/libdevice/libdevice.10.bc.
libdevice() {
  local root file inside=nvvm/libdevice/libdevice.10.bc
  for root in "${CUDA_PATH:-}" /usr/local/cuda /opt/cuda /usr/lib/cuda /usr; do
    if [ -n "$root" ] && [ -f "$root/$inside" ]; then export CUDA_PATH=$root; return; fi
  done
  file=$("$python" - 2> /dev/null <<'PYTHON' || true
import glob, importlib.util, os
for name, pattern in [("triton", "backends/nvidia/lib/libdevice.10.bc"), ("nvidia", "*/nvvm/libdevice/libdevice.10.bc")]:
    spec = importlib.util.find_spec(name)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for found in glob.glob(os.path.join(folder, pattern)):
            print(found)
            raise SystemExit
PYTHON
)
  [ -n "$file" ] || fail 3 "no libdevice.10.bc here: it is part of the CUDA toolkit and of PyTorch's triton; set CUDA_PATH or PEER_PYTHON"
  mkdir -p "$here/cuda/${inside%/*}"
  cp "$file" "$here/cuda/$inside"
  export CUDA_PATH=$here/cuda
}

paper() {
  local suite status
  for suite in ${suites//,/ }; do
    [ "$(left)" -gt 30 ] || { echo "gpu: no time left for $suite"; return; }
    status=0
    # The sweep keeps its own records, resumes interrupted cells, and skips finished ones.
    limited "$(left)" "$records/$suite.txt" "$bench" run "$suite" --backend cuda --jobs 1 \
      --out "$records/paper/$suite" || status=$?
    case "$status" in
      0) echo "gpu: $suite: done" ;;
      124) echo "gpu: $suite: out of time; run again to continue" ;;
      *) echo "gpu: $suite: exit status $status: $(tail -n 1 "$records/$suite.txt")" >&2
         failures=$((failures + 1)) ;;
    esac
  done
}

run() {
  [ $# -ge 1 ] || usage
  here=$1
  shift
  minutes=60
  only=conform,attention,speed,paper
  suites=paper-flip-flop,paper-counting,paper-selective-copy,tape-addition,paper-selective-counting
  lens=512,2048,8192
  precisions=bf16,f32
  encodings=
  modes_asked=
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail 2 "$1 needs a value"
    case "$1" in
      --minutes) minutes=$2 ;;
      --only) only=$2 ;;
      --suites) suites=$2 ;;
      --lens) lens=$2 ;;
      --precisions) precisions=$2 ;;
      --encodings) encodings=$2 ;;
      --modes) modes_asked=$2 ;;
      *) fail 2 "unknown option $1; known: --minutes, --only, --suites, --lens, --precisions, --encodings, --modes" ;;
    esac
    shift 2
  done
  [[ "$minutes" =~ ^[1-9][0-9]{0,4}$ ]] || fail 2 "--minutes is '$minutes', expected a whole number from 1 to 99999"
  [[ "$lens" =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || fail 2 "--lens is '$lens', expected whole numbers separated by commas"
  local part
  for part in ${only//,/ }; do
    case "$part" in
      conform | attention | speed | paper) ;;
      *) fail 2 "--only names '$part'; known: conform, attention, speed, paper" ;;
    esac
  done
  for part in ${precisions//,/ }; do
    case "$part" in
      f32 | tf32 | bf16) ;;
      *) fail 2 "--precisions names '$part'; known: f32, tf32, bf16" ;;
    esac
  done
  for part in ${modes_asked//,/ }; do
    case "$part" in
      eager | sdpa | flex | compile | sdpa-compile) ;;
      *) fail 2 "--modes names '$part'; known: eager, sdpa, flex, compile, sdpa-compile" ;;
    esac
  done
  [ -d "$here" ] || fail 2 "there is no folder $here"
  here=$(cd "$here" && pwd)
  deadline=$(($(date +%s) + 60 * minutes))
  trap stop INT TERM

  unpacked pe-bench
  bench="$here/pe-bench"
  [ ! -d "$here/cache" ] || export PE_ZOO_CACHE="$here/cache"
  gpu_present
  "$bench" list backends | grep '^cuda' | grep -qvE 'not compiled in|unavailable: ' ||
    fail 3 "pe-bench cannot open the GPU: $("$bench" list backends | grep '^cuda')"
  records="$here/records"
  mkdir -p "$records/paper"
  log="$records/last.txt"
  failures=0
  "$bench" list encodings | awk 'NR > 1 { print $1 }' > "$log.encodings"
  if [ -n "$encodings" ]; then
    for part in ${encodings//,/ }; do
      grep -qx -e "$part" "$log.encodings" ||
        fail 2 "--encodings names '$part'; known: $(paste -sd , "$log.encodings")"
    done
    printf '%s\n' ${encodings//,/ } > "$log.encodings"
  fi
  torch=false
  if "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    torch=true
  else
    echo "gpu: $python has no PyTorch with CUDA: the comparison with PyTorch is skipped"
  fi
  echo "gpu: $device, $minutes minutes, records in $records"
  for part in ${only//,/ }; do
    case "$part" in
      conform) conformance ;;
      attention) attention ;;
      speed) speed ;;
      paper) paper ;;
    esac
  done
  rm -f "$log" "$log.peers" "$log.encodings" "$log.conform"
  [ "$failures" -eq 0 ] || fail 1 "$failures parts failed, see above"
  echo "gpu: done or out of time; run again to continue"
}

case "${1:-}" in
  pack) shift; pack "$@" ;;
  run) shift; run "$@" ;;
  lab) shift; . "$lab_files/lab.sh"; lab "$@" ;;
  *) usage ;;
esac
