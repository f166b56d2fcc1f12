#!/bin/bash
# One session on a machine with GPUs: is everything there, is it right, how fast is it.
#
#   benches/gpu/session.sh DUET [FOLDER]        DUET: the binary; FOLDER: for results [$OUT or .]
#
# STEPS="info check one two faults time sanitize" chooses (all by default); CASES the cases of each
# campaign [250]; ALTERNATE the script beside PyTorch. Every step has a limit of its own and may
# fail; after one that had to be killed nothing else runs, because the GPUs may hang. Exit code: the number of
# steps that failed, 99 after a hang.
set -u
duet=$(realpath "${1:?the duet binary}")
out=${2:-${OUT:-.}}
steps=${STEPS:-info check one two faults time sanitize}
cases=${CASES:-250}
here=$(dirname "$(realpath "$0")")
alternate=${ALTERNATE:-$here/../peers/torch/alternate.py}
mkdir -p "$out"
log=$out/session.log
: >"$log"
failed=0

say() { echo "$*" | tee -a "$log"; }

# step LIMIT CODES NAME COMMAND…: CODES are the exit codes that are right, joined by commas.
step() {
    local limit=$1 codes=$2 name=$3 begin=$SECONDS code
    shift 3
    say "--- $name: $*"
    timeout -k 5 "$limit" "$@" >"$out/last" 2>&1
    code=$?
    tail -n "${LINES_SHOWN:-40}" "$out/last" | tee -a "$log"
    say "=== $name: exit $code after $((SECONDS - begin)) s"
    if [ $code = 124 ] || [ $code = 137 ]; then
        say "killed after $limit s; the GPUs may hang, so nothing else runs"
        exit 99
    fi
    case ",$codes," in
    *,$code,*) ;;
    *)
        say "FAILED: $name"
        failed=$((failed + 1))
        ;;
    esac
}

wants() { [[ " $steps " == *" $1 "* ]]; }
gpus=$(nvidia-smi -L 2>/dev/null | grep -c ^GPU)
say "$gpus GPUs, $(date -u +%FT%TZ)"

wants info && step 60 0 info "$duet" gpu info
wants check && step 180 0 check "$duet" gpu check

if wants one; then
    step 60 0 "one case on one GPU" "$duet" gpu run --op ag-gemm -m 512 -n 512 -k 256 --ranks 2 \
        --gpus 1 --strategy sequential --rounds 3
    step 200 0 "campaign on one GPU" "$duet" gpu test --gpus 1 --ranks 2,4,8 --cases "$cases" --seed 1
fi
if wants two && [ "$gpus" -ge 2 ]; then
    step 60 0 "one case on two GPUs" "$duet" gpu run --op ag-gemm -m 512 -n 512 -k 256 --ranks 2 \
        --strategy fusion-alltoall --rounds 3
    step 200 0 "campaign on two GPUs" "$duet" gpu test --gpus 2 --ranks 2,4,8 --cases "$cases" --seed 2
fi

