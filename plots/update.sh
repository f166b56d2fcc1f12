#!/usr/bin/env bash
# Draws everything in plots/ anew. `cargo test --test experiment committed` fails when it differs.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -f plots/compass/*.svg
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo run --release --locked --quiet -- run experiments/compass/experiment.yaml \
  --out "$out" --plots plots/compass --report experiments/compass/report.md
