// Element types, each with a vector of 16 bytes. Sums are in fp32, rounding is to nearest even.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct Bf16 {
    typedef u16 Bits;
    static __device__ float get(Bits bits) { return __uint_as_float((u32)bits << 16); }
    static __device__ Bits put(float value)
    {
        Bits bits;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        return bits;
    }
};

struct Fp16 {
    typedef u16 Bits;
    static __device__ float get(Bits bits)
    {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
    static __device__ Bits put(float value)
    {
        Bits bits;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        return bits;
    }
};

struct Fp32 {
    typedef u32 Bits;
    static __device__ float get(Bits bits) { return __uint_as_float(bits); }
    static __device__ Bits put(float value) { return __float_as_uint(value); }
};

// `count` elements side by side, read and written at once.
template <typename Bits, int count>
struct alignas(sizeof(Bits) * count) Pack {
    Bits at[count];
};
