#!/usr/bin/env python3
"""Removes from a schedule file every wait of a GEMM for a transfer.

    python3 remove_waits.py RIGHT.json WRONG.json [GPUS]

What is left computes with rows that may not have arrived. GPUS = 1 places all ranks on one GPU.
"""

import json
import sys

with open(sys.argv[1]) as file:
    schedule = json.load(file)
transfers = {i for i, task in enumerate(schedule["tasks"]) if "transfer" in task}
names = {schedule["tasks"][i].get("id") for i in transfers} - {None}
removed = 0
for task in schedule["tasks"]:
    if "gemm" not in task or "after" not in task:
        continue
    kept = []
    for wait in task["after"]:
        on = wait["task"] if isinstance(wait, dict) else wait
        if on in transfers or on in names:
            removed += 1
        else:
            kept.append(wait)
    task["after"] = kept
if len(sys.argv) > 3 and sys.argv[3] == "1":
    schedule["placement"] = [0] * len(schedule["placement"])
if not removed:
    sys.exit("no GEMM waits for a transfer")
with open(sys.argv[2], "w") as file:
    json.dump(schedule, file)
print(f"{removed} waits removed")
