// Random matrices that the host can recompute element by element, and their comparison.

#include "number.cuh"

// Mixes the seed and the place of an element; the host has the same function.
__device__ u64 mix(u64 seed, u64 row, u64 col)
{
    u64 x = seed + row * 0x9E3779B97F4A7C15ull + col * 0xD1B54A32D192ED03ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

// Nearly normal, mean 0: the sum of four 16-bit numbers, which is exact in fp32.
__device__ float sample(u64 bits)
{
    const int sum = (int)(bits & 0xFFFF) + (int)(bits >> 16 & 0xFFFF) + (int)(bits >> 32 & 0xFFFF) +
                    (int)(bits >> 48);
    return (float)(sum - 131070) * (1.0f / 32768.0f);
}

template <typename T>
__device__ void fill(void *out, u64 ld, u64 rows, u64 cols, u64 seed, u64 row0, u64 col0)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += step) {
        const u64 row = i / cols, col = i % cols;
        ((typename T::Bits *)out)[row * ld + col] = T::put(sample(mix(seed, row0 + row, col0 + col)));
    }
}

#define FILL(name, type)                                                                                     \
    extern "C" __global__ void __launch_bounds__(512)                                                        \
        name(void *out, u64 ld, u64 rows, u64 cols, u64 seed, u64 row0, u64 col0)                            \
    {                                                                                                        \
        fill<type>(out, ld, rows, cols, seed, row0, col0);                                                   \
    }

FILL(fill_bf16, Bf16)
FILL(fill_fp16, Fp16)
FILL(fill_fp32, Fp32)

// What one block found: the host adds these up in block order, so that results repeat exactly.
struct Difference {
    double squared;   // sum of (x - y)^2
    double reference; // sum of y^2
    double worst;     // greatest |x - y|; infinite where either is no number
    u64 place;        // row * cols + col of the worst, the first of equals
};

__device__ void keep(Difference &mine, double worst, u64 place)
{
    if (worst > mine.worst || (worst == mine.worst && place < mine.place)) {
        mine.worst = worst;
        mine.place = place;
    }
}

template <typename X, typename Y>
__device__ void compare(const void *x, u64 x_ld, const void *y, u64 y_ld, u64 rows, u64 cols, Difference *out)
{
    __shared__ Difference warps[16];
    Difference mine = {0.0, 0.0, -1.0, ~0ull};
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += step) {
        const u64 row = i / cols, col = i % cols;
        const double a = X::get(((const typename X::Bits *)x)[row * x_ld + col]);
        const double b = Y::get(((const typename Y::Bits *)y)[row * y_ld + col]);
        const double d = a - b;
        mine.squared += d * d;
        mine.reference += b * b;
        keep(mine, d == d ? fabs(d) : __longlong_as_double(0x7FF0000000000000ll), i);
    }
    for (int lane = 16; lane > 0; lane /= 2) {
        mine.squared += __shfl_down_sync(~0u, mine.squared, lane);
        mine.reference += __shfl_down_sync(~0u, mine.reference, lane);
        const double worst = __shfl_down_sync(~0u, mine.worst, lane);
        const u64 place = __shfl_down_sync(~0u, mine.place, lane);
        keep(mine, worst, place);
    }
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (u32 warp = 1; warp < blockDim.x / 32; warp++) {
            mine.squared += warps[warp].squared;
            mine.reference += warps[warp].reference;
            keep(mine, warps[warp].worst, warps[warp].place);
        }
        out[blockIdx.x] = mine;
    }
}

#define COMPARE(name, first, second)                                                                         \
    extern "C" __global__ void __launch_bounds__(512)                                                        \
        name(const void *x, u64 x_ld, const void *y, u64 y_ld, u64 rows, u64 cols, Difference *out)          \
    {                                                                                                        \
        compare<first, second>(x, x_ld, y, y_ld, rows, cols, out);                                           \
    }

COMPARE(compare_bf16, Bf16, Bf16)
COMPARE(compare_fp16, Fp16, Fp16)
COMPARE(compare_fp32, Fp32, Fp32)
