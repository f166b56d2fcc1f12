// C = A B or C += A B on Hopper's tensor cores: 16-bit elements, fp32 sums in the order of k.
//
// A is m x k and B is k x n, row-major, or transposed (ACROSS_A, ACROSS_B: rows lie across k; B as k x n
// does, A as m x k does not). A cluster of CLUSTER_M x CLUSTER_N blocks computes as many tiles of
// TILE_M x TILE_N at a time and shares what it loads. In each block
//
//   warp 0       loads tiles of A and B, STAGES ahead                         full[], empty[]
//   warps 1, 2   move finished pieces of C to memory, for one group each      ready[], named barriers
//   warp 3       looks whether rows are there that the first tile waits for   flags, seen
//   warps 4-7    group 0: rows 0-63 of the tile, sums in registers
//   warps 8-11   group 1: rows 64-127
//
// so that while a group waits for nothing but its products, the next tile is on its way and the last
// one still leaves. Blocks stay and take tile after tile. No tile depends on another.
//
// Given when compiled: ELEMENT ("bf16", "f16"), CONVERT (its pair conversion), TILE_N, STAGES, CLUSTER_M,
// CLUSTER_N, ACROSS_A, ACROSS_B, ACCUMULATE, PACE (see `leave`), what gemm.cuh says; TRACE where the moments of tiles are
// to be noted.

#include "hopper.cuh"
#include "gemm.cuh"
#include "fetch.cuh"

const u32 tile_m = 128, tile_n = TILE_N, tile_k = 64;
const u32 a_bytes = tile_m * tile_k * 2, b_bytes = tile_n * tile_k * 2, stage_bytes = a_bytes + b_bytes;
// 64 columns of C of one group.
const u32 piece_bytes = 64 * 64 * 2, pieces = tile_n / 64;
// The pieces of a tile that still lie in shared memory when the last is finished.
const u32 held = pieces < 2 ? pieces : 2;
const u32 cluster = CLUSTER_M * CLUSTER_N;
// Blocks that one block shares loads with, itself included.
const u32 partners = CLUSTER_M + CLUSTER_N - 1;

struct Gemm {
    CUtensorMap a, b, c;
    Gate gate;
#if PARTED
    const Part *parts; // null: c
#else
    static constexpr const Part *parts = nullptr;
#endif
    u16 *out;          // c's start
    u64 out_ld;
    u32 m, n, k, group;
    u64 *trace; // see `note`
};

// Shared memory, from a multiple of 1024 bytes on.
struct Layout {
    u32 stages, pieces, full, empty, ready, bounced, adds, seen, table;

    __device__ u32 stage(u32 i) const { return stages + i * stage_bytes; }
    __device__ u32 piece(u32 group, u32 half) const { return pieces + (group * 2 + half) * piece_bytes; }
    __device__ u32 ready_of(u32 group, u32 half) const { return ready + (group * 2 + half) * 8; }
    // A piece is back from memory.
    __device__ u32 bounced_of(u32 group) const { return bounced + group * 8; }
    // Whether a piece is added to what is there; told with `ready_of`.
    __device__ u32 adds_of(u32 group, u32 half) const { return adds + (group * 2 + half) * 4; }
};

__device__ Layout layout(const void *start)
{
    Layout at;
    at.stages = (shared_address(start) + 1023) / 1024 * 1024;
    at.pieces = at.stages + STAGES * stage_bytes;
    at.full = at.pieces + 4 * piece_bytes;
    at.empty = at.full + STAGES * 8;
    at.ready = at.empty + STAGES * 8;
    at.bounced = at.ready + 4 * 8;
    at.adds = at.bounced + 2 * 8;
    at.seen = at.adds + 4 * 4;
    at.table = (at.seen + 4 + 15) / 16 * 16;
    return at;
}

// Goes through a ring of stages.
struct Ring {
    u32 at, parity;

    __device__ void next()
    {
        if (++at == STAGES) {
            at = 0;
            parity ^= 1;
        }
    }
};

__device__ u32 bands_of(const Gemm &gemm) { return (gemm.m + tile_m * CLUSTER_M - 1) / (tile_m * CLUSTER_M); }
__device__ u32 columns_of(const Gemm &gemm) { return (gemm.n + tile_n * CLUSTER_N - 1) / (tile_n * CLUSTER_N); }

