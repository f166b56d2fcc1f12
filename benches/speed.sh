#!/usr/bin/env bash
# Prints docs/performance.md: how long whole processes take and how much memory they need on one
# core, Duet's beside SimGrid's where that can do the case.
#
#   benches/speed.sh [--long] >docs/performance.md     --long adds SimGrid's minutes-long cases
set -euo pipefail
cd "$(dirname "$0")/.."
long=${1:-}

if ! command -v /usr/bin/time >/dev/null || [ ! -e /usr/include/simgrid/s4u.hpp ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "speed: as root run: apt-get update && apt-get install time g++ libsimgrid-dev libboost-dev" >&2
    exit 1
  fi
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends \
    time g++ libsimgrid-dev libboost-dev >/dev/null
fi

cargo build --quiet --release --locked --bins --examples
release=$(realpath "${CARGO_TARGET_DIR:-target}/release")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for peer in collectives flows; do
  g++ -O2 -std=c++17 "benches/peers/simgrid/$peer.cpp" -o "$dir/$peer" -lsimgrid
done
simgrid=(--cfg=network/model:CM02 --cfg=network/TCP-gamma:0 --cfg=network/crosstraffic:0
  --log=root.thres:warning)

runs=3
# measure COMMAND...: prints `wall time (processor time), memory`, the best of the runs.
measure() {
  local wall=999999999 processor=999999999 memory=0 start took used
  for _ in $(seq "$runs"); do
    start=${EPOCHREALTIME/./}
    /usr/bin/time -o "$dir/used" -f '%U %S %M' taskset -c 0 "$@" >/dev/null
    took=$((${EPOCHREALTIME/./} - start))
    read -r used memory < <(awk '{ printf "%d %d\n", ($1 + $2) * 1e6, $3 }' "$dir/used")
    if ((took < wall)); then wall=$took; fi
    if ((used < processor)); then processor=$used; fi
  done
  awk -v wall="$wall" -v processor="$processor" -v kb="$memory" '
    function time(us) { return us < 1e5 ? sprintf("%.0f ms", us / 1e3) : sprintf("%.2f s", us / 1e6) }
    BEGIN { printf "%s (%s), %.0f MB", time(wall), processor < 1e4 ? "< 10 ms" : time(processor), kb / 1000 }'
}

# 1047552 as 1,047,552.
grouped() {
  sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta' <<<"$1"
}

row() {
  printf '| %s | %s | %s | %s | %s |\n' "$@"
}

speed="$release/examples/speed"
cat <<PAGE
# Performance

Printed by \`benches/speed.sh\`; \`cargo bench\` measures the parts. Each cell is a whole process on one
core: wall time (processor time), peak memory; the best of three. Where the wall time is much longer
than the processor time, the machine was busy with something else.

* Duet: $(git describe --always --dirty 2>/dev/null || echo "not in git"), $(rustc --version | cut -d' ' -f1,2).
* SimGrid: $(dpkg-query -W -f '${Version}' libsimgrid-dev 2>/dev/null || echo unknown), model CM02, pure fluid.
* Machine: $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1); load average $(cut -d' ' -f1 /proc/loadavg) before the start.
* Elsewhere: earlier measurements of other simulators on another machine with two cores. ASTRA-sim's
  network queues chunks at each link in place of sharing it.

Every message has 1 MiB, every link 50 GB/s and 500 ns; "±50 %" draws each size from 0.5 to 1.5 MiB.

PAGE
row case transfers Duet SimGrid elsewhere
row --- --: --: --: ---

row "ring all-gather, 1024 ranks, fat tree" "1,047,552" "$(measure "$speed" ring 1024)" "–" \
  "SimGrid 16.0 s, 49 MB; ASTRA-sim's network alone 0.31 s, whole 6.8 s, 363 MB"
row "ring all-gather, 256 ranks" "65,280" "$(measure "$speed" ring 256)" \
  "$(measure "$dir/collectives" ring 256 "${simgrid[@]}")" "ASTRA-sim's network alone 0.02 s"
for n in 64 128 256 1024; do
  peer="–" elsewhere=
  case $n in
    256) elsewhere="SimGrid 44 s, 137 MB; ASTRA-sim's network alone 0.07 s" ;;
    1024) elsewhere="SimGrid out of reach; ASTRA-sim's network alone 1.1 s, 250 MB, whole 30 s, 975 MB" ;;
  esac
  if ((n <= 128)); then peer=$(measure "$dir/collectives" star "$n" "${simgrid[@]}"); fi
  if ((n == 256)) && [ "$long" = --long ]; then
    peer=$(runs=1 measure "$dir/collectives" star "$n" "${simgrid[@]}")
  fi
  row "all-to-all, all at once, $n ranks, switch" "$(grouped $((n * (n - 1))))" \
    "$(measure "$speed" all-to-all "$n")" "$peer" "$elsewhere"
done
for n in 64 128 256; do
  peer="–"
  if ((n == 64)) || { ((n == 128)) && [ "$long" = --long ]; }; then
    "$speed" flows "$n" >"$dir/random.flows"
    peer=$(runs=1 measure "$dir/flows" "$dir/random.flows" "$dir/random.finish" "${simgrid[@]}")
  fi
  row "all-to-all, sizes ±50 %, $n ranks, switch" "$(grouped $((n * (n - 1))))" \
    "$(runs=$((n < 256 ? 3 : 1)) measure "$speed" random "$n")" "$peer" ""
done
row "\`duet compare\`, all strategies, 8 GPUs" "–" "$(measure "$release/duet" compare)" "–" ""

cat <<PAGE

An all-to-all of equal messages is one event; one of unequal messages has as many events as messages,
each of which moves about 40 % of all shares, so its cost grows with the square of the messages.
PAGE
