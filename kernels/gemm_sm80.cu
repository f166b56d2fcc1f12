// C = A B or C += A B on tensor cores from Ampere on: 16-bit elements, fp32 sums in the order of k.
//
// A is m x k and B is k x n, row-major, or transposed (ACROSS_A, ACROSS_B: rows lie across k; B as k x n
// does, A as m x k does not). A block computes a tile of TILE_M x TILE_N, each of its warps 64 x 64 of
// it; tiles of A and B arrive in shared memory STAGES - 1 ahead. Blocks stay and take tile after tile.
//
// Everything that other GPUs may have written is read through the second-level cache (`.cg`), where it
// arrives.
//
// Given when compiled: ELEMENT ("bf16", "f16"), CONVERT (its pair conversion), TILE_M, TILE_N, STAGES,
// BLOCKS (of an SM), ACROSS_A, ACROSS_B, ACCUMULATE, what gemm.cuh says; TRACE where the moments of tiles are to be noted.

#include "gemm.cuh"
#include "fetch.cuh"

const u32 tile_m = TILE_M, tile_n = TILE_N, tile_k = 64;
const u32 warps_m = tile_m / 64, warps_n = tile_n / 64, threads = warps_m * warps_n * 32;
const u32 a_bytes = tile_m * tile_k * 2, b_bytes = tile_n * tile_k * 2, stage_bytes = a_bytes + b_bytes;

struct Gemm {
    const u16 *a, *b;
    u16 *c;
    u64 lda, ldb, ldc;
    Gate gate;
#if PARTED
    const Part *parts; // null: c
#else
    static constexpr const Part *parts = nullptr;
#endif
    u32 m, n, k, group;
    u64 *trace; // see `note`
};

__device__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// Panels of 64 columns, 128 bytes a row, whose 16-byte units are swapped so that 8 rows of one unit lie in
// different banks.
__device__ u32 unit_at(u32 rows, u32 row, u32 unit)
{
    return unit / 8 * rows * 128 + row * 128 + ((unit % 8 ^ row % 8) * 16);
}

// `bytes` of 16, zeros behind; none are read where they are 0.
__device__ void copy_unit(u32 to, const void *from, u32 bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending> __device__ void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

template <int across> __device__ void fragments(u32 row, u32 (&value)[4])
{
    if (across)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                     : "r"(row)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                     : "r"(row)
                     : "memory");
}

__device__ void product(float *d, const u32 *a, const u32 *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." ELEMENT "." ELEMENT ".f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ u32 pair(float low, float high)
{
    u32 bits;
    asm(CONVERT " %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}

__device__ void add_pair(u32 bits, float &low, float &high)
{
    float l, h;
    asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %2;\ncvt.f32." ELEMENT " %0, l;\ncvt.f32." ELEMENT " %1, h;\n}"
        : "=f"(l), "=f"(h)
        : "r"(bits));
    low += l;
    high += h;
}

// The 16-byte units that one thread copies of every tile of `rows` x `units` along k: the same unit of
// every `step`-th row.
template <u32 rows, u32 units, bool across> struct Copier {
    static const u32 step = threads / units, count = rows / step;
    // Whether `from` goes on with each unit, in order: the addresses of more than 8, worked out beforehand, do
    // not fit the registers.
    static const bool walks = count > 8;
    const char *from;
    u32 pitch; // bytes of `step` rows
    u64 tile; // bytes to the next tile from where its copies leave `from`
    u32 y, x, ys, xs;

    // The matrix has `ys_` x `xs_` elements; the first tile begins at (`y0`, `x0`).
    __device__ void begin(const u16 *matrix, u64 ld, u32 y0, u32 x0, u32 ys_, u32 xs_)
    {
        y = y0 + threadIdx.x / units;
        x = x0 + threadIdx.x % units * 8;
        ys = ys_;
        xs = xs_;
        from = (const char *)(matrix + y * ld + x);
        pitch = step * ld * 2;
        tile = (across ? tile_k * ld * 2 : tile_k * 2) - (walks ? (u64)count * pitch : 0);
    }
    // Whether all of the next tile lies inside.
    __device__ bool whole() const
    {
        const u32 row = y - threadIdx.x / units, column = x - threadIdx.x % units * 8;
        return row + rows <= ys && column + units * 8 <= xs;
    }
    // Begins the copies of a part of the next tile, of which all follow in order.
    template <bool inside> __device__ void copy(u32 to, u32 part, u32 parts)
    {
        const u32 bytes = inside ? 16 : x < xs ? min(xs - x, 8u) * 2 : 0;
#pragma unroll
        for (u32 i = 0; i < count; i++) {
            if (i * parts / count != part)
                continue;
            const u32 place = unit_at(rows, threadIdx.x / units + i * step, threadIdx.x % units);
            copy_unit(to + place, walks ? from : from + i * pitch, inside || y + i * step < ys ? bytes : 0);
            if (walks)
                go_on(from, pitch);
        }
    }
    __device__ void next()
    {
        if (across)
            y += tile_k;
        else
            x += tile_k;
        from += tile;
    }
};

// Copies tiles of A and B along k into stages.
struct Copiers {
    Copier<ACROSS_A ? tile_k : tile_m, (ACROSS_A ? tile_m : tile_k) / 8, ACROSS_A> a;
    Copier<ACROSS_B ? tile_k : tile_n, (ACROSS_B ? tile_n : tile_k) / 8, ACROSS_B> b;

    __device__ Copiers(const Gemm &gemm, u32 m0, u32 n0)
    {
        if (ACROSS_A)
            a.begin(gemm.a, gemm.lda, 0, m0, gemm.k, gemm.m);
        else
            a.begin(gemm.a, gemm.lda, m0, 0, gemm.m, gemm.k);
        if (ACROSS_B)
            b.begin(gemm.b, gemm.ldb, 0, n0, gemm.k, gemm.n);
        else
            b.begin(gemm.b, gemm.ldb, n0, 0, gemm.n, gemm.k);
    }
    __device__ void copy(u32 stage, u32 part, u32 parts)
    {
        if (a.whole() && b.whole()) {
            a.template copy<true>(stage, part, parts);
            b.template copy<true>(stage + a_bytes, part, parts);
        } else {
            a.template copy<false>(stage, part, parts);
            b.template copy<false>(stage + a_bytes, part, parts);
        }
        if (part + 1 == parts) {
            a.next();
            b.next();
        }
    }
};

// 64 rows of A and 64 columns of B, 16 deep, as tensor cores take them.
struct Operands {
    u32 a[4][4], b[4][4];

    // From the places of the warp's first matrices in a stage. The unit of 16 bytes of the next 16
    // elements of a row differs in two bits only, so that it is found by an exclusive or.
    __device__ void load(u32 a_at, u32 b_at, u32 step)
    {
        const u32 down = 16 * 128;
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            fragments<ACROSS_A>(ACROSS_A ? (a_at ^ i << 5) + step * down : (a_at ^ step << 5) + i * down, a[i]);
            fragments<ACROSS_B>(ACROSS_B ? (b_at ^ i << 5) + step * down : (b_at ^ step << 5) + i * down, b[i]);
        }
    }
};