// The tiles of one cluster, one after another.
struct Walk {
    u32 at, step, end;

    __device__ Walk(const Gemm &gemm)
    {
        at = blockIdx.x / cluster;
        step = gridDim.x / cluster;
        end = bands_of(gemm) * columns_of(gemm);
    }
};

#include "bring.cuh"

// Fills the stages; for one thread.
struct Loader {
    const Gemm &gemm;
    const Layout &at;
    u32 rank_m, rank_n;
    u16 row_mask, column_mask;

    __device__ Loader(const Gemm &gemm, const Layout &at, u32 rank)
        : gemm(gemm), at(at), rank_m(rank % CLUSTER_M), rank_n(rank / CLUSTER_M), row_mask(0), column_mask(0)
    {
        for (u32 i = 0; i < CLUSTER_N; i++)
            row_mask |= 1 << (rank_m + i * CLUSTER_M);
        for (u32 i = 0; i < CLUSTER_M; i++)
            column_mask |= 1 << (i + rank_n * CLUSTER_M);
    }
    // The first row and column of a tile.
    __device__ int row_of(u32 band) const { return (band * CLUSTER_M + rank_m) * tile_m; }
    __device__ int column_of(u32 column) const { return (column * CLUSTER_N + rank_n) * tile_n; }

    // A stage in boxes of 64 columns where rows lie across k, else one box; each partner loads its share for all, or
    // a block all for itself.
    template <bool alone> __device__ void load_a(int m0, u32 k0, u32 stage) const
    {
        const u32 full = at.full + stage * 8, to = at.stage(stage);
#pragma unroll
        for (u32 i = 0; i < tile_m / (ACROSS_A ? 64 : tile_m / CLUSTER_N) / (alone ? 1 : CLUSTER_N); i++) {
            const u32 row = (alone ? 0 : rank_n * (tile_m / CLUSTER_N)) + i * (ACROSS_A ? 64 : tile_m / CLUSTER_N);
            const int x = ACROSS_A ? m0 + row : k0, y = ACROSS_A ? k0 : m0 + row;
            if (alone || CLUSTER_N == 1)
                tensor_load(to + row * tile_k * 2, &gemm.a, x, y, full);
            else
                tensor_load_all(to + row * tile_k * 2, &gemm.a, x, y, full, row_mask);
        }
    }
    template <bool alone> __device__ void load_b(int n0, u32 k0, u32 stage) const
    {
        const u32 full = at.full + stage * 8, to = at.stage(stage) + a_bytes;
#pragma unroll
        for (u32 i = 0; i < tile_n / (ACROSS_B ? 64 : tile_n / CLUSTER_M) / (alone ? 1 : CLUSTER_M); i++) {
            const u32 column = (alone ? 0 : rank_m * (tile_n / CLUSTER_M)) + i * (ACROSS_B ? 64 : tile_n / CLUSTER_M);
            const int x = ACROSS_B ? n0 + column : k0, y = ACROSS_B ? k0 : n0 + column;
            if (alone || CLUSTER_M == 1)
                tensor_load(to + column * tile_k * 2, &gemm.b, x, y, full);
            else
                tensor_load_all(to + column * tile_k * 2, &gemm.b, x, y, full, column_mask);
        }
    }
};

// Of k: what a block of a product that waits for nothing loads by itself, while its cluster has not met.
const u32 first_k = GATED || cluster == 1 ? 0 : tile_k;

// The place of its tile.
__device__ Place load_first(const Gemm &gemm, const Layout &at, u32 rank)
{
    const Walk walk(gemm);
    if (walk.at >= walk.end)
        return {};
    const Loader loader(gemm, at, rank);
    const Place place = Course(gemm.gate, bands_of(gemm), columns_of(gemm), gemm.group).place(walk.at);
    note(gemm.trace, walk.at * cluster + rank, BEGUN);
    barrier_expect(at.full, stage_bytes);
    loader.load_a<true>(loader.row_of(place.band), 0, 0);
    loader.load_b<true>(loader.column_of(place.column), 0, 0);
    return place;
}

