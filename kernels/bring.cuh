// How blocks of gemm_sm90.cu that would begin with waiting bring rows of A from another GPU; amid that file.

// Whether this block brings rows before its first tile, with all warps that have nothing to do.
__device__ bool brings(const Gate &gate)
{
    return BRINGS && !ACCUMULATE && gate.fetched > 0 && blockIdx.x >= gate.loaders;
}

#if BRINGS
// The threads that multiply, before their first tile, which waits for it: the share of a block in the first of what
// its kernel brings.
__device__ void bring_first(const Gate &gate, u32 thread)
{
    const u32 me = blockIdx.x - gate.loaders, all = gridDim.x - gate.loaders;
    fetch_one<8>(gate.first, me * 8 + thread / 32, all * 8);
    // What comes later is asked for only now, as it would come on the same link between.
    named_arrive(7, 320);
    named_sync(6, 256);
    if (thread == 0)
        flag_shares(gate, gate.first, count_shares(gate.first, shares_of(me, all)));
}

// Warp `warp` of the two that store tiles, before the first is finished: the share of a block in every second of the
// others.
__device__ void bring_others(const Gate &gate, Fetch *table, u32 warp)
{
    const u32 me = blockIdx.x - gate.loaders, all = gridDim.x - gate.loaders, lane = threadIdx.x % 32;
    if (warp == 0 && lane < gate.fetched)
        table[lane] = fetch_at(gate, lane);
    named_sync(7, 320);
#pragma unroll 1
    for (u32 i = 1 + warp; i < gate.fetched; i += 2) {
        const Fetch &one = table[i];
        fetch_one<(cluster > 1 ? 8 : 4)>(one, me, all);
        __syncwarp();
        if (lane == 0)
            flag_shares(gate, one, count_shares(one, shares_of(me, all)));
    }
}

#else
__device__ void bring_first(const Gate &, u32) {}
__device__ void bring_others(const Gate &, Fetch *, u32) {}
#endif

// Whether a warp is free to look what the first tile of this block waits for.
__device__ bool watches(const Gate &gate) { return !ACCUMULATE && gate.bands && gate.loaders != ~0u; }

// One thread: looks what of A the first tile of this block waits for, and says in shared memory from where on of k it
// is not there yet. Whoever looks itself is behind by two accesses to memory at each slab.
__device__ void watch(const Gemm &gemm, const Layout &at)
{
    const Walk walk(gemm);
    if (walk.at >= walk.end)
        return;
    const Place place = Course(gemm.gate, bands_of(gemm), columns_of(gemm), gemm.group).place(walk.at);
    Waits waits(gemm.gate, band_at(gemm.gate, place.band));
    while (waits.due != ~0u) {
        waits.pass(gemm.gate, waits.due + 1, true);
        share(at.seen, waits.due);
    }
}
