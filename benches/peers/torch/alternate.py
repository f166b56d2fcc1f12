#!/usr/bin/env python3
"""Duet's library calls beside PyTorch's, in turns on the same GPUs.

    python3 alternate.py --duet ./duet [--rounds 25] [--rows rows.csv]

Each round measures every case with Duet (`duet gpu serve`, one line per measurement) and with PyTorch,
so that both see the same clocks; while one measures, the other has nothing running. Short cases run
more often in a row, and twice a round, the second time in the other order, because a single stall of
a virtual machine is as long as they are.
Compared are cuBLASLt's GEMM with `torch.mm` (target: within 2 %) and NCCL's all-gather and
reduce-scatter with those of torch.distributed (within 5 %; two GPUs). A ratio is Duet's time over
PyTorch's of the same round; medians of ratios are printed. Exit code 5 when a target is missed.

Needs PyTorch with CUDA. Every wait has a limit.
"""

import argparse
import csv
import json
import os
import select
import statistics
import subprocess
import sys
import time

MIB = 1 << 20
GEMMS = [(8192, 8192, 8192), (4096, 8192, 8192), (2048, 8192, 8192), (1024, 4096, 4096)]
SIZES = [256 * MIB, 64 * MIB, 16 * MIB]
# How often a case runs in a row; short ones more often.
REPEATS, SHORT_REPEATS = 10, 40
LIMIT_S = 120


class Program:
    """A process that answers lines of JSON with lines of JSON."""

    def __init__(self, command, env=None):
        self.name = " ".join(command[:3])
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0
        )
        self.rest = b""

    def read(self):
        end = time.monotonic() + LIMIT_S
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            ready = left > 0 and select.select([self.process.stdout], [], [], left)[0]
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not data:
                raise SystemExit(f"error: {self.name} does not answer")
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def write(self, request):
        self.process.stdin.write((json.dumps(request) + "\n").encode())

    def ask(self, request):
        self.write(request)
        return self.read()

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def worker(rank, ranks):
    """One PyTorch process per GPU; answers requests from its parent."""
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    if ranks > 1:
        dist.init_process_group("nccl", rank=rank, world_size=ranks)
    made = {}

    def make(request):
        kind = request["kind"]
        if kind == "gemm":
            m, n, k = request["shape"]
            a = torch.randn(m, k, dtype=torch.bfloat16, device="cuda")
            b = torch.randn(k, n, dtype=torch.bfloat16, device="cuda")
            c = torch.empty(m, n, dtype=torch.bfloat16, device="cuda")
            return lambda: torch.mm(a, b, out=c)
        whole = torch.randn(request["bytes"] // 2, device="cuda").to(torch.bfloat16)
        part = torch.randn(request["bytes"] // 2 // ranks, device="cuda").to(torch.bfloat16)
        if kind == "all-gather":
            return lambda: dist.all_gather_into_tensor(whole, part)
        return lambda: dist.reduce_scatter_tensor(part, whole)

    print(json.dumps({"ready": True, "torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        repeats = request.pop("repeats")
        key = json.dumps(request, sort_keys=True)
        if key not in made:
            made[key] = make(request)
            for _ in range(3):
                made[key]()
            torch.cuda.synchronize()
        call = made[key]
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if ranks > 1 and request["kind"] != "gemm":
            # The GPUs start together, as Duet's do.
            dist.barrier()
            torch.cuda.synchronize()
        # Held back until everything is enqueued, as Duet's work is.
        torch.cuda._sleep(4_000_000 if repeats <= REPEATS else 12_000_000)
        begin.record()
        for _ in range(repeats):
            call()
        end.record()
        torch.cuda.synchronize()
        print(json.dumps({"ok": True, "s": begin.elapsed_time(end) / 1e3 / repeats}), flush=True)
    if ranks > 1:
        dist.destroy_process_group()


def cases(ranks):
    for m, n, k in GEMMS:
        duet = {"op": "ag-gemm", "m": m, "n": n, "k": k, "tp": 1, "strategy": "unsplit-gemm"}
        short = m * n * k < 1 << 36
        yield f"gemm {m}x{n}x{k}", 0.02, duet, {"kind": "gemm", "shape": [m, n, k]}, 1, short
    if ranks > 1:
        for kind in ["all-gather", "reduce-scatter"]:
            for size in SIZES:
                duet = {"op": kind, "bytes": size, "tp": ranks, "strategy": "library"}
                short = size < 64 * MIB
                yield f"{kind} {size // MIB} MiB", 0.05, duet, {"kind": kind, "bytes": size}, ranks, short


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duet", default="duet")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--ranks", type=int, help="GPUs [default: all, at most 2]")
    parser.add_argument("--rows", default="alternate.csv")
    parser.add_argument("--guesses", type=int, default=1, help="see `duet gpu serve --help`")
    args = parser.parse_args()
    import torch

    ranks = args.ranks or min(2, torch.cuda.device_count())
    duet = Program(
        [args.duet, "gpu", "serve", "--gpus", str(ranks), "--guesses", str(args.guesses)]
    )
    peers = []
    for rank in range(ranks):
        env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", NCCL_NVLS_ENABLE="0")
        command = [sys.executable, __file__, "--worker", str(rank), str(ranks)]
        peers.append(Program(command, env))
    programs = [duet, *peers]
    print(*(program.read() for program in programs))
    ratios = {}
    targets = {}
    with open(args.rows, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["round", "case", "duet_s", "torch_s", "ratio", "sm_clock_mhz", "power_w"])
        for turn in range(args.rounds + 1):
            for name, target, request, asked, members, short in cases(ranks):
                repeats = SHORT_REPEATS if short else REPEATS
                seen = {"duet": [], "torch": []}
                order = ["duet", "torch"] if turn % 2 else ["torch", "duet"]
                for side in order + order[::-1] if short else order:
                    if side == "duet":
                        answer = duet.ask(dict(request, repeats=repeats))
                        if not answer["ok"]:
                            raise SystemExit(f"error: {name}: {answer['error']}")
                        seen["duet"].append(answer["makespan_s"])
                        clock, power = answer["sm_clock_mhz"], answer["power_w"]
                    else:
                        for peer in peers[:members]:
                            peer.write(dict(asked, repeats=repeats))
                        times = [peer.read()["s"] for peer in peers[:members]]
                        # Who starts first waits for the other, which is no time of the library.
                        seen["torch"].append(min(times))
                if turn == 0:
                    continue
                ours, theirs = min(seen["duet"]), min(seen["torch"])
                ratios.setdefault(name, []).append(ours / theirs)
                targets[name] = target
                rows.writerow([turn, name, ours, theirs, ours / theirs, clock, power])
                file.flush()
    missed = False
    print(f"{'case':28} {'duet / torch':>12} {'p10':>7} {'p90':>7}  target")
    for name, values in ratios.items():
        values.sort()
        at = lambda q: values[round(q * (len(values) - 1))]
        ratio = statistics.median(values)
        ok = ratio <= 1 + targets[name]
        missed |= not ok
        verdict = "ok" if ok else "MISSED"
        print(f"{name:28} {ratio:12.3f} {at(0.1):7.3f} {at(0.9):7.3f}  {1 + targets[name]:.2f} {verdict}")
    for program in programs:
        program.end()
    return 5 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--worker":
        worker(int(sys.argv[2]), int(sys.argv[3]))
    else:
        sys.exit(main())