// One thread: fills the stages, after what `load_first` did.
__device__ void load(const Gemm &gemm, const Layout &at, u32 rank, const Place &first)
{
    Walk walk(gemm);
    if (walk.at >= walk.end)
        return;
    const Loader loader(gemm, at, rank);
    u32 begun = first_k; // of k of the first tile
    Ring ring = {first_k / tile_k, 1};
    u32 seen = 0;    // of the flags
    u32 b_ahead = 0; // of k: B is on its way before
    Course course(gemm.gate, bands_of(gemm), columns_of(gemm), gemm.group);
    for (; walk.at < walk.end; walk.at += walk.step) {
        const Place place = begun > 0 ? first : course.place(walk.at);
        const u32 turn = walk.at * cluster + rank;
        if (begun == 0)
            note(gemm.trace, turn, BEGUN);
        u32 band = place.band;
        Waits waits;
        const bool watched = walk.at == blockIdx.x / cluster && watches(gemm.gate);
        auto await_before = [&](u32 k) {
            if (waits.due >= k)
                return;
            if (watched)
                while ((waits.due = shared(at.seen)) < k)
                    ;
            else if (!waits.pass(gemm.gate, k, seen))
                return;
            proxy_fence();
        };
        if (gemm.gate.bands) {
            const Band order = band_at(gemm.gate, place.band);
            band = order.index;
            // A sum waits for what it is added to only when it is added.
            if (!ACCUMULATE && !watched)
                waits = Waits(gemm.gate, order);
            else if (watched && order.count > 0)
                waits.due = 0;
        }
        const int m0 = loader.row_of(band), n0 = loader.column_of(place.column);
        // Who begins with waiting has room for B meanwhile.
        if (walk.at == blockIdx.x / cluster && waits.due < tile_k)
            for (; b_ahead < gemm.k && b_ahead < STAGES * tile_k; b_ahead += tile_k) {
                barrier_expect(at.full + b_ahead / tile_k * 8, stage_bytes);
                loader.load_b<false>(n0, b_ahead, b_ahead / tile_k);
            }
        await_before(tile_k);
        note(gemm.trace, turn, OPENED);
        note_tile(gemm.trace, turn, m0, n0);
        for (u32 k0 = begun; k0 < gemm.k; k0 += tile_k) {
            await_before(k0 + tile_k);
            const bool has_b = k0 < b_ahead;
            if (!has_b) {
                barrier_wait(at.empty + ring.at * 8, ring.parity);
                barrier_expect(at.full + ring.at * 8, stage_bytes);
            }
            loader.load_a<false>(m0, k0, ring.at);
            if (!has_b)
                loader.load_b<false>(n0, k0, ring.at);
            ring.next();
        }
        begun = b_ahead = 0;
    }
    // Nobody leaves while a partner may still write to its memory: what it loads for this block was waited for by
    // who multiplies, and this is the last that it says.
    if (cluster > 1)
        for (u32 i = 0; i < STAGES; i++, ring.next())
            barrier_wait(at.empty + ring.at * 8, ring.parity);
}

// One thread: waits for what a band is to be added to.
__device__ void await_sums(const Gemm &gemm, const Band &band)
{
    if (ACCUMULATE && gemm.gate.bands && band.count > 0) {
        band_await(gemm.gate, band);
        proxy_fence();
    }
}

// The part of C that the 64 rows of a group in a tile belong to, where there are parts: kernels that add get
// such as begin with a multiple of 64 rows.
__device__ const Part *home_of(const Gemm &gemm, const Band &band, int y)
{
    return ACCUMULATE && gemm.parts ? part_of(gemm.parts, band, y) : nullptr;
}

// Where what a piece is added to lies, for the copy engine; false where it is added to nothing.
__device__ bool adds_to(const Gemm &gemm, const Part *home, const CUtensorMap *&map, int &y)
{
    map = &gemm.c;
    if (!ACCUMULATE || !gemm.parts)
        return ACCUMULATE;
    if (!home || !home->adds)
        return false;
    map = (const CUtensorMap *)home->map;
    y -= (int)home->first_row;
    return true;
}

