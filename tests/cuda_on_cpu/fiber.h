// Fibers: stacks of their own, between which a host thread switches.
//
// A switch saves the registers that a function must preserve, and is told to the address sanitizer, which keeps track of stacks.
#pragma once

#include <cstddef>
#include <mutex>
#include <sys/mman.h>
#include <vector>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__) || !defined(__linux__)
#error "CUDA on the CPU is written for Linux on x86-64"
#endif

// Save the callee's registers and the stack pointer in *from, and resume what was saved as `to`.
extern "C" void cuda_on_cpu_switch(void** from, void* to);
extern "C" char cuda_on_cpu_resume[];
asm(R"(
.text
.p2align 4
.globl cuda_on_cpu_switch
.hidden cuda_on_cpu_switch
.type cuda_on_cpu_switch,@function
cuda_on_cpu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
.globl cuda_on_cpu_resume
.hidden cuda_on_cpu_resume
cuda_on_cpu_resume:
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmp *%rcx
.size cuda_on_cpu_switch,.-cuda_on_cpu_switch
)");

namespace cuda_on_cpu {

constexpr std::size_t stack_bytes = 128 << 10; // of a fiber
constexpr std::size_t guard_bytes = 4096;      // below a stack, where nothing may be touched

// Where something that does not run will go on.
struct Context {
    void* stack_pointer = nullptr;
    const void* bottom = nullptr;
    std::size_t size = 0;
    void* fake_stack = nullptr;
};

inline void switch_context(Context& from, Context& to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
#endif
    cuda_on_cpu_switch(&from.stack_pointer, to.stack_pointer);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// The memory of stacks. That of fibers that are gone is kept for the next: threads that launch a few kernels and end are many, and to map
// and unmap hundreds of stacks costs more than the kernels.
class Stacks {
  public:
    static char* take() {
        {
            std::lock_guard guard(mutex());
            if (!idle().empty()) {
                char* memory = idle().back();
                idle().pop_back();
                return memory;
            }
        }
        void* pages = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED) return nullptr;
        mprotect(pages, guard_bytes, PROT_NONE);
        return static_cast<char*>(pages);
    }
    static void give_back(char* memory) {
#if defined(__SANITIZE_ADDRESS__)
        __asan_unpoison_memory_region(memory + guard_bytes, stack_bytes);
#endif
        std::lock_guard guard(mutex());
        idle().push_back(memory);
    }

  private: // never destroyed: threads may end after main
    static std::mutex& mutex() {
        static auto* one = new std::mutex;
        return *one;
    }
    static std::vector<char*>& idle() {
        static auto* all = new std::vector<char*>;
        return *all;
    }
};

// A stack on which `entry` starts when it is first switched to.
struct Fiber {
    Context context;
    char* memory = nullptr;

    // Stacks begin at different places in their pages: they would all compete for the same few lines of the cache.
    Fiber(std::size_t number, void (*entry)()) {
        memory = Stacks::take();
        if (!memory) return;
        context.bottom = memory + guard_bytes;
        context.size = stack_bytes;
        void** top = reinterpret_cast<void**>(memory + guard_bytes + stack_bytes - number * 320 % 4096);
        *--top = nullptr; // the stack is aligned as after a call
        *--top = reinterpret_cast<void*>(entry);
        for (int k = 0; k < 6; k++) *--top = nullptr;
        context.stack_pointer = top;
    }
    Fiber(const Fiber&) = delete;
    ~Fiber() {
        if (memory) Stacks::give_back(memory);
    }
};

} // namespace cuda_on_cpu
