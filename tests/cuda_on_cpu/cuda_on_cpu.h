// CUDA C++ for g++: what kernels without includes may use, executed on the CPU.
//
// Each CUDA thread is a fiber of the host thread that launched the kernel. Blocks run one after the other, and a thread runs until it
// waits or ends. A kernel that lacks a barrier gives wrong results under some order of the threads (the seed), one whose threads wait for
// each other in vain ends with an error. Several host threads may launch at the same time.
//
// Overloads of atomics are those of CUDA, so that what compiles here compiles there. Not supported: dynamic shared memory, grid
// synchronisation, inline PTX, streams within kernels.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "runtime.h"

#define __CUDA_ARCH__ 700
#define __global__
#define __device__
#define __host__
#define __constant__ const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)
#define __restrict__ __restrict
#if defined(__SANITIZE_ADDRESS__)
#define __shared__ static // of which accesses out of bounds are found; one launch at a time
#else
#define __shared__ static thread_local
#endif

#define threadIdx (cuda_on_cpu::current->index)
#define blockIdx (cuda_on_cpu::current->launch->block_index)
#define blockDim (cuda_on_cpu::current->launch->block)
#define gridDim (cuda_on_cpu::current->launch->grid)
static constexpr int warpSize = 32;

// Vector types

#define CUDA_ON_CPU_VECTORS(T, name)                                                           \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                         \
    struct alignas(sizeof(T) > 4 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; };              \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                 \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CUDA_ON_CPU_VECTORS(int, int)
CUDA_ON_CPU_VECTORS(unsigned, uint)
CUDA_ON_CPU_VECTORS(long long, longlong)
CUDA_ON_CPU_VECTORS(unsigned long long, ulonglong)
CUDA_ON_CPU_VECTORS(float, float)
CUDA_ON_CPU_VECTORS(double, double)
#undef CUDA_ON_CPU_VECTORS

// Waiting

inline void __syncthreads() { cuda_on_cpu::wait_for_block(0); }
inline int __syncthreads_count(int predicate) { return cuda_on_cpu::wait_for_block(predicate); }
inline int __syncthreads_or(int predicate) { return cuda_on_cpu::wait_for_block(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return cuda_on_cpu::wait_for_block(!predicate) == 0; }
inline void __syncwarp(unsigned mask = 0xffffffffu) { cuda_on_cpu::meet(cuda_on_cpu::Primitive::sync, mask, 0, 0); }
inline void __threadfence() { cuda_on_cpu::give_way(); }
inline void __threadfence_block() { cuda_on_cpu::give_way(); }
inline void __threadfence_system() { cuda_on_cpu::give_way(); }
inline void __nanosleep(unsigned) { cuda_on_cpu::sleep(); }
[[noreturn]] inline void __trap() { cuda_on_cpu::fail("__trap() was called"); }

// Votes and shuffles

inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return (unsigned)cuda_on_cpu::meet(cuda_on_cpu::Primitive::ballot, mask, predicate != 0, 0);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

namespace cuda_on_cpu {

template <class T>
inline T shuffle(unsigned mask, T value, int source) {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) >= 4 && sizeof(T) <= 8, "CUDA shuffles 4 or 8 bytes");
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = meet(Primitive::shuffle, mask, bits, (unsigned)source);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline int lane() { return (int)current->lane; }

} // namespace cuda_on_cpu

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    return cuda_on_cpu::shuffle(mask, value, (cuda_on_cpu::lane() & ~(width - 1)) | (source & (width - 1)));
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = cuda_on_cpu::lane(), source = lane - (int)delta;
    return cuda_on_cpu::shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = cuda_on_cpu::lane(), source = lane + (int)delta;
    return cuda_on_cpu::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    int lane = cuda_on_cpu::lane(), source = lane ^ bits;
    return cuda_on_cpu::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source);
}