// Makes room for a piece of C, or brings what is to be added to.
__device__ void prepare(const Gemm &gemm, const Layout &at, const Part *home, u32 group, u32 half, int x, int y)
{
    const u32 ready = at.ready_of(group, half);
    const CUtensorMap *map;
    const bool adds = adds_to(gemm, home, map, y);
    if (ACCUMULATE)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at.adds_of(group, half)), "r"((u32)adds) : "memory");
    if (adds) {
        barrier_expect(ready, piece_bytes);
        tensor_load(at.piece(group, half), map, x, y, ready);
    } else {
        barrier_arrive(ready);
    }
}

// Pieces that are not loaded at once: from memory into the second-level cache.
__device__ void prefetch(const Gemm &gemm, const Part *home, int x, int y)
{
    const CUtensorMap *map;
    if (ACCUMULATE && adds_to(gemm, home, map, y))
#pragma unroll 1
        for (u32 piece = 2; piece < pieces && x + piece * 64 < gemm.n; piece++)
            tensor_prefetch_box(map, x + piece * 64, y);
}

// One warp: moves a piece of `columns` columns to rows from `y` on, of which those from 0 to `rows` exist.
// The copy engine takes no rows before the first, and writes 16 bytes at a time, over what follows.
__device__ void store_rows(u32 piece, u16 *start, u64 ld, int rows, int y, u32 x, u32 columns)
{
    for (u32 i = threadIdx.x % 32; i < 64 * 8; i += 32) {
        const u32 row = i / 8, unit = i % 8;
        if (y + (int)row < 0 || y + (int)row >= rows || unit * 8 >= columns)
            continue;
        union {
            uint4 all;
            u16 at[8];
        } value;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.all.x), "=r"(value.all.y), "=r"(value.all.z), "=r"(value.all.w)
                     : "r"(piece + row * 128 + ((unit ^ row % 8) * 16))
                     : "memory");
        u16 *to = start + (y + (long long)row) * ld + x + unit * 8;
        if (columns - unit * 8 >= 8)
            *(uint4 *)to = value.all;
        else
#pragma unroll
            for (u32 j = 0; j < 8; j++)
                if (j < columns - unit * 8)
                    to[j] = value.at[j];
    }
    __syncwarp();
    proxy_fence_shared();
}

// One warp: a piece to where its rows go; whether by ordinary stores.
__device__ bool store_piece(const CUtensorMap *map, u16 *start, u64 ld, int rows, u32 n, u32 from, u32 x, int y)
{
    if (x >= n || y >= rows || y + 64 <= 0)
        return false;
    const u32 columns = min(n - x, 64u);
    if (columns % 8 != 0 || y < 0) {
        store_rows(from, start, ld, rows, y, x, columns);
        return true;
    }
    if (threadIdx.x % 32 == 0)
        tensor_store(map, x, y, from);
    return false;
}

// The same to a part, which may be another GPU's: ordinary stores are made for all GPUs.
__device__ void store_apart(const CUtensorMap *map, u16 *start, u64 ld, int rows, u32 n, u32 from, u32 x, int y)
{
    if (store_piece(map, start, ld, rows, n, from, x, y)) {
        __threadfence_system();
        __syncwarp();
    }
}

// The part on another GPU that all of the 64 rows of a group in a tile belong to, if there is one.
__device__ const Part *leaving_of(const Gemm &gemm, const Band &band, const Part *home, int y)
{
    if (ACCUMULATE)
        return home && home->leaves ? home : nullptr;
    if (gemm.parts)
        for (const Part *part = gemm.parts + band.part; part < gemm.parts + band.part + band.parts; part++) {
            const int first = part->first_row, end = first + part->rows;
            if (part->leaves && y >= first && y < end && (y + 64 <= end || end == gemm.m))
                return part;
        }
    return nullptr;
}

// Whether the copy engine stores a piece of C from column `x` on.
__device__ bool by_engine(const Gemm &gemm, u32 x) { return x < gemm.n && (x + 64 <= gemm.n || gemm.n % 8 == 0); }

