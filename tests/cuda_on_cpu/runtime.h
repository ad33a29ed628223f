// What kernels on the CPU need of the runtime (runtime.cpp): the current thread, and ways to wait for others.
#pragma once

#include <cstddef>
#include <cstdint>

#define CUDA_ON_CPU_API __attribute__((visibility("default")))

namespace cuda_on_cpu {

struct Index {
    unsigned x, y, z;
};

// One launch, by one host thread: blocks run one after the other.
struct Launch {
    Index grid, block;     // sizes
    Index block_index;     // of the block that runs
    unsigned until_switch; // atomics up to the next one that lets other threads go first
};

struct Fiber;
struct Warp;

// A CUDA thread. It gets a fiber when it starts, and keeps it until it ends.
struct Thread {
    Index index;
    unsigned number, lane;
    Launch* launch;
    Warp* warp;
    Fiber* fiber;
    bool at_barrier;
};

// The CUDA thread that the calling host thread runs; null outside of kernels. It never changes under a running CUDA thread.
extern CUDA_ON_CPU_API thread_local Thread* current __attribute__((tls_model("initial-exec")));

enum class Primitive : unsigned char { sync, shuffle, ballot };

// Wait for the lanes of `mask`. A shuffle returns the value of lane `source`, a ballot the lanes whose value is not 0.
CUDA_ON_CPU_API std::uint64_t meet(Primitive primitive, unsigned mask, std::uint64_t value, unsigned source);

// Wait for all threads of the block; return how many came with a predicate that is not 0.
CUDA_ON_CPU_API int wait_for_block(int predicate);

// Let another thread that can run go first.
CUDA_ON_CPU_API void give_way();

// The same in every order of threads: of one that waits for what another one writes, none would ever come.
CUDA_ON_CPU_API void sleep();

// End the launch with an error.
[[noreturn]] CUDA_ON_CPU_API void fail(const char* message);

struct Request {
    void (*body)(void* argument); // the kernel, called once by each CUDA thread
    void* argument;
    const unsigned *grid, *block; // three sizes each
    std::uint64_t seed;           // 0: threads and blocks in order; else an order of its own for each seed
    void* shared;                 // a thread-local variable of the module: all of them are shared memory, and get any content
    char* message;                // room for the error
    std::size_t message_bytes;
};

// Run all blocks; 0, or 1 with a message.
CUDA_ON_CPU_API int run(const Request& request);

} // namespace cuda_on_cpu
