// Kernels that set, await and shake the order of flags.

#include "flag.cuh"

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

// One thread: the time on the GPU's timer [ns].
extern "C" __global__ void stamp(u64 *out) { *out = now(); }

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

// Blocks that hold their SMs for a while; the first thread of each writes when it began.
extern "C" __global__ void hold(u64 nanoseconds, u64 *begins)
{
    const u64 begin = now();
    if (threadIdx.x == 0)
        begins[blockIdx.x] = begin;
    while (now() - begin < nanoseconds) {
    }
}