if wants faults; then
    small="--op ag-gemm -m 512 -n 512 -k 256 --ranks 2 --rounds 0 --limit 1"
    # One GPU has no flags between GPUs, but flags between its virtual ranks.
    step 40 4 "a flag that is never written" "$duet" gpu run $small --strategy fusion-alltoall \
        --inject drop-flag:0
    step 40 4 "a rank beyond the limit" "$duet" gpu run $small --strategy fusion-alltoall \
        --inject delay:1:3
    step 40 4 "memory that does not suffice" "$duet" gpu run $small --strategy fusion-alltoall \
        --inject memory:1MiB
    # Queues that fill up, without and with a flag that never comes.
    full="--op ag-gemm -m 16384 -n 512 -k 256 --ranks 8 --strategy interdecom:d=64,comm=direct"
    [ "$gpus" -ge 2 ] && full="$full --path host --chunk 4KiB"
    step 120 0 "full queues" "$duet" gpu run $full --rounds 2 --replays 1
    step 60 4 "full queues that stand still" "$duet" gpu run $full --rounds 0 --limit 2 --inject drop-flag:0
    step 40 4 "hidden GPUs" env CUDA_VISIBLE_DEVICES= "$duet" gpu run $small --strategy sequential
    # A dependency removed by hand: the verifier notices, and without it the results do.
    "$duet" simulate -t h200-pair --op ag-gemm -m 8192 -n 512 -k 4096 --tp 2 \
        --strategy fusion-alltoall --save-schedule "$out/right.json" --out "$out/right.txt"
    if python3 "$here/remove_waits.py" "$out/right.json" "$out/wrong.json" "$gpus"; then
        step 60 3 "a wrong schedule, verified" "$duet" gpu run --schedule "$out/wrong.json" --rounds 0
        step 60 5 "a wrong schedule, not verified" "$duet" gpu run --schedule "$out/wrong.json" \
            --rounds 0 --no-verify --replays 10
    fi
fi

if wants time; then
    shape="-m 8192 -n 16384 -k 8192 --ranks 2"
    list="--strategy sequential --strategy interdecom:d=2 --strategy interdecom:d=4 --strategy fusion-alltoall --strategy fusion-ring"
    for launch in stream graph; do
        step 120 0 "AG+GEMM, $launch" "$duet" gpu run --op ag-gemm $shape $list --launch $launch \
            --rows "$out/ag-gemm-$launch.csv"
    done
    step 120 0 "AG+GEMM through the host" "$duet" gpu run --op ag-gemm $shape $list --path host \
        --chunk 2MiB --rows "$out/ag-gemm-host.csv"
    step 120 0 "GEMM+RS, NCCL with registered buffers, ten in a row" "$duet" gpu run --op gemm-rs -m 8192 \
        -n 8192 -k 16384 --ranks 2 --strategy sequential --library nccl-registered --repeats 10 \
        --rows "$out/gemm-rs-registered.csv"
    step 120 0 "AG+GEMM, graph with the ends of ranks" "$duet" gpu run --op ag-gemm $shape $list --launch graph \
        --graph-ends --rows "$out/ag-gemm-graph-ends.csv"
    # Written by the first, taken by the second.
    rm -f "$out/pins.json"
    for turn in written taken; do
        step 120 0 "pins $turn, and predictions" "$duet" gpu run --op ag-gemm $shape --strategy sequential \
            --strategy interdecom:d=2,comm=direct --strategy fusion-alltoall --guesses 4 \
            --pins "$out/pins.json" -t h200-pair --predict --trace "$out/trace.json" \
            --rows "$out/predicted-$turn.csv"
    done
    step 120 0 "a hundred in a row" "$duet" gpu run --op ag-gemm -m 1024 -n 1024 -k 512 --ranks 2 \
        --strategy interdecom:d=16,comm=direct --repeats 100 --rounds 5
    step 120 0 "GEMM+RS, ten in a row" "$duet" gpu run --op gemm-rs -m 8192 -n 8192 -k 16384 --ranks 2 \
        --strategy sequential --strategy interdecom:d=2 --repeats 10 --rows "$out/gemm-rs.csv"
    if python3 -c 'import torch' 2>/dev/null; then
        step 180 0 "beside PyTorch" python3 "$alternate" --duet "$duet" --rounds 25 \
            --rows "$out/alternate.csv"
    fi
fi

if wants sanitize && command -v compute-sanitizer >/dev/null; then
    export DUET_LIMIT_SCALE=100
    for gpu in 1 2; do
        [ $gpu -gt "$gpus" ] && continue
        step 240 0 "memcheck on $gpu GPUs" compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9 \
            "$duet" gpu test --gpus $gpu --ranks 2,4 --cases 12 --replays 1 --seed 3
    done
fi

rm -f "$out/last"
say "$failed steps failed"
exit $failed
