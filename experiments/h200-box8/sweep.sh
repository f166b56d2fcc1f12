#!/bin/bash
# Collectives from 32 KiB to 1 GiB: Duet's schedules in turns with NCCL, a table per size in FOLDER.
#   sweep.sh FOLDER [RANKS]        $DUET names the binary; a size that is there already is left out.
set -u
folder=${1:?usage: sweep.sh FOLDER [RANKS]}
ranks=${2:-8}
duet=${DUET:-duet}
mkdir -p "$folder"
for op in all-gather reduce-scatter all-reduce; do
  for kib in 32 128 512 2048 8192 32768 131072 524288 1048576; do
    rows=$folder/$op-$kib.csv
    [ -s "$rows" ] && continue
    timeout -k 5 60 "$duet" gpu run --op "$op" --bytes "$kib KiB" --tp "$ranks" --predict \
      --strategy library --strategy ring --strategy direct --rounds 20 --rows "$rows.part" &&
      mv "$rows.part" "$rows"
  done
done
