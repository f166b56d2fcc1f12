// How blocks of gemm_sm90.cu that would begin with waiting bring rows of A from another GPU; amid that file.

// Whether this block brings rows by its copy engine.
__device__ bool brings(const Gate &gate)
{
    return !ACCUMULATE && gate.fetched > 0 && blockIdx.x >= gate.loaders;
}

// A box of a rectangle, in a buffer.
struct Box {
    u32 x, y, bytes, rows;

    __device__ Box(const Fetch &one, u32 i)
    {
        const u32 row = one.across == 1 ? i : i / one.across;
        x = (i - row * one.across) * one.each;
        y = row * one.down;
        bytes = min(one.each, one.width - x);
        rows = min(one.down, one.rows - y);
    }
    __device__ void load(const Fetch &one, const Layout &at, u32 buffer) const
    {
        const u32 barrier = at.landed + buffer * 8, pitch = one.from_pitch;
        u32 to = at.pieces + buffer * piece_bytes;
        const char *from = one.from + (u64)y * pitch + x;
        barrier_expect(barrier, rows * bytes);
#pragma unroll 1
        for (u32 row = 0; row < rows; row++, from += pitch, to += bytes)
            bytes_load(to, from, bytes, barrier);
    }
    __device__ void store(const Fetch &one, const Layout &at, u32 buffer) const
    {
        const u32 pitch = one.to_pitch;
        u32 from = at.pieces + buffer * piece_bytes;
        char *to = one.to + (u64)y * pitch + x;
#pragma unroll 1
        for (u32 row = 0; row < rows; row++, from += bytes, to += pitch)
            bytes_store(to, from, bytes);
        stores_commit();
    }
};

// The threads that multiply, before their first tile, which waits for it: the share of a block in the first of what
// its kernel brings. A way through registers is shorter than that of the copy engine, and all of them have room.
__device__ void bring_first(const Gate &gate, u32 thread)
{
    const Fetch &one = gate.first;
    const u32 me = blockIdx.x - gate.loaders, all = gridDim.x - gate.loaders;
    u32 shares = 0;
#pragma unroll 1
    for (u32 j = me; j < one.count; j += all, shares++) {
        const Box box(one, j);
        const u32 units = box.bytes / 16, each = units * box.rows;
        const char *from = one.from + (u64)box.y * one.from_pitch + box.x;
        char *to = one.to + (u64)box.y * one.to_pitch + box.x;
        // At most two of 16 bytes for each thread.
        uint4 value[2];
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            const u32 at = thread + i * 256, row = at / units;
            if (at < each)
                value[i] = __ldcs((const uint4 *)(from + (u64)row * one.from_pitch) + at % units);
        }
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            const u32 at = thread + i * 256, row = at / units;
            if (at < each)
                ((uint4 *)(to + (u64)row * one.to_pitch))[at % units] = value[i];
        }
    }
    named_sync(6, 256);
    if (thread == 0 && shares > 0)
        count_shares(gate, one, shares, one.count);
}

// One warp: the share of a block in all but the first of what its kernel brings, in order, as much at a time as there
// are buffers.
__device__ void bring(const Gemm &gemm, const Layout &at, Fetch *table)
{
    const Gate &gate = gemm.gate;
    const u32 lane = threadIdx.x % 32, me = blockIdx.x - gate.loaders, all = gridDim.x - gate.loaders;
    const bool leader = lane == 0;
    auto first_of = [&](u32 i) {
        const u32 begin = table[i].begin % all;
        return me >= begin ? me - begin : me + all - begin;
    };
    u32 loaded = 0, stored = 0, ahead = 1, next = 0;
    // Loads as far as there are buffers.
    auto fill = [&] {
#pragma unroll 1
        while (ahead < gate.fetched) {
            const Fetch &one = table[ahead];
            if (next >= one.count) {
                if (++ahead < gate.fetched)
                    next = first_of(ahead);
                continue;
            }
            if (loaded >= stored + buffers)
                return;
            if (leader) {
                if (loaded >= buffers)
                    stores_read();
                Box(one, next).load(one, at, loaded % buffers);
            }
            next += all;
            loaded++;
        }
    };
    if (lane < gate.fetched)
        table[lane] = fetch_at(gate, lane);
    __syncwarp();
    if (gate.fetched > 1)
        next = first_of(1);
    fill();
#pragma unroll 1
    for (u32 i = 1; i < gate.fetched; i++) {
        const Fetch &one = table[i];
        u32 shares = 0;
#pragma unroll 1
        for (u32 j = first_of(i); j < one.count; j += all, shares++) {
            const u32 buffer = stored % buffers;
            barrier_wait(at.landed + buffer * 8, stored / buffers % 2);
            if (leader) {
                proxy_fence_shared();
                Box(one, j).store(one, at, buffer);
            }
            stored++;
            fill();
        }
        if (leader && shares > 0) {
            stores_done();
            proxy_fence();
            count_shares(gate, one, shares, one.count);
        }
    }
    if (leader)
        barrier_arrive(at.brought);
}
