// Flags between GPUs: 32-bit epochs that only grow, compared in cyclic order, so that nothing has to
// be reset. A flag lies in the memory of the GPU that waits for it.
//
// What is awaited or written is `*epoch + offset`, or `offset` alone where `epoch` is null: a graph
// that is replayed reads its epoch from memory, since a number baked into it would be met by the
// flags of the replay before.
//
// No wait is without end. A wait that passes its limit fills the status words (1, tag, wanted,
// found), and every later wait that sees them filled gives up at once.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ u64 now()
{
    u64 nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
}

__device__ u32 acquire(const u32 *flag)
{
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

__device__ void release(u32 *flag, u32 value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

__device__ u32 wanted(const u32 *epoch, u32 offset)
{
    return epoch ? *(const volatile u32 *)epoch + offset : offset;
}

__device__ void await(const u32 *flag, u32 want, u64 limit, u32 *status, u32 tag)
{
    const u64 begin = now();
    for (u32 turn = 1;; turn++) {
        const u32 found = acquire(flag);
        if ((int)(found - want) >= 0)
            return;
        if (turn % 64 != 0)
            continue;
        if (*(volatile u32 *)status != 0)
            return;
        if (now() - begin > limit) {
            if (atomicCAS(status, 0u, 1u) == 0u) {
                status[1] = tag;
                status[2] = want;
                status[3] = found;
                __threadfence_system();
            }
            return;
        }
    }
}
