// Copies a rectangle of bytes with the blocks it is launched with, one per SM.
//
// `copyN` moves N bytes per access: addresses and pitches must be multiples of N. What is left of a
// row when N does not divide the width is moved byte by byte. Threads walk the rectangle row by row
// with a stride of the whole grid; four accesses are under way per thread, since the far memory of a
// peer answers in microseconds.
//
// `copyN_tell` then sets a flag, which the last block to end does. On GPUs with clusters its blocks
// come in pairs, `copyN_tell_pair`, so that what they leave of the SMs can hold pairs of other kernels.

#include "flag.cuh"

template <typename Unit>
__device__ void copy_units(char *to, u64 to_pitch, const char *from, u64 from_pitch, u64 width, u64 rows)
{
    const int ahead = 4;
    const u64 units = width / sizeof(Unit);
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const u64 step = (u64)gridDim.x * blockDim.x;
    if (units > 0) {
        const u64 rows_step = step / units, units_step = step % units;
        u64 row = first / units, unit = first % units;
        while (row < rows) {
            Unit value[ahead];
            char *place[ahead];
            int held = 0;
#pragma unroll
            for (int i = 0; i < ahead; i++) {
                if (row < rows) {
                    value[i] = __ldcs((const Unit *)(from + row * from_pitch) + unit);
                    place[i] = to + row * to_pitch + unit * sizeof(Unit);
                    held = i + 1;
                }
                row += rows_step;
                unit += units_step;
                if (unit >= units) {
                    unit -= units;
                    row += 1;
                }
            }
#pragma unroll
            for (int i = 0; i < ahead; i++)
                if (i < held)
                    *(Unit *)place[i] = value[i];
        }
    }
    const u64 done = units * sizeof(Unit), left = width - done;
    if (left > 0)
        for (u64 i = first; i < rows * left; i += step) {
            const u64 row = i / left, byte = done + i % left;
            to[row * to_pitch + byte] = from[row * from_pitch + byte];
        }
}

#define COPY(name, unit)                                                                                     \
    extern "C" __global__ void __launch_bounds__(1024)                                                       \
        name(char *to, u64 to_pitch, const char *from, u64 from_pitch, u64 width, u64 rows)                  \
    {                                                                                                        \
        copy_units<unit>(to, to_pitch, from, from_pitch, width, rows);                                       \
    }

#if __CUDA_ARCH__ >= 900
#define PAIR __cluster_dims__(2, 1, 1)
#else
#define PAIR
#endif

// Counts a block whose copies have been made; `done` is 0 before and after.
__device__ void tell(u32 *done, u32 *flag, const u32 *epoch, u32 offset)
{
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    __threadfence_system();
    if (atomicAdd(done, 1u) + 1u < gridDim.x)
        return;
    *(volatile u32 *)done = 0u;
    __threadfence_system();
    release(flag, wanted(epoch, offset));
}

#define TELL(name, unit, cluster)                                                                            \
    extern "C" __global__ void __launch_bounds__(1024) cluster                                               \
        name(char *to, u64 to_pitch, const char *from, u64 from_pitch, u64 width, u64 rows, u32 *done,       \
             u32 *flag, const u32 *epoch, u32 offset)                                                        \
    {                                                                                                        \
        copy_units<unit>(to, to_pitch, from, from_pitch, width, rows);                                       \
        tell(done, flag, epoch, offset);                                                                     \
    }

COPY(copy16, uint4)
COPY(copy8, uint2)
COPY(copy4, u32)
COPY(copy2, unsigned short)
COPY(copy1, unsigned char)
TELL(copy16_tell, uint4, )
TELL(copy16_tell_pair, uint4, PAIR)
TELL(copy8_tell, uint2, )
TELL(copy8_tell_pair, uint2, PAIR)
TELL(copy4_tell, u32, )
TELL(copy4_tell_pair, u32, PAIR)
TELL(copy2_tell, unsigned short, )
TELL(copy2_tell_pair, unsigned short, PAIR)
TELL(copy1_tell, unsigned char, )
TELL(copy1_tell_pair, unsigned char, PAIR)
