#!/usr/bin/env python3
"""Products that wait inside a kernel, with transfers through the host's memory, beside what bounds them.

    python3 host.py --duet ./duet [--rounds 8] [--rows rows.csv] [--only ag-gemm] [--topology FILE]

Each round measures, in turns on the same GPUs (`duet gpu serve`, one line per measurement), the settings
with Duet's own products that the simulator puts first (`duet tune --dry-run`) for host chunks of 1, 2 and
4 MiB; the unsplit product by cuBLASLt and by Duet; and the same bytes through the host without a product, with
the same chunks (an all-gather by direct copies: each GPU sends half of the message and receives the other
half). `ratio` is the least median of the settings over max(least median of the products, least median of the
copies); aimed at are at most 1.25 for each shape and 1.10 as their geometric mean. `first` is the same of the
setting that the simulator puts first. Needs two GPUs. Every wait has a limit.
"""

import argparse
import csv
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "peers" / "torch"))
from alternate import Program  # noqa: E402

MIB = 1 << 20
CHUNKS = [1, 2, 4]
# Rows and columns of C and the depth, over both ranks.
SHAPES = [
    ("ag-gemm", 8192, 16384, 8192),
    ("gemm-rs", 8192, 8192, 16384),
    ("ag-gemm", 1024, 16384, 8192),
    ("gemm-rs", 1024, 8192, 16384),
    ("ag-gemm", 8192, 8192, 4096),
    ("gemm-rs", 8192, 4096, 8192),
    ("ag-gemm", 16384, 7168, 8192),
    ("gemm-rs", 16384, 8192, 7168),
    ("ag-gemm", 2048, 16384, 8192),
    ("gemm-rs", 2048, 8192, 16384),
    ("ag-gemm", 8192, 12288, 12288),
    ("gemm-rs", 8192, 12288, 12288),
]


def settings(args, shape, chunk):
    """The simulator's first settings with Duet's own products in one kernel: seconds, strategy and tile."""
    op, m, n, k = shape
    group = f"{op}/{m}x{n}x{k}/bf16/2on2/host:{chunk}MiB/stream"
    command = [args.duet, "tune", "--dry-run", "--format", "json", "--best", "40", "--shape", group]
    answer = subprocess.run(
        command + ["-t", args.topology], capture_output=True, check=True, text=True, timeout=120
    )
    found = []
    for tried in json.loads(answer.stdout)["groups"][0]["tried"]:
        strategy, whose, *tile = tried["setting"].split(", ")
        # Who issues copies changes little.
        if whose == "duet" and strategy.startswith("fusion") and "issue=pull" not in strategy:
            found.append((tried["predicted_s"], strategy, tile[0]))
    return found


def requests(args, op, m, n, k):
    """By name: what is asked of Duet, and what it is. The first of `fused` is the simulator's choice."""
    shape = {"op": op, "m": m, "n": n, "k": k}
    message = 2 * m * (k if op == "ag-gemm" else n)
    cases = {
        "unsplit cuBLASLt": ("product", {**shape, "strategy": "unsplit-gemm"}),
        "unsplit Duet": ("product", {**shape, "strategy": "unsplit-gemm", "gemm": "duet"}),
    }
    for chunk in CHUNKS:
        copy = {"op": "all-gather", "bytes": message, "strategy": "direct", "host_chunk": chunk * MIB}
        cases[f"copies {chunk} MiB"] = ("copies", copy)
    fused = []
    for chunk in CHUNKS:
        fused += [(*found, chunk) for found in settings(args, (op, m, n, k), chunk)[: args.settings]]
    for _, strategy, tile, chunk in sorted(fused):
        request = {**shape, "strategy": strategy, "gemm": "duet", "tile": tile, "host_chunk": chunk * MIB}
        cases[f"{strategy} {tile} {chunk} MiB"] = ("fused", request)
    return cases


class Duet(Program):
    """`duet gpu serve`; what is refused is a RuntimeError."""

    def __init__(self, path):
        super().__init__([path, "gpu", "serve", "--warm", "0.4ms"])
        self.read()

    def microseconds(self, request):
        answer = self.ask(request)
        if not answer["ok"]:
            raise RuntimeError(answer["error"])
        return answer["makespan_s"] * 1e6


def measure(duet, cases, rounds):
    """Microseconds of each round, by name; names without an answer are left out."""
    times = {name: [] for name in cases}
    for turn in range(rounds + 1):
        names = [name for name in cases if name in times]
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            try:
                time_us = duet.microseconds(cases[name][1])
            except RuntimeError as error:
                print(f"  {name}: {error}", flush=True)
                del times[name]
                continue
            # The first round makes everything.
            if turn > 0:
                times[name].append(time_us)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--duet", required=True)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--rows")
    parser.add_argument("--only", default="")
    parser.add_argument("--topology", default="topologies/h200-pair-calibrated.yaml")
    parser.add_argument("--settings", type=int, default=3, help="so many of each host chunk")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no shape after so many")
    parser.add_argument("--dry-run", action="store_true", help="print what would be asked")
    args = parser.parse_args()
    begin, rows, ratios, firsts = time.monotonic(), [], [], []
    for op, m, n, k in SHAPES:
        name = f"{op} {m}x{n}x{k}"
        if args.only not in name or time.monotonic() - begin > args.seconds:
            continue
        cases = requests(args, op, m, n, k)
        if args.dry_run:
            for case, (_, request) in cases.items():
                print(json.dumps(request))
            continue
        duet = Duet(args.duet)
        try:
            times = measure(duet, cases, args.rounds)
        except (SystemExit, BrokenPipeError) as error:
            print(f"{name}: {error}", flush=True)
            duet.process.kill()
            continue
        duet.end()
        best = {}
        for case, samples in times.items():
            kind, median = cases[case][0], statistics.median(samples)
            best[kind] = min(best.get(kind, (math.inf, "")), (median, case))
            joined = ";".join(f"{sample:.2f}" for sample in samples)
            rows.append([op, m, n, k, kind, case, f"{median:.2f}", joined])
        if len(best) == 3:
            bound = max(best["product"][0], best["copies"][0])
            ratio = best["fused"][0] / bound
            first = next(case for case in times if cases[case][0] == "fused")
            first = statistics.median(times[first]) / bound
            ratios.append(ratio)
            firsts.append(first)
            parts = ", ".join(f"{kind} {time:.0f} us ({case})" for kind, (time, case) in best.items())
            print(f"{name}: ratio {ratio:.3f}, first {first:.3f}; {parts}", flush=True)
        if args.rows:
            with open(args.rows, "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["op", "m", "n", "k", "kind", "case", "median_us", "samples_us"])
                writer.writerows(rows)
    if ratios:
        for what, values in (("best", ratios), ("first", firsts)):
            mean = math.exp(sum(map(math.log, values)) / len(values))
            print(f"{len(values)} shapes, {what}: geometric mean {mean:.3f}, largest {max(values):.3f}")


if __name__ == "__main__":
    main()
