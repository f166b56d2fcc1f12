// What a product on tiles is told beside its matrices: which rows come first, what they wait for, and
// who is told of rows that are finished. What a product does not ask for is not among the code of its kernel: code that
// has not run for a while comes from memory, piece by piece, before the kernel gets on.
//
// Given when compiled: GATED (whether there is a gate at all), and with one BRINGS (whether the kernel brings rows of A)
// and PARTED (whether C is several places); GATE_BYTES, what the host takes the gate's size for.

#include "flag.cuh"

typedef unsigned short u16;

// A band of tile rows, in the order in which bands are computed.
struct Band {
    u32 index; // among the bands from the top
    u32 first; // waits for `count` flags from here on
    u32 count;
    u32 part; // belongs to `parts` parts from here on
    u32 parts;
    u32 done; // counts towards all completions from here on
};

struct Wait {
    const u32 *flag;
    u32 from; // of k: what comes before needs no wait
    u32 tag;
    u32 counts, pad; // whether shares of what the kernel brings are counted there
};

// Rows of the result, and all that come before them in the order, are there when `total` pieces of work
// are done; the last one sets the flag.
struct Completion {
    u32 *done; // 0 before and after
    u32 total;
    u32 offset;
    u32 *flag;
};

// Some columns of bands that follow one another in the order; their tiles are taken before any of the next section, so
// that no rows that are there wait behind rows that are not.
struct Section {
    u32 begin; // the tiles before it
    u32 first; // its first band in the order
    u32 bands;
    u32 group;  // bands whose tiles are taken at the same time
    u32 column; // its first, of tiles
    u32 columns;
};

// Rows of A that the kernel brings itself, from another GPU: a rectangle of bytes, moved `unit` bytes at a time,
// which divides addresses, pitches and the width but for its end.
struct Fetch {
    char *to;
    const char *from;
    u32 to_pitch, from_pitch, width, rows;
    u32 *done; // counts shares, ALL_SHARES in each run
    u32 *flag; // set by the last, for who looks what a run waits for
    u32 unit, pad[3];
};

// How the tables of an order begin, which is all of most: as parameters of a kernel, since a look at each in memory
// takes a microsecond.
struct Near {
    Section sections[6];
    Band bands[16];
    Wait waits[16];
};

// What the rows of a product wait for, how long, where it is said that a wait took too long, and who is
// told of rows that are done.
#if GATED
struct Gate {
    const Band *bands; // null: from the top, without waits, parts or completions
    const Section *sections; // null where `bands` is
    const Wait *waits;
    const u32 *epoch; // where the epoch lies; null: it is `base`
    u64 limit;
    u32 *status;
    u32 base;
    u32 completions;
    const Completion *completed;
    const Fetch *fetches;
    u32 fetched; // so many
    u32 loaders; // blocks from here on bring them, as they begin with waiting; the last number: a warp of each does
    Fetch first; // of them
    Near near;
};

// Entries of the tables.
template <u32 near, typename Entry> __device__ Entry entry_at(const Entry (&first)[near], const Entry *all, u32 i)
{
    return i < near ? first[i] : all[i];
}
__device__ Section section_at(const Gate &gate, u32 i) { return entry_at(gate.near.sections, gate.sections, i); }
__device__ Band band_at(const Gate &gate, u32 i) { return entry_at(gate.near.bands, gate.bands, i); }
__device__ Wait wait_at(const Gate &gate, u32 i) { return entry_at(gate.near.waits, gate.waits, i); }
#else
// All rows at once, from the top.
struct Gate {
    u64 nothing; // has a place among the parameters
    static constexpr const Band *bands = nullptr;
    static constexpr const Section *sections = nullptr;
    static constexpr const Completion *completed = nullptr;
    static constexpr const u32 *epoch = nullptr;
    static constexpr u32 *status = nullptr;
    static constexpr u64 limit = 0;
    static constexpr u32 base = 0, completions = 0, fetched = 0, loaders = 0;
};

__device__ Section section_at(const Gate &, u32) { return {}; }
__device__ Band band_at(const Gate &, u32) { return {}; }
__device__ Wait wait_at(const Gate &, u32) { return {}; }
#endif
static_assert(sizeof(Gate) == GATE_BYTES && alignof(Gate) == 8, "the host lays parameters out in another way");

// What becomes of a tile, in the order in which it does.
enum Moment {
    BEGUN,      // its loads are next
    OPENED,     // what its rows wait for is there
    FED,        // the first of A and B is there
    MULTIPLIED, // all of k is added
    SUMMABLE,   // what it is added to is there
    STORED,     // it is in memory
    MOMENTS
};

// Where TRACE is defined, notes the latest time [ns of the GPU's timer] of a moment of the tile of a block
// that takes it `at` its turn, and which tile it is; for one thread. A tile has 8 words.
__device__ void note(u64 *trace, u32 at, Moment moment)
{
#ifdef TRACE
    atomicMax(trace + at * 8ull + moment, now());
#endif
}

__device__ void note_tile(u64 *trace, u32 at, u32 m0, u32 n0)
{
#ifdef TRACE
    u32 sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    trace[at * 8ull + 6] = sm;
    trace[at * 8ull + 7] = m0 | (u64)n0 << 32;
#endif
}

