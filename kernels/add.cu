// Adds up to 16 matrices elementwise: fp32 sums in the order of the inputs, rounded once.
//
// The output may be one of the inputs. `_wide` variants work on 16 bytes at a time: addresses and
// leading dimensions must be multiples of 16 bytes. The others work element by element.

#include "number.cuh"

struct Inputs {
    const void *start[16];
    u64 ld[16];
};

template <typename T, int width>
__device__ void add_packs(const Inputs &inputs, u64 count, void *out, u64 out_ld, u64 rows, u64 cols)
{
    typedef typename T::Bits Bits;
    typedef Pack<Bits, width> Vector;
    const u64 packs = cols / width;
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const u64 step = (u64)gridDim.x * blockDim.x;
    if (packs > 0) {
        const u64 rows_step = step / packs, packs_step = step % packs;
        u64 row = first / packs, pack = first % packs;
        while (row < rows) {
            float sum[width];
#pragma unroll
            for (int e = 0; e < width; e++)
                sum[e] = 0.0f;
#pragma unroll 4
            for (u64 i = 0; i < count; i++) {
                const Bits *line = (const Bits *)inputs.start[i] + row * inputs.ld[i];
                const Vector value = *(const Vector *)(line + pack * width);
#pragma unroll
                for (int e = 0; e < width; e++)
                    sum[e] += T::get(value.at[e]);
            }
            Vector result;
#pragma unroll
            for (int e = 0; e < width; e++)
                result.at[e] = T::put(sum[e]);
            *(Vector *)((Bits *)out + row * out_ld + pack * width) = result;
            row += rows_step;
            pack += packs_step;
            if (pack >= packs) {
                pack -= packs;
                row += 1;
            }
        }
    }
    const u64 done = packs * width, left = cols - done;
    if (left > 0)
        for (u64 i = first; i < rows * left; i += step) {
            const u64 row = i / left, col = done + i % left;
            float sum = 0.0f;
            for (u64 j = 0; j < count; j++)
                sum += T::get(((const Bits *)inputs.start[j])[row * inputs.ld[j] + col]);
            ((Bits *)out)[row * out_ld + col] = T::put(sum);
        }
}

#define ADD(name, type, width)                                                                               \
    extern "C" __global__ void __launch_bounds__(512)                                                        \
        name(const __grid_constant__ Inputs inputs, u64 count, void *out, u64 out_ld, u64 rows, u64 cols)    \
    {                                                                                                        \
        add_packs<type, width>(inputs, count, out, out_ld, rows, cols);                                      \
    }

ADD(add_bf16_wide, Bf16, 8)
ADD(add_fp16_wide, Fp16, 8)
ADD(add_fp32_wide, Fp32, 4)
ADD(add_bf16, Bf16, 1)
ADD(add_fp16, Fp16, 1)
ADD(add_fp32, Fp32, 1)
