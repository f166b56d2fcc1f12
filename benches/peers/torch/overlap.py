#!/usr/bin/env python3
"""The schedule that Duet chooses beside what PyTorch offers, in turns on the same GPUs.

    python3 overlap.py --duet ./duet [--topology h200-pair-calibrated] [--rounds 15] [--rows rows.csv] [--gemm duet]

Each round measures every case three times, in an order that turns: Duet's choice for the shape
(`duet compare` names it before anything is measured, `duet gpu serve` performs it; with `--gemm duet`
the first of `duet tune --dry-run`, which may be one of Duet's own kernels), NCCL and then
cuBLAS (`all_gather_into_tensor` and `torch.mm`, or the other way round), and PyTorch's
`fused_all_gather_matmul` and `fused_matmul_reduce_scatter` of symmetric memory. All follow the same
heating, a product of 4096 x 4096 x 4096 for about 3 ms; while one measures, the others have nothing
running. NVLink multicast is off for all of them.
Results of the fused calls are compared with NCCL's and cuBLAS's first. Printed are medians of ratios
over rounds and their geometric means by operator: above 1, Duet is faster.

Needs PyTorch with CUDA and two GPUs, or as many as the environment variable WORLD_SIZE says. Every wait
has a limit.
"""

import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import sys

from alternate import Program

# Ranks, one GPU each.
RANKS = int(os.environ.get("WORLD_SIZE", "2"))
# Columns (n, k) of a layer, global: the first and second feed-forward GEMM and the attention's.
GATHER = [(16384, 4096), (6144, 4096), (57344, 8192), (13824, 5120)]
SCATTER = [(4096, 16384), (4096, 4096), (8192, 28672), (5120, 13824)]
ROWS = [1024, 2048, 4096, 8192, 16384]
# Operations of a case at most, so that the whole takes two minutes.
MOST = 5e12
REPEATS = 5
HEATING_MS = 3
OTHERS = ["nccl", "fused"]
# What is behind a strategy whose products are Duet's own.
OWN = " by duet"


def cases(rows):
    for m in rows:
        for op, columns in [("ag-gemm", GATHER), ("gemm-rs", SCATTER)]:
            for n, k in columns:
                if 2.0 * m * n * k / RANKS <= MOST:
                    yield op, m, n, k