// Where row `y` of C lies, and whether it is added to what is there; null outside.
__device__ u16 *row_of(const Gemm &gemm, const Band &band, u32 y, bool &adds)
{
    adds = ACCUMULATE;
    if (!gemm.parts)
        return y < gemm.m ? gemm.c + y * gemm.ldc : nullptr;
    const Part *part = part_of(gemm.parts, band, y);
    if (!part)
        return nullptr;
    adds = part->adds;
    return part->start + (y - part->first_row) * part->ld;
}

// Between C and a tile of it in shared memory, 16 bytes at a time where a row has them. In: zeros where
// nothing is added to.
template <bool out> __device__ void move(const Gemm &gemm, const Band &band, u32 m0, u32 n0, char *tile)
{
    const u32 units = tile_n / 8;
    for (u32 at = threadIdx.x; at < tile_m * units; at += threads) {
        const u32 row = at / units, unit = at % units, x = n0 + unit * 8;
        bool adds;
        u16 *line = x < gemm.n ? row_of(gemm, band, m0 + row, adds) : nullptr;
        if (!line)
            continue;
        uint4 *staged = (uint4 *)(tile + unit_at(tile_m, row, unit));
        if (!out && !adds) {
            *staged = uint4{0, 0, 0, 0};
            continue;
        }
        if (gemm.n - x >= 8) {
            if (out)
                *(uint4 *)(line + x) = *staged;
            else
                *staged = __ldcg((const uint4 *)(line + x));
        } else {
            for (u32 i = 0; i < gemm.n - x; i++)
                if (out)
                    line[x + i] = ((u16 *)staged)[i];
                else
                    ((u16 *)staged)[i] = __ldcg(line + x + i);
        }
    }
}