// One warp: stores the pieces of a tile on another GPU while the next tile is computed. The last ones, from
// half `half` on, lie in shared memory, the others were moved to memory of this GPU. All SMs together fill the
// link, and a copy engine that waits for it loads nothing either: one piece follows another after a share of
// the `time` [clocks] that the next tile takes, PACE percent for all of them.
__device__ void leave(const Gemm &gemm, const Layout &at, const Part &part, u32 group, u32 half, u32 x, int y, u32 time,
                      u32 &bounces)
{
    const bool leader = threadIdx.x % 32 == 0;
    const u32 each = (u64)time * PACE / (100 * pieces);
    // Not all SMs at once.
    u32 due = clocks() + each / 16 * ((blockIdx.x * 2 + group) % 16);
    y -= (int)part.first_row;
#pragma unroll 1
    for (u32 i = 0; i < pieces; i++, due += each) {
        const u32 piece = i < held ? pieces - held + i : i - held, place = at.piece(group, (half + i) % 2);
        const u32 to_x = x + piece * 64;
        if (leader && i >= held && by_engine(gemm, to_x)) {
            if (i == held)
                stores_done_but<held>();
            stores_read();
            proxy_fence();
            barrier_expect(at.bounced_of(group), piece_bytes);
            tensor_load(place, (const CUtensorMap *)part.here, to_x, y, at.bounced_of(group));
            barrier_wait(at.bounced_of(group), bounces++ % 2);
        }
        if (leader)
            while ((int)(clocks() - due) < 0)
                __nanosleep(100);
        __syncwarp();
        if (i < held || by_engine(gemm, to_x))
            store_apart((const CUtensorMap *)part.map, part.start, part.ld, part.rows, gemm.n, place, to_x, y);
        if (leader)
            stores_commit();
    }
}

// One warp: moves the finished pieces of a group to memory and says so.
__device__ void store(const Gemm &gemm, const Layout &at, u32 rank, u32 group)
{
    const bool leader = threadIdx.x % 32 == 0;
    const u32 rank_m = rank % CLUSTER_M, rank_n = rank / CLUSTER_M;
    int x = 0, y = 0;
    Band order = {};
    const Part *home = nullptr, *leaving = nullptr;
    u32 since = clocks(), bounces = 0; // since the last tile was finished
    Course course(gemm.gate, bands_of(gemm), columns_of(gemm), gemm.group);
    auto find = [&](const Walk &walk) {
        const Place place = course.place(walk.at);
        order.index = place.band;
        if (gemm.gate.bands)
            order = band_at(gemm.gate, place.band);
        x = (place.column * CLUSTER_N + rank_n) * tile_n;
        y = (order.index * CLUSTER_M + rank_m) * tile_m + group * 64;
        home = home_of(gemm, order, y);
        leaving = leaving_of(gemm, order, home, y);
    };
    Walk walk(gemm);
    if (walk.at >= walk.end)
        return;
    find(walk);
    auto await = [&] {
        await_sums(gemm, order);
        if (ACCUMULATE)
            note(gemm.trace, walk.at * cluster + rank, SUMMABLE);
        prefetch(gemm, home, x, y);
    };
    if (leader) {
        await();
        prepare(gemm, at, home, group, 0, x, y);
    }
    for (u32 turn = 0;;) {
        const u32 half = turn % 2, piece = turn % pieces;
        const bool last = piece + 1 == pieces;
        const u32 to_x = x + piece * 64;
        const int to_y = y;
        const Band here = order;
        const Part *leaves = leaving;
#ifdef TRACE
        const u32 traced = walk.at * cluster + rank;
#endif
        turn++;
        auto advance = [&] {
            walk.at += walk.step;
            if (walk.at < walk.end)
                find(walk);
        };
        auto prepare_next = [&] {
            stores_read();
            prepare(gemm, at, home, group, turn % 2, x + turn % pieces * 64, y);
        };
        // What the next tile is added to may not be there yet, and others may wait for this one.
        const bool later = last && (ACCUMULATE || leaves);
        if (last && !later)
            advance();
        if (leader && walk.at < walk.end && !later)
            prepare_next();
        named_sync(1 + group * 2 + half, 160);
        const u32 from = at.piece(group, half);
        auto store_to = [&](const Part &part) {
            const CUtensorMap *map = (const CUtensorMap *)part.map;
            store_apart(map, part.start, part.ld, part.rows, gemm.n, from, to_x, to_y - (int)part.first_row);
        };
        if (leaves && piece + held >= pieces) {
            // Below.
        } else if (leaves && by_engine(gemm, to_x)) {
            if (leader)
                tensor_store((const CUtensorMap *)leaves->here, to_x, to_y - (int)leaves->first_row, from);
        } else if (ACCUMULATE && home)
            store_to(*home);
        else if (!ACCUMULATE && gemm.parts)
            for (u32 i = here.part; i < here.part + here.parts; i++)
                store_to(gemm.parts[i]);
        else if (!gemm.parts)
            store_piece(&gemm.c, gemm.out, gemm.out_ld, gemm.m, gemm.n, from, to_x, to_y);
        if (leader)
            stores_commit();
        if (last) {
            const u32 end = clocks(), next = walk.at + walk.step < walk.end ? end - since : 0;
            since = end;
            if (leaves)
                leave(gemm, at, *leaves, group, (turn - held) % 2, to_x - piece * 64, to_y, next, bounces);
        }
        if (leader) {
#ifdef TRACE
            if (last) {
                stores_done();
                note(gemm.trace, traced, STORED);
            }
#endif
            if (last && gemm.gate.completions > 0) {
                stores_done();
                proxy_fence();
                band_count(gemm.gate, here);
            }
        }
        if (later)
            advance();
        if (walk.at >= walk.end)
            break;
        if (later && leader) {
            await();
            prepare_next();
        }
    }
    if (leader)
        stores_done();
}