// Integers

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; bit++) reversed |= (x >> bit & 1u) << (31 - bit);
    return reversed;
}

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    return (T)a < (T)b ? (T)b : (T)a;
}

// Loads and stores with cache hints

template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T __ldcg(const T* p) { return *p; }
template <class T> inline T __ldca(const T* p) { return *p; }
template <class T> inline T __ldcs(const T* p) { return *p; }
template <class T> inline T __ldlu(const T* p) { return *p; }
template <class T> inline T __ldcv(const T* p) { return *(const volatile T*)p; }
template <class T> inline void __stcg(T* p, T value) { *p = value; }
template <class T> inline void __stcs(T* p, T value) { *p = value; }
template <class T> inline void __stwt(T* p, T value) { *p = value; }

// Bits of doubles

inline long long __double_as_longlong(double x) {
    long long bits;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
}
inline double __longlong_as_double(long long bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// Atomics: between host threads too. With a seed, other threads may run before one.

namespace cuda_on_cpu {

inline void before_atomic() {
    if (__builtin_expect(--current->launch->until_switch == 0, 0)) give_way();
}

template <class T, class Change>
inline T change(T* p, Change new_value) {
    before_atomic();
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    static_assert(sizeof(T) == sizeof(Bits));
    Bits* at = reinterpret_cast<Bits*>(p);
    Bits old = __atomic_load_n(at, __ATOMIC_RELAXED);
    for (;;) {
        T value;
        std::memcpy(&value, &old, sizeof old);
        T wanted = new_value(value);
        Bits bits;
        std::memcpy(&bits, &wanted, sizeof bits);
        if (__atomic_compare_exchange_n(at, &old, bits, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return value;
    }
}

} // namespace cuda_on_cpu

#define CUDA_ON_CPU_FETCH(name, builtin, T)                   \
    inline T name(T* p, T value) {                            \
        cuda_on_cpu::before_atomic();                         \
        return builtin(p, value, __ATOMIC_RELAXED);           \
    }
#define CUDA_ON_CPU_CHANGE(name, T, expression)                                            \
    inline T name(T* p, T value) {                                                         \
        return cuda_on_cpu::change(p, [value](T old) { return (T)(expression); });         \
    }
#define CUDA_ON_CPU_CAS(T)                                                                                      \
    inline T atomicCAS(T* p, T expected, T value) {                                                             \
        cuda_on_cpu::before_atomic();                                                                           \
        __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);            \
        return expected;                                                                                        \
    }
CUDA_ON_CPU_FETCH(atomicAdd, __atomic_fetch_add, int)
CUDA_ON_CPU_FETCH(atomicAdd, __atomic_fetch_add, unsigned)
CUDA_ON_CPU_FETCH(atomicAdd, __atomic_fetch_add, unsigned long long)
CUDA_ON_CPU_CHANGE(atomicAdd, float, old + value)
CUDA_ON_CPU_CHANGE(atomicAdd, double, old + value)
CUDA_ON_CPU_FETCH(atomicSub, __atomic_fetch_sub, int)
CUDA_ON_CPU_FETCH(atomicSub, __atomic_fetch_sub, unsigned)
CUDA_ON_CPU_FETCH(atomicOr, __atomic_fetch_or, int)
CUDA_ON_CPU_FETCH(atomicOr, __atomic_fetch_or, unsigned)
CUDA_ON_CPU_FETCH(atomicOr, __atomic_fetch_or, unsigned long long)
CUDA_ON_CPU_FETCH(atomicAnd, __atomic_fetch_and, int)
CUDA_ON_CPU_FETCH(atomicAnd, __atomic_fetch_and, unsigned)
CUDA_ON_CPU_FETCH(atomicAnd, __atomic_fetch_and, unsigned long long)
CUDA_ON_CPU_FETCH(atomicXor, __atomic_fetch_xor, int)
CUDA_ON_CPU_FETCH(atomicXor, __atomic_fetch_xor, unsigned)
CUDA_ON_CPU_FETCH(atomicXor, __atomic_fetch_xor, unsigned long long)
CUDA_ON_CPU_FETCH(atomicExch, __atomic_exchange_n, int)
CUDA_ON_CPU_FETCH(atomicExch, __atomic_exchange_n, unsigned)
CUDA_ON_CPU_FETCH(atomicExch, __atomic_exchange_n, unsigned long long)
CUDA_ON_CPU_CHANGE(atomicExch, float, value + 0 * old)
CUDA_ON_CPU_CHANGE(atomicMin, int, value < old ? value : old)
CUDA_ON_CPU_CHANGE(atomicMin, unsigned, value < old ? value : old)
CUDA_ON_CPU_CHANGE(atomicMin, long long, value < old ? value : old)
CUDA_ON_CPU_CHANGE(atomicMin, unsigned long long, value < old ? value : old)
CUDA_ON_CPU_CHANGE(atomicMax, int, value > old ? value : old)
CUDA_ON_CPU_CHANGE(atomicMax, unsigned, value > old ? value : old)
CUDA_ON_CPU_CHANGE(atomicMax, long long, value > old ? value : old)
CUDA_ON_CPU_CHANGE(atomicMax, unsigned long long, value > old ? value : old)
CUDA_ON_CPU_CAS(int)
CUDA_ON_CPU_CAS(unsigned)
CUDA_ON_CPU_CAS(unsigned long long)
#undef CUDA_ON_CPU_FETCH
#undef CUDA_ON_CPU_CHANGE
#undef CUDA_ON_CPU_CAS

// A module: the source in a namespace of its own, so that kernels may be named like functions of the C library, then, for each kernel,
// CUDA_ON_CPU_ENTRY.

namespace cuda_on_cpu {

template <class T>
constexpr char kind() {
    static_assert(std::is_pointer_v<T> || std::is_arithmetic_v<T>, "kernels take pointers and numbers");
    return std::is_pointer_v<T> ? 'p' : std::is_floating_point_v<T> ? 'f' : 'i';
}

// A kernel as module.py sees it.
struct Kernel {
    const char *kinds, *sizes; // a character for each parameter: p (pointer), i or f, and a digit
    int (*launch)(const unsigned* grid, const unsigned* block, void** arguments, std::uint64_t seed, char* message,
                  std::size_t message_bytes);
};

// Shared memory is thread-local, and this is where it is.
static thread_local char shared_memory_mark;

template <auto kernel>
struct Entry;

template <class... Parameters, void (*kernel)(Parameters...)>
struct Entry<kernel> {
    static constexpr char kinds[] = {kind<Parameters>()..., (char)0};
    static constexpr char sizes[] = {(char)('0' + sizeof(Parameters))..., (char)0};

    template <std::size_t... k>
    static void call(void** arguments, std::index_sequence<k...>) {
        kernel(*static_cast<std::remove_cv_t<Parameters>*>(arguments[k])...);
    }
    static void body(void* arguments) { call(static_cast<void**>(arguments), std::index_sequence_for<Parameters...>{}); }

    static int launch(const unsigned* grid, const unsigned* block, void** arguments, std::uint64_t seed, char* message,
                      std::size_t message_bytes) {
        return run({&body, arguments, grid, block, seed, &shared_memory_mark, message, message_bytes});
    }
};

} // namespace cuda_on_cpu

#define CUDA_ON_CPU_ENTRY(number, ...)                                                     \
    extern "C" CUDA_ON_CPU_API const cuda_on_cpu::Kernel kernel_##number;                  \
    const cuda_on_cpu::Kernel kernel_##number = [] {                                       \
        using Entry = cuda_on_cpu::Entry<(&__VA_ARGS__)>;                                  \
        return cuda_on_cpu::Kernel{Entry::kinds, Entry::sizes, &Entry::launch};            \
    }();