extern "C" __global__ void __launch_bounds__(threads, BLOCKS) gemm(const __grid_constant__ Gemm gemm)
{
    extern __shared__ uint4 memory[];
    const u32 stages = shared_address(memory);
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, warp_m = warp % warps_m, warp_n = warp / warps_m;
    const u32 bands = (gemm.m + tile_m - 1) / tile_m, columns = (gemm.n + tile_n - 1) / tile_n;
    const u32 depth = (gemm.k + tile_k - 1) / tile_k;
    // Lane i addresses row i % 8 of matrix i / 8 of four: two down and two across, in this order or that.
    const u32 down = lane % 16, right = lane / 16, down2 = lane / 16 * 8 + lane % 8, right2 = lane / 8 % 2;
    const u32 a_at = stages + (ACROSS_A ? unit_at(tile_k, down2, warp_m * 8 + right2)
                                        : unit_at(tile_m, warp_m * 64 + down, right));
    const u32 b_at = stages + a_bytes + (ACROSS_B ? unit_at(tile_k, down, warp_n * 8 + right)
                                                  : unit_at(tile_n, warp_n * 64 + down2, right2));
    if (!ACCUMULATE)
        fetch(gemm.gate, threadIdx.x, threads, [] { __syncthreads(); });
    Course course(gemm.gate, bands, columns, gemm.group);
    for (u32 at = blockIdx.x; at < bands * columns; at += gridDim.x) {
        const Place place = course.place(at);
        Band band = {};
        band.index = place.band;
        const bool first = threadIdx.x == 0;
        if (first)
            note(gemm.trace, at, BEGUN);
        Waits waits;
        if (gemm.gate.bands) {
            band = band_at(gemm.gate, place.band);
            // A sum waits for what it is added to only when it is added.
            if (!ACCUMULATE) {
                waits = Waits(gemm.gate, band);
                waits.pass(gemm.gate, (STAGES - 1) * tile_k, first);
            }
        }
        // Also: nobody still reads the stages of the tile before.
        __syncthreads();
        const u32 m0 = band.index * tile_m, n0 = place.column * tile_n;
        if (first) {
            note(gemm.trace, at, OPENED);
            note_tile(gemm.trace, at, m0, n0);
        }
        Copiers copiers(gemm, m0, n0);
#pragma unroll
        for (u32 i = 0; i < STAGES - 1; i++) {
            if (i < depth)
                copiers.copy(stages + i * stage_bytes, 0, 1);
            copies_commit();
        }
        float sum[4][8][4] = {};
        Operands operands[2];
        u32 here = 0, ahead = stages + (STAGES - 1) * stage_bytes;
        const u32 end = stages + STAGES * stage_bytes, steps = tile_k / 16;
        copies_wait<STAGES - 2>();
        __syncthreads();
        if (first)
            note(gemm.trace, at, FED);
        operands[0].load(a_at, b_at, 0);
        for (u32 at_k = 0; at_k < depth; at_k++) {
            const bool more = at_k + STAGES - 1 < depth;
            if (waits.due < (at_k + STAGES) * tile_k) {
                waits.pass(gemm.gate, (at_k + STAGES) * tile_k, threadIdx.x == 0);
                __syncthreads();
            }
#pragma unroll
            for (u32 i = 0; i < steps; i++) {
                if (i + 1 == steps) {
                    // Everybody has read this stage, and the next is there.
                    copies_wait<STAGES - 2>();
                    __syncthreads();
                    here = here + stage_bytes == STAGES * stage_bytes ? 0 : here + stage_bytes;
                }
                operands[(i + 1) % 2].load(a_at + here, b_at + here, (i + 1) % steps);
                // The copies of the stage that was read last, a third with each but the last product.
                if (i + 1 < steps) {
                    if (more)
                        copiers.copy(ahead, i, steps - 1);
                    if (i + 2 == steps)
                        copies_commit();
                }
                const Operands &now = operands[i % 2];
#pragma unroll
                for (u32 y = 0; y < 4; y++)
#pragma unroll
                    for (u32 x = 0; x < 8; x++)
                        product(sum[y][x], now.a[y], now.b[x / 2] + x % 2 * 2);
            }
            ahead = ahead + stage_bytes == end ? stages : ahead + stage_bytes;
        }
        copies_wait<0>();
        __syncthreads();
        if (first)
            note(gemm.trace, at, MULTIPLIED);
        char *tile = (char *)memory;
        if (ACCUMULATE) {
            if (first) {
                if (gemm.gate.bands)
                    band_await(gemm.gate, band);
                note(gemm.trace, at, SUMMABLE);
            }
            __syncthreads();
            move<false>(gemm, band, m0, n0, tile);
            __syncthreads();
        }
#pragma unroll
        for (u32 y = 0; y < 4; y++)
#pragma unroll
            for (u32 x = 0; x < 8; x++)
#pragma unroll
                for (u32 half = 0; half < 2; half++) {
                    const u32 row = warp_m * 64 + y * 16 + half * 8 + lane / 4;
                    u32 *staged = (u32 *)(tile + unit_at(tile_m, row, warp_n * 8 + x)) + lane % 4;
                    float *values = sum[y][x] + half * 2;
                    if (ACCUMULATE)
                        add_pair(*staged, values[0], values[1]);
                    *staged = pair(values[0], values[1]);
                }
        __syncthreads();
        move<true>(gemm, band, m0, n0, tile);
#ifdef TRACE
        __syncthreads();
        if (first)
            note(gemm.trace, at, STORED);
#endif
        if (gemm.gate.completions > 0) {
            __syncthreads();
            if (threadIdx.x == 0) {
                // What was stored may be another GPU's.
                if (gemm.parts)
                    __threadfence_system();
                band_count(gemm.gate, band);
            }
        }
    }
}