__device__ u32 pair(float low, float high)
{
    u32 bits;
    asm(CONVERT " %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}

__device__ void add_pair(u32 bits, float &low, float &high)
{
    asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %2;\ncvt.f32." ELEMENT " %0, l;\ncvt.f32." ELEMENT " %1, h;\n}"
        : "=f"(low), "=f"(high)
        : "r"(bits));
}

// Four warps: the sums of 64 rows of every tile.
__device__ void multiply(const Gemm &gemm, const Layout &at, u32 rank, u32 group)
{
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    // Lane i tells partner i when a stage may be filled again.
    u32 partner = rank;
    if (lane < CLUSTER_M)
        partner = rank / CLUSTER_M * CLUSTER_M + lane;
    else if (lane < partners) {
        const u32 other = lane - CLUSTER_M;
        partner = rank % CLUSTER_M + CLUSTER_M * (other < rank / CLUSTER_M ? other : other + 1);
    }
    const u32 empty = cluster > 1 ? barrier_of(at.empty, partner) : at.empty;
    auto free_stage = [&](u32 stage) {
        if (lane < partners) {
            if (cluster > 1)
                barrier_arrive_remote(empty + stage * 8);
            else
                barrier_arrive(empty + stage * 8);
        }
    };
    // A row across k is 128 bytes; 16 of k are 16 such rows, or 32 bytes of a row along k.
    const u32 a_step = ACROSS_A ? 16 * 128 : 32, b_step = ACROSS_B ? 16 * 128 : 32;
    const u32 across = 64 * 128;
    // Lane i addresses row i % 8 of matrix i / 8 of four, of which each is 8 x 8: two down, two across.
    const u32 row = warp * 16 + lane % 16, column = lane / 16;
    Ring ring = {0, 0};
    u32 turn = 0;
    for (Walk walk(gemm); walk.at < walk.end; walk.at += walk.step) {
        float sum[tile_n / 2];
        int fresh = 1;
        u32 before = 0;
        for (u32 k0 = 0; k0 < gemm.k; k0 += tile_k) {
            barrier_wait(at.full + ring.at * 8, ring.parity);
            if (k0 == 0 && threadIdx.x % 128 == 0)
                note(gemm.trace, walk.at * cluster + rank, FED);
            const u64 a = tile_descriptor(at.stage(ring.at) + group * 64 * tile_k * 2, across);
            const u64 b = tile_descriptor(at.stage(ring.at) + a_bytes, across);
            products_begin();
#pragma unroll
            for (u32 i = 0; i < tile_k / 16; i++) {
                Product<tile_n, ACROSS_A, ACROSS_B>::run(sum, a + (i * a_step >> 4), b + (i * b_step >> 4), fresh);
                fresh = 0;
            }
            products_commit();
            products_wait<1>();
            if (k0 > 0)
                free_stage(before);
            before = ring.at;
            ring.next();
        }
        products_wait<0>();
        free_stage(before);
        if (threadIdx.x % 128 == 0)
            note(gemm.trace, walk.at * cluster + rank, MULTIPLIED);
#pragma unroll
        for (u32 piece = 0; piece < pieces; piece++) {
            const u32 half = turn % 2, place = at.piece(group, half);
            barrier_wait(at.ready_of(group, half), turn / 2 % 2);
            u32 adds = 0;
            if (ACCUMULATE)
                asm volatile("ld.shared.u32 %0, [%1];" : "=r"(adds) : "r"(at.adds_of(group, half)) : "memory");
            turn++;
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                float *values = sum + piece * 32 + i * 8;
                const u32 to = place + row * 128 + ((i * 2 + column ^ row % 8) * 16);
                if (ACCUMULATE && adds) {
                    u32 old[4];
                    matrices_load(to, old);
#pragma unroll
                    for (u32 j = 0; j < 4; j++) {
                        float low, high;
                        add_pair(old[j], low, high);
                        values[j * 2] += low;
                        values[j * 2 + 1] += high;
                    }
                }
                u32 value[4];
#pragma unroll
                for (u32 j = 0; j < 4; j++)
                    value[j] = pair(values[j * 2], values[j * 2 + 1]);
                matrices_store(to, value);
            }
            proxy_fence_shared();
            named_arrive(1 + group * 2 + half, 160);
        }
    }
}

