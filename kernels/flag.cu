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

// One thread: holds its stream until the flag is there.
extern "C" __global__ void flag_wait(const u32 *flag, const u32 *epoch, u32 offset, u64 limit, u32 *status, u32 tag)
{
    await(flag, wanted(epoch, offset), limit, status, tag);
}

// One thread: sets the flag after everything that precedes in the stream.
extern "C" __global__ void flag_write(u32 *flag, const u32 *epoch, u32 offset)
{
    __threadfence_system();
    release(flag, wanted(epoch, offset));
}

// One thread: begins the next epoch.
extern "C" __global__ void epoch_bump(u32 *epoch)
{
    *(volatile u32 *)epoch = *(volatile u32 *)epoch + 1u;
    __threadfence_system();
}

struct Board {
    u32 *start[16];
};

// One block on each of up to 16 GPUs, a thread per GPU: everybody writes into its place on every
// board, then waits until its own board is full.
extern "C" __global__ void barrier(const __grid_constant__ Board boards, u32 members, u32 self, const u32 *epoch,
                                   u32 offset, u64 limit, u32 *status, u32 tag)
{
    if (threadIdx.x < members) {
        const u32 want = wanted(epoch, offset);
        __threadfence_system();
        release(boards.start[threadIdx.x] + self, want);
        await(boards.start[self] + threadIdx.x, want, limit, status, tag + threadIdx.x);
    }
}

// One thread: lets time pass, to shake the order of things.
extern "C" __global__ void delay(u64 nanoseconds)
{
    const u64 begin = now();
    while (now() - begin < nanoseconds) {
    }
}

// One thread: cycles of the SM and nanoseconds that passed meanwhile.
extern "C" __global__ void clock_rate(u64 nanoseconds, u64 *out)
{
    const u64 begin = now();
    const long long cycles = clock64();
    u64 end = now();
    while (end - begin < nanoseconds)
        end = now();
    out[0] = (u64)(clock64() - cycles);
    out[1] = end - begin;
}