def worker(rank):
    """One process per GPU; answers requests from its parent."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=RANKS)
    group = dist.group.WORLD.group_name
    # Newer versions enable every group by themselves.
    getattr(symmetric, "enable_symm_mem_for_group", lambda _: None)(group)
    torch.manual_seed(rank)
    bf16 = torch.bfloat16

    def draw(rows, cols):
        return torch.randn(rows, cols, device="cuda").to(bf16)

    hot = [draw(4096, 4096) for _ in range(3)]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def timed(work, repeats):
        begin.record()
        for _ in range(repeats):
            work()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / repeats

    def product():
        torch.mm(hot[0], hot[1], out=hot[2])

    timed(product, 2)
    products = math.ceil(HEATING_MS / timed(product, 4))
    made = {}

    def make(op, m, n, k):
        if op == "ag-gemm":
            shard, b = draw(m // RANKS, k), draw(k, n // RANKS)
            whole = torch.empty(m, k, dtype=bf16, device="cuda")
            out = torch.empty(m, n // RANKS, dtype=bf16, device="cuda")

            def nccl():
                dist.all_gather_into_tensor(whole, shard)
                return torch.mm(whole, b, out=out)

            def fused():
                call = torch.ops.symm_mem.fused_all_gather_matmul
                return call(shard, [b], gather_dim=0, group_name=group)[1][0]

        else:
            a, b = draw(m, k // RANKS), draw(k // RANKS, n)
            parts = torch.empty(m, n, dtype=bf16, device="cuda")
            out = torch.empty(m // RANKS, n, dtype=bf16, device="cuda")

            def nccl():
                torch.mm(a, b, out=parts)
                dist.reduce_scatter_tensor(out, parts)
                return out

            def fused():
                call = torch.ops.symm_mem.fused_matmul_reduce_scatter
                return call(a, b, "sum", scatter_dim=0, group_name=group)

        right = nccl().float()
        error = ((fused().float() - right).norm() / right.norm()).item()
        for call in [nccl, fused] * 2:
            call()
        torch.cuda.synchronize()
        return {"nccl": nccl, "fused": fused, "error": error}

    print(json.dumps({"ready": True, "torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        key = tuple(request["case"])
        if key not in made:
            made[key] = make(*key)
        call = made[key][request["side"]]
        # The GPUs start together, as Duet's do.
        dist.barrier()
        torch.cuda.synchronize()
        # Held back until everything is enqueued, as Duet's work is.
        torch.cuda._sleep(20_000_000)
        for _ in range(products):
            product()
        milliseconds = timed(call, request["repeats"])
        answer = {"ok": True, "s": milliseconds / 1e3, "error": made[key]["error"]}
        print(json.dumps(answer), flush=True)
    dist.destroy_process_group()


def choices(duet, topology, wanted, own):
    """The strategy that Duet names for each case, and who multiplies: what the simulator finds fastest."""
    chosen = {}
    for op, m, n, k in wanted:
        if own:
            shape = f"{op}/{m}x{n}x{k}/bf16/{RANKS}on{RANKS}/p2p/stream"
            command = [duet, "tune", "-t", topology, "--shape", shape, "--dry-run", "--best", "1", "--format", "json"]
            said = subprocess.run(command, capture_output=True, text=True, timeout=120)
            if said.returncode:
                raise SystemExit(said.stderr)
            setting = json.loads(said.stdout)["groups"][0]["tried"][0]["setting"]
            # Strategy, who multiplies, tile.
            strategy, who = setting.split(", ")[:2]
            chosen[op, m, n, k] = strategy + (OWN if who == "duet" else "")
            continue
        command = [duet, "compare", "-t", topology, "--op", op, "--tp", str(RANKS), "--format", "json"]
        command += ["-m", str(m), "-n", str(n), "-k", str(k)]
        said = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if said.returncode:
            raise SystemExit(said.stderr)
        chosen[op, m, n, k] = json.loads(said.stdout)["fastest"]
    return chosen


def measure(side, case, strategy, duet, peers):
    """Seconds of one call and the error of a fused one."""
    op, m, n, k = case
    if side == "duet":
        gemm = "duet" if strategy.endswith(OWN) else "library"
        strategy = strategy.removesuffix(OWN)
        request = {"op": op, "m": m, "n": n, "k": k, "tp": RANKS, "strategy": strategy, "gemm": gemm}
        answer = duet.ask(dict(request, repeats=REPEATS))
        if not answer["ok"]:
            raise SystemExit(f"error: {case}: {answer['error']}")
        return answer["makespan_s"], 0.0
    for peer in peers:
        peer.write({"case": case, "side": side, "repeats": REPEATS})
    answers = [peer.read() for peer in peers]
    # Who starts first waits for the other, which is no time of the library.
    return min(a["s"] for a in answers), max(a["error"] for a in answers)


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def report(ratios, chosen):
    print(f"{'case':32} {'duet':28} {'nccl / duet':>12} {'fused / duet':>13}")
    medians = {}
    for case, of in ratios.items():
        both = [statistics.median(of[side]) for side in OTHERS]
        medians[case] = both
        op, m, n, k = case
        print(f"{f'{op} {m}x{n}x{k}':32} {chosen[case]:28} {both[0]:12.3f} {both[1]:13.3f}")
    for op in ["ag-gemm", "gemm-rs"]:
        rows = [both for case, both in medians.items() if case[0] == op]
        if not rows:
            continue
        means = [geomean([row[i] for row in rows]) for i in range(2)]
        wins = sum(min(row) > 1 for row in rows)
        print(f"{op}: geometric mean nccl / duet {means[0]:.3f}, fused / duet {means[1]:.3f}; "
              f"Duet faster than both in {wins} of {len(rows)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duet", default="duet")
    parser.add_argument("--topology", default="h200-pair-calibrated")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--m", type=int, nargs="*", default=ROWS, help="rows of the cases")
    parser.add_argument("--rows", default="overlap.csv")
    parser.add_argument("--gemm", choices=["library", "duet"], default="library", help="who multiplies, if Duet chooses so")
    args = parser.parse_args()
    wanted = list(cases(args.m))
    chosen = choices(args.duet, args.topology, wanted, args.gemm == "duet")
    quiet = dict(os.environ, NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1")
    serve = [args.duet, "gpu", "serve", "--gpus", str(RANKS), "--warm", f"{HEATING_MS}ms"]
    duet = Program(serve, quiet)
    peers = []
    for rank in range(RANKS):
        env = dict(quiet, MASTER_ADDR="127.0.0.1", MASTER_PORT="29519")
        peers.append(Program([sys.executable, __file__, "--worker", str(rank)], env))
    programs = [duet, *peers]
    print(*(program.read() for program in programs))
    sides = ["duet", *OTHERS]
    ratios = {case: {side: [] for side in OTHERS} for case in wanted}
    with open(args.rows, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["round", "op", "m", "n", "k", "duet_strategy", "duet_s", "nccl_s", "fused_s", "fused_error"])
        for turn in range(args.rounds + 1):
            for case in wanted:
                seen = {}
                for i in range(3):
                    side = sides[(turn + i) % 3]
                    seen[side] = measure(side, case, chosen[case], duet, peers)
                error = seen["fused"][1]
                # bf16 rounds to 2^-8, here at most a few times.
                if not error < 2e-2:
                    raise SystemExit(f"error: {case}: the fused call's result is off by {error}")
                # The first round warms up.
                if turn == 0:
                    continue
                times = [seen[side][0] for side in sides]
                for side, time in zip(OTHERS, times[1:]):
                    ratios[case][side].append(time / times[0])
                rows.writerow([turn, *case, chosen[case], *times, error])
                file.flush()
    report(ratios, chosen)
    for program in programs:
        program.end()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--worker":
        worker(int(sys.argv[2]))
    else:
        main()
