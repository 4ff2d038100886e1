# `pe-bench` on the CPU:
#
#   docker build -t pe-bench .
#   docker run --rm -v "$PWD/results:/data/results" pe-bench              # run quick
#   docker run --rm -v "$PWD/results:/data/results" pe-bench list suites
#
# For NVIDIA GPUs (not tried) use nvidia/cuda:12.8.1-devel-ubuntu24.04 with rustup as the builder, build with
# `--features cuda`, use nvidia/cuda:12.8.1-runtime-ubuntu24.04 for the second stage (its kernels are compiled at run
# time: NVRTC must be there, and /usr/local/cuda/nvvm/libdevice, which is copied from the builder), and start with
# `docker run --gpus all ... run quick --backend cuda`. See doc/guide/gpus.md.

FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin pe-bench --config 'profile.release.strip="symbols"'
# The text of `quick` comes through cargo, which the second stage has not.
RUN PE_ZOO_CACHE=/cache target/release/pe-bench data fetch tinyshakespeare

FROM debian:bookworm-slim
RUN useradd --create-home --uid 1000 bench && mkdir -p /data/results && chown -R bench /data
COPY --from=build /src/target/release/pe-bench /usr/local/bin/pe-bench
COPY --from=build --chown=bench /cache /cache
ENV PE_ZOO_CACHE=/cache
USER bench
WORKDIR /data
VOLUME /data/results
ENTRYPOINT ["pe-bench"]
CMD ["run", "quick"]
