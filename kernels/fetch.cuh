// How a kernel brings rows of A from another GPU by ordinary accesses, where BRINGS is not 0; after gemm.cuh.

#if BRINGS
// A warp's share of the columns of a rectangle from `x` on [bytes], of `warps`: 32 units side by side of every so
// many rows, AHEAD rows under way at a time, as another GPU's memory answers in microseconds. What is there is
// not to be found in this SM's cache.
template <typename Unit, u32 AHEAD> __device__ void fetch_units(const Fetch &one, u32 x, u32 warp, u32 warps)
{
#pragma unroll 1
    for (u32 part = 0;; part++) {
        const u32 units = (one.width - x) / sizeof(Unit), parts = (units + 31) / 32;
        const u32 side = min(parts, warps), step = warps / side, row = warp / side;
        const u32 unit = (warp % side + part * side) * 32 + threadIdx.x % 32;
        if (part * side >= parts || row >= step)
            return;
        if (unit >= units)
            continue;
        const char *from = one.from + (u64)row * one.from_pitch + x + unit * sizeof(Unit);
        char *to = one.to + (u64)row * one.to_pitch + x + unit * sizeof(Unit);
        const u32 from_step = step * one.from_pitch, to_step = step * one.to_pitch;
#pragma unroll 1
        for (int left = (one.rows - row + step - 1) / step; left > 0; left -= AHEAD) {
            Unit value[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                if (i < left)
                    value[i] = __ldcs((const Unit *)from);
                go_on(from, from_step);
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                if (i < left)
                    *(Unit *)to = value[i];
                go_on(to, to_step);
            }
        }
    }
}

// A warp's share of a rectangle, of `warps`.
template <u32 AHEAD> __device__ void fetch_one(const Fetch &one, u32 warp, u32 warps)
{
    u32 done = 0;
    if (one.unit == sizeof(uint4) && one.width >= sizeof(uint4)) {
        done = one.width / sizeof(uint4) * sizeof(uint4);
        fetch_units<uint4, AHEAD>(one, 0, warp, warps);
    }
    if (done < one.width)
        fetch_units<u16, 1>(one, done, warp, warps);
}

// Brings what translates addresses near, without waiting.
__device__ void approach(const void *at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// What is to be brought, at one go: each access to the table takes a microsecond.
__device__ Fetch fetch_at(const Gate &gate, u32 i)
{
    Fetch one;
    const ulonglong2 *from = (const ulonglong2 *)(gate.fetches + i);
#pragma unroll
    for (u32 word = 0; word < sizeof(Fetch) / 16; word++)
        ((ulonglong2 *)&one)[word] = __ldcg(from + word);
    return one;
}

// The shares of piece `i` of `count`.
__device__ u32 shares_of(u32 i, u32 count) { return ALL_SHARES / count + (i < ALL_SHARES % count); }

// Counts shares that are stored, which everybody sees who sees the count: for this GPU, which alone has stored them and
// waits for them. What the count is then, for `flag_shares`.
__device__ u32 count_shares(const Fetch &one, u32 shares)
{
    u32 before;
    asm volatile("atom.release.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(one.done), "r"(shares) : "memory");
    return before + shares;
}

// Sets the flag if the count is that of the last.
__device__ void flag_shares(const Gate &gate, const Fetch &one, u32 count)
{
    const u32 epoch = wanted(gate.epoch, gate.base);
    if (count == epoch * ALL_SHARES)
        *(volatile u32 *)one.flag = epoch;
}

// The share of a block in what its kernel brings, in order; for `threads` threads of it, which `meet` to
// agree that all have stored theirs. No share waits for anything. For kernels that do not ACCUMULATE.
template <typename Meet> __device__ void fetch(const Gate &gate, u32 thread, u32 threads, Meet meet)
{
    if (gate.fetched == 0)
        return;
    if (thread == 0) {
        approach(gate.first.done);
        approach(gate.first.flag);
    }
    const u32 warp = (blockIdx.x * threads + thread) / 32, warps = gridDim.x * threads / 32;
    const Fetch *next = &gate.first;
#pragma unroll 1
    for (u32 i = 0;;) {
        const Fetch &one = *next;
        fetch_one<8>(one, warp, warps);
        meet();
        if (thread == 0)
            flag_shares(gate, one, count_shares(one, shares_of(blockIdx.x, gridDim.x)));
        if (++i >= gate.fetched)
            break;
        next = gate.fetches + i;
    }
}
#else
template <typename Meet> __device__ void fetch(const Gate &, u32, u32, Meet) {}
#endif
