// Enough of CUDA C++ to run a kernel on the processor: the threads of a block are fibres that change at
// barriers and, within a warp, at instructions of the whole warp (warps.hpp). Of wmma every thread of a
// warp makes the warp's whole matrix product. What real tensor cores ask of addresses and strides is
// checked, and shared memory that nobody has written is not a number.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

#define __global__
#define __device__
#define __launch_bounds__(n)

struct dim3 { unsigned x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;
static char *shared_memory;

struct __nv_bfloat16 {
    uint16_t bits = 0;
    __nv_bfloat16() = default;
    __nv_bfloat16(float x) {
        uint32_t u;
        std::memcpy(&u, &x, 4);
        bits = std::isnan(x) ? 0x7fc0 : uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    operator float() const {
        uint32_t u = uint32_t(bits) << 16;
        float x;
        std::memcpy(&x, &u, 4);
        return x;
    }
};

template <class T> static T min(T a, T b) { return b < a ? b : a; }
template <class T> static T max(T a, T b) { return a < b ? b : a; }
static float exp(float x) { return std::exp(x); }
static float log(float x) { return std::log(x); }
static float erf(float x) { return std::erf(x); }
static float floor(float x) { return std::floor(x); }
static float fabs(float x) { return std::fabs(x); }
static float fma(float a, float b, float c) { return std::fma(a, b, c); }

namespace fibres {
constexpr size_t stack_bytes = 1 << 18;
static ucontext_t home, *all;
static int here;
// What a fibre waits for; other numbers are instructions of a warp.
enum { done, barrier, first_of_warps };
static int *waits, *turns;
static void rest(int what) {
    waits[here] = what;
    swapcontext(&all[here], &home);
}
}
static void __syncthreads() { fibres::rest(fibres::barrier); }

namespace nvcuda::wmma {
namespace precision { struct tf32; }
// To eleven significant bits, halves away from zero.
static float __float_to_tf32(float x) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    if (!std::isnan(x) && !std::isinf(x)) u = (u + 0x1000) & ~0x1fffu;
    std::memcpy(&x, &u, 4);
    return x;
}
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major;
enum layout_t { mem_row_major, mem_col_major };
template <class L> constexpr bool turned = false;
template <> constexpr bool turned<col_major> = true;
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment { float x[16][16]; };
// Real tensor cores read only the upper bits of what nobody has rounded.
template <class T> static float factor(float x) { return x; }
template <> float factor<precision::tf32>(float x) {
    if (!std::isnan(x) && __float_to_tf32(x) != x) std::abort();
    return x;
}
// Which of a fragment's sides are the inner numbers.
template <class U> constexpr bool is_left = false;
template <> constexpr bool is_left<matrix_a> = true;
template <class P> static void aligned(P *p, unsigned stride, unsigned step) {
    if (reinterpret_cast<uintptr_t>(p) % 32 || stride % step) std::abort();
}
template <class U, int K, class T, class L, class V> static void fill_fragment(fragment<U, 16, 16, K, T, L> &f, V value) {
    for (auto &row : f.x) for (auto &x : row) x = value;
}
template <class U, int K, class T, class L, class V> static void load_matrix_sync(fragment<U, 16, 16, K, T, L> &f, const V *p, unsigned stride) {
    aligned(p, stride, 16 / sizeof(V));
    int rows = is_left<U> ? 16 : K, columns = is_left<U> ? K : 16;
    for (int i = 0; i < rows; i++) for (int j = 0; j < columns; j++)
        f.x[i][j] = factor<T>(float(turned<L> ? p[j * stride + i] : p[i * stride + j]));
}
template <int K, class T, class V> static void store_matrix_sync(V *p, const fragment<accumulator, 16, 16, K, T> &f, unsigned stride, layout_t layout) {
    aligned(p, stride, 16 / sizeof(V));
    for (int i = 0; i < 16; i++) for (int j = 0; j < 16; j++) p[layout == mem_row_major ? i * stride + j : j * stride + i] = f.x[i][j];
}
template <int K, class T, class L, class R, class S> static void mma_sync(fragment<accumulator, 16, 16, K, S> &d, const fragment<matrix_a, 16, 16, K, T, L> &a, const fragment<matrix_b, 16, 16, K, T, R> &b, const fragment<accumulator, 16, 16, K, S> &c) {
    fragment<accumulator, 16, 16, K, S> r;
    for (int i = 0; i < 16; i++) for (int j = 0; j < 16; j++) {
        float sum = c.x[i][j];
        for (int k = 0; k < K; k++) sum += a.x[i][k] * b.x[k][j];
        r.x[i][j] = sum;
    }
    d = r;
}
}

#include "warps.hpp"

// Runs the lanes of a warp until all of them wait at a barrier or have ended.
static void run_warp(int begin, int end, dim3 block) {
    using namespace fibres;
    do {
        for (here = begin; here < end; here++) {
            threadIdx = {unsigned(here) % block.x, unsigned(here) / block.x, 0};
            swapcontext(&home, &all[here]);
        }
        for (int t = begin; t < end; t++)
            if (waits[t] != waits[begin]) std::abort(); // lanes are at different instructions
    } while (waits[begin] >= first_of_warps);
}

// Runs all blocks one after the other; `body` calls the kernel.
static void run_blocks(void (*body)(), dim3 grid, dim3 block, size_t shared_bytes) {
    using namespace fibres;
    int threads = block.x * block.y;
    gridDim = grid, blockDim = block;
    char *stacks = static_cast<char *>(std::malloc(stack_bytes * threads));
    shared_memory = static_cast<char *>(std::aligned_alloc(128, (shared_bytes + 127) / 128 * 128));
    all = new ucontext_t[threads];
    waits = new int[threads];
    turns = new int[threads];
    for (unsigned y = 0; y < grid.y; y++) for (unsigned x = 0; x < grid.x; x++) {
        blockIdx = {x, y, 0};
        std::memset(shared_memory, 0xff, shared_bytes);
        for (int t = 0; t < threads; t++) {
            getcontext(&all[t]);
            all[t].uc_stack.ss_sp = stacks + stack_bytes * t;
            all[t].uc_stack.ss_size = stack_bytes;
            all[t].uc_link = &home;
            turns[t] = 0;
            makecontext(&all[t], reinterpret_cast<void (*)()>(+[](void (*f)()) { f(); waits[here] = done; }), 1, body);
        }
        do {
            for (int t = 0; t < threads; t += warps::lanes) run_warp(t, threads < t + warps::lanes ? threads : t + warps::lanes, block);
            for (int t = 0; t < threads; t++)
                if (waits[t] != waits[0]) std::abort(); // a thread left while others wait at a barrier
        } while (waits[0] == barrier);
    }
    delete[] all; delete[] waits; delete[] turns; std::free(stacks); std::free(shared_memory);
}