extern "C" __global__ void __cluster_dims__(CLUSTER_M *CLUSTER_N, 1, 1) __launch_bounds__(384, 1)
    gemm(const __grid_constant__ Gemm gemm)
{
    extern __shared__ u64 memory[];
    const Layout at = layout(memory);
    const u32 rank = cluster > 1 ? cluster_rank() : 0;
    const u32 warp = threadIdx.x / 32;
    if (threadIdx.x == 32) {
        tensor_prefetch(&gemm.a);
        tensor_prefetch(&gemm.b);
        tensor_prefetch(&gemm.c);
    }
    if (threadIdx.x == 0) {
        for (u32 i = 0; i < STAGES; i++) {
            barrier_init(at.full + i * 8, 1);
            barrier_init(at.empty + i * 8, partners * 8);
        }
        for (u32 i = 0; i < 4; i++)
            barrier_init(at.ready + i * 8, 1);
        for (u32 i = 0; i < 2; i++)
            barrier_init(at.bounced + i * 8, 1);
        barrier_init_fence();
    }
    // Who looks or brings does not wait for the others.
    const bool early = !ACCUMULATE && warp == 3;
    if (GATED && early && threadIdx.x % 32 == 0) {
        share(at.seen, 0);
        __threadfence_block();
    }
    auto bring_early = [&] {
        if (warp >= 4 && brings(gemm.gate))
            bring_first(gemm.gate, threadIdx.x - 128);
    };
    Place first = {};
    __syncwarp();
    if (cluster > 1) {
        cluster_arrive();
        bring_early();
        if (first_k > 0 && threadIdx.x == 0)
            first = load_first(gemm, at, rank);
        __syncwarp();
        if (!early)
            cluster_wait();
    } else if (early)
        named_arrive(5, 384);
    else
        named_sync(5, 384);
    if (warp < 4) {
        registers_shrink<72>();
        if ((warp == 1 || warp == 2) && brings(gemm.gate))
            bring_others(gemm.gate, (Fetch *)((char *)memory + (at.table - shared_address(memory))), warp - 1);
        if (threadIdx.x == 0)
            load(gemm, at, rank, first);
        else if (warp == 1 || warp == 2)
            store(gemm, at, rank, warp - 1);
        else if (early && watches(gemm.gate)) {
            if (threadIdx.x % 32 == 0)
                watch(gemm, at);
        } else if (early && gemm.gate.loaders == ~0u)
            fetch(gemm.gate, threadIdx.x % 32, 32, [] { __syncwarp(); });
        __syncwarp();
        if (cluster > 1 && early)
            cluster_wait();
    } else {
        if (cluster == 1)
            bring_early();
        registers_grow<216>();
        multiply(gemm, at, rank, warp / 4 - 1);
    }
}