// Clocks of the SM, for differences.
__device__ u32 clocks()
{
    u32 value;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(value)::"memory");
    return value;
}

// Whatever a kernel brings is counted in so many shares, and never reset: the kernel is run once with each epoch, so
// that all of it is there when the count is that many times the epoch. Who waits sees the last count itself.
const u32 ALL_SHARES = 1 << 24;

// What a wait of a band wants to find.
__device__ u32 wanted_by(const Gate &gate, const Wait &wait)
{
    return wanted(gate.epoch, gate.base) * (wait.counts ? ALL_SHARES : 1);
}

// Waits for all that the rows of a band need; for one thread.
__device__ void band_await(const Gate &gate, const Band &band)
{
    for (u32 i = band.first; i < band.first + band.count; i++) {
        const Wait wait = wait_at(gate, i);
        await(wait.flag, wanted_by(gate, wait), gate.limit, gate.status, wait.tag);
    }
}

// The waits of a band as its products get on along k, in whose order they are listed.
struct Waits {
    u32 next, end; // of all
    u32 due;       // the first of k that waits; the last number: none does any more

    __device__ Waits() : next(0), end(0), due(~0u) {}
    __device__ Waits(const Gate &gate, const Band &band) : next(band.first), end(band.first + band.count)
    {
        look(gate);
    }
    __device__ void look(const Gate &gate) { due = next < end ? wait_at(gate, next).from : ~0u; }
    // Waits for all that products before `k` need; several threads go along, of which one waits.
    __device__ void pass(const Gate &gate, u32 k, bool waits)
    {
        for (; due < k; next++, look(gate))
            if (waits) {
                const Wait wait = wait_at(gate, next);
                await(wait.flag, wanted_by(gate, wait), gate.limit, gate.status, wait.tag);
            }
    }
    // The same for one thread, which remembers the first flags that it has seen; whether it saw others.
    __device__ bool pass(const Gate &gate, u32 k, u32 &seen)
    {
        bool others = false;
        for (; due < k; next++, look(gate)) {
            const Wait wait = wait_at(gate, next);
            const u32 bit = wait.tag < 32 ? 1u << wait.tag : 0;
            if (seen & bit)
                continue;
            await(wait.flag, wanted_by(gate, wait), gate.limit, gate.status, wait.tag);
            seen |= bit;
            others = true;
        }
        return others;
    }
};

// Counts a piece of work on a band, whose stores have been made; for one thread. Who counts tells this GPU, and
// the last to count, who has been told by all, tells the others: one fence for all GPUs, which takes microseconds.
__device__ void band_count(const Gate &gate, const Band &band)
{
    for (u32 i = band.done; i < gate.completions; i++) {
        const Completion completion = gate.completed[i];
        u32 before;
        asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(completion.done) : "memory");
        if (before + 1u == completion.total) {
            *(volatile u32 *)completion.done = 0u;
            release(completion.flag, wanted(gate.epoch, gate.base + completion.offset));
        }
    }
}

// Goes on by so many bytes; not to be worked out beforehand for all accesses under way, which takes registers.
template <typename To> __device__ void go_on(To *&at, u32 bytes)
{
    asm volatile("{\n.reg .u64 more;\ncvt.u64.u32 more, %1;\nadd.u64 %0, %0, more;\n}" : "+l"(at) : "r"(bytes));
}

// Rows of C that go to one place.
struct alignas(128) Part {
    u64 map[16];  // the place as the tensor copy engine sees it, where there is one
    u64 here[16]; // where they may lie on their way to another GPU, likewise
    u16 *start;
    u64 ld;
    u32 first_row, rows;
    u32 adds;   // whether they are added to what the place holds, by kernels that ACCUMULATE
    u32 leaves; // whether the place is on another GPU
};

// The part that row `y` belongs to, of those that a band touches; null outside.
__device__ const Part *part_of(const Part *parts, const Band &band, u32 y)
{
    for (u32 i = band.part; i < band.part + band.parts; i++)
        if (y - parts[i].first_row < parts[i].rows)
            return parts + i;
    return nullptr;
}

// The tile at a place in the order: bands in groups, so that blocks that work at the same time share
// rows of A and columns of B in the cache.
struct Place {
    u32 band, column;
};

__device__ Place place_at(u32 at, u32 bands, u32 columns, u32 group)
{
    const u32 each = group * columns, first = at / each * group, rest = at % each;
    const u32 rows = min(group, bands - first);
    return Place{first + rest % rows, rest / rows};
}

// The tiles of a product by their places, which only grow.
struct Course {
    const Gate &gate;
    Section here;
    u32 next;

    __device__ Course(const Gate &gate, u32 bands, u32 columns, u32 group) : gate(gate), next(0)
    {
        here = Section{0, 0, bands, group, 0, columns};
        if (gate.sections)
            here = section_at(gate, 0);
    }
    __device__ Place place(u32 at)
    {
        while (at - here.begin >= here.bands * here.columns)
            here = section_at(gate, ++next);
        Place place = place_at(at - here.begin, here.bands, here.columns, here.group);
        place.band += here.first;
        place.column += here.column;
        return place;
    }
};
