#!/usr/bin/env bash
# Compares Duet's fluid solver with SimGrid on random platforms: every finish time of every flow.
#
#   benches/peers/simgrid/check.sh [COUNT [SEED]]     COUNT platforms of each set, 150 unless stated
#
# Semantics are equal under these settings: CM02 without TCP window, without cross-traffic; the
# whole system solved at every event (the lazy default misses flows that leave their latency
# together); the finest clock. CM02 weighs a flow by the inverse of its route's latency, or by 1
# where that is zero; set `latency-weights` gives Duet those weights, set `equal-latency` has equal
# latencies and weight 1.
set -euo pipefail
cd "$(dirname "$0")/../../.."
count=${1:-150} seed=${2:-1}
tolerance=1e-9

if [ ! -e /usr/include/simgrid/s4u.hpp ] || ! command -v g++ >/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "SimGrid check: libsimgrid-dev is missing and only root can install it here:" >&2
    echo "  apt-get update && apt-get install g++ libsimgrid-dev libboost-dev" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends g++ libsimgrid-dev libboost-dev >/dev/null
fi

# As a test's, so that it shares the dependencies and the library that tests are built with.
duet=$(cargo test --quiet --no-run --locked --example flows --message-format json |
  sed -n 's/.*"executable":"\([^"]*flows[^"]*\)".*/\1/p')
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
g++ -O2 -std=c++17 benches/peers/simgrid/flows.cpp -o "$dir/simgrid" -lsimgrid

"$duet" generate "$dir" "$count" "$seed"
for file in "$dir"/*.flows; do
  "$dir/simgrid" "$file" "${file%.flows}.finish" \
    --cfg=network/model:CM02 --cfg=network/optim:Full --cfg=network/TCP-gamma:0 \
    --cfg=network/crosstraffic:0 --cfg=surf/precision:1e-15 --log=root.thres:warning
done
echo "SimGrid check, $count platforms per set, seed $seed:"
"$duet" compare "$dir" "$tolerance"
