// What Hopper adds, in PTX: barriers in shared memory that count bytes, the tensor copy engine, clusters
// of blocks, and matrix products by a warpgroup. Addresses of shared memory are 32-bit.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// How the copy engine sees a matrix; filled by the driver.
struct alignas(64) CUtensorMap {
    u64 opaque[16];
};

__device__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// ---- barriers ----

__device__ void barrier_init(u32 barrier, u32 arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

__device__ void barrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and lets the phase end only after `bytes` more have been copied.
__device__ void barrier_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// The same barrier in block `rank` of the cluster.
__device__ u32 barrier_of(u32 barrier, u32 rank)
{
    u32 remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(barrier), "r"(rank));
    return remote;
}

__device__ void barrier_arrive_remote(u32 remote)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
}

__device__ void barrier_wait(u32 barrier, u32 parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// A word in shared memory that one thread of this block tells others, with all that it knows.
__device__ void share(u32 word, u32 value)
{
    asm volatile("st.release.cta.shared::cta.u32 [%0], %1;" ::"r"(word), "r"(value) : "memory");
}

__device__ u32 shared(u32 word)
{
    u32 value;
    asm volatile("ld.acquire.cta.shared::cta.u32 %0, [%1];" : "=r"(value) : "r"(word) : "memory");
    return value;
}

// Makes fresh barriers known to the copy engine and to the cluster.
__device__ void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ u32 cluster_rank()
{
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// The cluster meets. Of what was written before, others see barriers alone, after `barrier_init_fence`: telling of all
// takes a fence for the whole GPU.
__device__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Barriers of some warps of a block.
__device__ void named_sync(u32 name, u32 threads)
{
    asm volatile("barrier.cta.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

__device__ void named_arrive(u32 name, u32 threads)
{
    asm volatile("barrier.cta.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// ---- the copy engine ----

__device__ void tensor_prefetch(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// A box into this block; counts its bytes at `barrier`.
__device__ void tensor_load(u32 to, const CUtensorMap *map, int x, int y, u32 barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
                 "[%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}

// A box into the same place of every block in `mask`; counts at the same barrier of each.
__device__ void tensor_load_all(u32 to, const CUtensorMap *map, int x, int y, u32 barrier, u16 mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(mask)
                 : "memory");
}

// A box into the second-level cache.
__device__ void tensor_prefetch_box(const CUtensorMap *map, int x, int y)
{
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map), "r"(x), "r"(y) : "memory");
}

__device__ void tensor_store(const CUtensorMap *map, int x, int y, u32 from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x),
                 "r"(y), "r"(from)
                 : "memory");
}

__device__ void stores_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Shared memory of all stores of this thread may be written again.
__device__ void stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
// All stores of this thread but those of the last `but` groups have been made.
template <int but> __device__ void stores_done_but()
{
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(but) : "memory");
}
// All stores of this thread have been made.
__device__ void stores_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Between ordinary accesses and those of the copy engine and the tensor cores.
__device__ void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ void proxy_fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- products ----

// A tile in shared memory as the copy engine writes it with the 128-byte swizzle, from `address` on.
// Rows along k: 8 rows are 1024 bytes. Rows across k: 64 columns are `leading` bytes, 8 rows 1024.
__device__ u64 tile_descriptor(u32 address, u32 leading)
{
    return (u64)((address & 0x3FFFF) >> 4) | (u64)(leading >> 4) << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

__device__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// At most `pending` groups are still under way.
template <int pending> __device__ void products_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

#define HOPPER_R0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define HOPPER_R1 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define HOPPER_R2 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define HOPPER_R3 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define HOPPER_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define HOPPER_D32(i) HOPPER_D8(i), HOPPER_D8(i + 8), HOPPER_D8(i + 16), HOPPER_D8(i + 24)

// d (64 x columns, fp32) = a b, or += a b unless `fresh`; a is 64 x 16 and b 16 x columns, in shared
// memory. `across_a`, `across_b`: their rows lie across k.
template <int columns, int across_a, int across_b> struct Product;

#define HOPPER_PRODUCT(columns, list, outputs, ia, ib, is, ita, itb)                                         \
    template <int across_a, int across_b> struct Product<columns, across_a, across_b> {                      \
        static __device__ void run(float *d, u64 a, u64 b, int fresh)                                        \
        {                                                                                                    \
            asm volatile("{\n.reg .pred more;\nsetp.eq.b32 more, %" #is ", 0;\n"                             \
                         "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." ELEMENT "." ELEMENT         \
                         " {" list "}, %" #ia ", %" #ib ", more, 1, 1, %" #ita ", %" #itb ";\n}"             \
                         : outputs                                                                           \
                         : "l"(a), "l"(b), "r"(fresh), "n"(across_a), "n"(across_b));                        \
        }                                                                                                    \
    };

HOPPER_PRODUCT(64, HOPPER_R0, HOPPER_D32(0), 32, 33, 34, 35, 36)
#define HOPPER_D64 HOPPER_D32(0), HOPPER_D32(32)
HOPPER_PRODUCT(128, HOPPER_R0 HOPPER_R1, HOPPER_D64, 64, 65, 66, 67, 68)
#define HOPPER_D96 HOPPER_D64, HOPPER_D32(64)
HOPPER_PRODUCT(192, HOPPER_R0 HOPPER_R1 HOPPER_R2, HOPPER_D96, 96, 97, 98, 99, 100)
#define HOPPER_D128 HOPPER_D96, HOPPER_D32(96)
HOPPER_PRODUCT(256, HOPPER_R0 HOPPER_R1 HOPPER_R2 HOPPER_R3, HOPPER_D128, 128, 129, 130, 131, 132)

template <int registers> __device__ void registers_grow()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers> __device__ void registers_shrink()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

// Four 8 x 8 matrices of 16-bit elements between registers and rows of 16 bytes in shared memory.
__device__ void matrices_store(u32 row, const u32 (&value)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(value[0]),
                 "r"(value[1]), "r"(value[2]), "r"(value[3])
                 : "memory");
}

__device__ void matrices_load(u32 row, u32 (&value)[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "r"(row)
                 : "memory");
}
