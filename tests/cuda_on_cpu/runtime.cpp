// Fibers for CUDA threads, and who runs next.
//
// A host thread that launches kernels has a Scheduler. It runs one block at a time. A thread of the block starts on a fiber, a stack of its
// own; where it ends without having waited, the same fiber takes the next thread, so a kernel that never waits needs one fiber and no
// switch.
// Where it must wait, the next thread that can run gets the processor: there is no other switch, and whoever comes last goes on at once.
//
// Faults (a bad address, a division by zero) end the launch, not the process: the signal's handler resumes the host thread where it
// started the block. Under the address sanitizer they are left to its report.
#include "runtime.h"

#include "fiber.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <link.h>
#include <memory>
#include <mutex>
#include <numeric>
#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace cuda_on_cpu {

// Here too, so that loading this makes room for it at once: were it first used in another form, modules that use it in this one could not be loaded.
thread_local Thread* current __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr unsigned max_threads = 1024; // of a block
constexpr unsigned char any_content = 0xa5;
constexpr std::uint64_t undefined_value = 0xa5a5a5a5a5a5a5a5;
constexpr unsigned switch_once_in = 32; // atomics, at most, between two that let others go first

void fiber_main();

} // namespace

struct Warp {
    unsigned alive, arrived;
    Primitive primitive[32];
    unsigned mask[32], source[32];
    std::uint64_t value[32], result[32];
};

namespace {

class Scheduler : public Launch {
  public:
    Scheduler();
    ~Scheduler();
    int run(const Request& request);
    std::uint64_t meet(Thread& self, Primitive primitive, unsigned mask, std::uint64_t value, unsigned source);
    int wait_for_block(Thread& self, int predicate);
    void give_way(Thread& self);
    void sleep(Thread& self);
    [[noreturn]] void fail(const char* message);
    void take_threads(Fiber& fiber);
    void note_failure(const char* message);

    Context host; // the host thread, where it started the block

  private:
    void set_up(const Request& request);
    void forget_shared_memory(void* shared);
    void run_block(unsigned long long number);
    void finish(Thread& self);
    bool is_complete(const Warp& warp, unsigned mask) const { return (mask & warp.alive & ~warp.arrived) == 0; }
    void complete(Warp& warp, unsigned first_number, unsigned mask, const Thread* last);
    void release_block(const Thread* last);
    void suspend(Thread& self);
    [[noreturn]] void deadlock();
    void make_ready(Thread& thread) { ready[tail++ % max_threads] = &thread; }
    void make_next(Thread& thread) { ready[--head % max_threads] = &thread; }
    Thread* take();
    Fiber* idle_fiber();
    unsigned random(unsigned below);
    void draw_switch() { until_switch = request.seed ? 1 + random(switch_once_in) : ~0u; }

    Request request{};
    unsigned num_threads = 0, num_done = 0, num_waiting = 0;
    int predicates = 0, predicate_result = 0;
    bool failed = false;
    std::uint64_t state = 0; // of the random numbers
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    Thread* ready[max_threads]; // a ring: whoever can run and does not
    unsigned head = 0, tail = 0;
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<Fiber*> idle;
    std::unique_ptr<char[]> signal_stack;
    std::vector<std::pair<void*, std::pair<void*, std::size_t>>> shared_memory;
};

thread_local std::unique_ptr<Scheduler> own_scheduler;

Scheduler& scheduler_of(Thread& thread) { return static_cast<Scheduler&>(*thread.launch); }

void fiber_main() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    scheduler_of(*current).take_threads(*current->fiber);
}

// Faults

constexpr int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction previous_actions[65];

// Within a kernel: go on in the host thread, as if the fiber had switched to it.
void on_fault(int signal, siginfo_t* info, void* context) {
    if (!current) {
        sigaction(signal, &previous_actions[signal], nullptr); // which gets the fault when it repeats
        return;
    }
    Scheduler& scheduler = scheduler_of(*current);
    const char* what = signal == SIGFPE ? "division by zero" : signal == SIGILL ? "illegal instruction" : "bad address or stack overflow";
    char text[128];
    std::snprintf(text, sizeof text, "fault: %s (signal %d, address %p)", what, signal, info->si_addr);
    scheduler.note_failure(text);
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    registers[REG_RSP] = reinterpret_cast<greg_t>(scheduler.host.stack_pointer);
    registers[REG_RIP] = reinterpret_cast<greg_t>(cuda_on_cpu_resume);
}

void handle_faults() {
#if !defined(__SANITIZE_ADDRESS__)
    static std::once_flag once;
    std::call_once(once, [] {
        for (int signal : fault_signals) {
            struct sigaction action {};
            action.sa_sigaction = on_fault;
            action.sa_flags = SA_SIGINFO | SA_ONSTACK;
            sigaction(signal, &action, &previous_actions[signal]);
        }
    });
#endif
}

// Order

unsigned Scheduler::random(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 32) * below >> 32);
}

Thread* Scheduler::take() {
    if (head == tail) return nullptr;
    if (request.seed) std::swap(ready[head % max_threads], ready[(head + random(tail - head)) % max_threads]);
    return ready[head++ % max_threads];
}

Fiber* Scheduler::idle_fiber() {
    if (idle.empty()) {
        auto fiber = std::make_unique<Fiber>(fibers.size(), &fiber_main);
        if (!fiber->memory) fail("there is no memory for the stack of another thread");
        fibers.push_back(std::move(fiber));
        return fibers.back().get();
    }
    Fiber* fiber = idle.back();
    idle.pop_back();
    return fiber;
}

// The calling thread waits, or lets others go first; return when another thread has resumed it.
void Scheduler::suspend(Thread& self) {
    Thread* next = take();
    if (!next) deadlock();
    if (next == &self) return;
    if (!next->fiber) next->fiber = idle_fiber();
    current = next;
    switch_context(self.fiber->context, next->fiber->context);
}

// What a fiber does: run threads from their start, one after the other, until one that has a fiber is next.
void Scheduler::take_threads(Fiber& fiber) {
    for (;;) {
        request.body(request.argument);
        finish(*current);
        Thread* next = take();
        if (!next && num_done < num_threads) deadlock();
        if (next && !next->fiber) {
            next->fiber = &fiber;
            current = next;
            continue;
        }
        idle.push_back(&fiber);
        current = next;
        switch_context(fiber.context, next ? next->fiber->context : host);
    }
}

void Scheduler::finish(Thread& self) {
    num_done++;
    Warp& warp = *self.warp;
    warp.alive &= ~(1u << self.lane);
    for (unsigned rest = warp.arrived; rest;) { // do others wait for this thread only?
        unsigned mask = warp.mask[__builtin_ctz(rest)];
        if (is_complete(warp, mask)) complete(warp, self.number - self.lane, mask, nullptr);
        rest &= ~mask;
    }
    if (num_waiting && num_waiting + num_done == num_threads) release_block(nullptr);
}

void Scheduler::give_way(Thread& self) {
    draw_switch();
    if (!request.seed) return;
    make_ready(self);
    suspend(self);
}

void Scheduler::sleep(Thread& self) {
    make_ready(self);
    suspend(self);
}

// Warps and blocks

std::uint64_t Scheduler::meet(Thread& self, Primitive primitive, unsigned mask, std::uint64_t value, unsigned source) {
    Warp& warp = *self.warp;
    unsigned lane = self.lane;
    if (!(mask >> lane & 1u)) fail("a lane calls a warp primitive with a mask that does not name it");
    warp.primitive[lane] = primitive;
    warp.mask[lane] = mask;
    warp.value[lane] = value;
    warp.source[lane] = source;
    warp.arrived |= 1u << lane;
    if (is_complete(warp, mask)) complete(warp, self.number - lane, mask, &self);
    else suspend(self);
    return warp.result[lane];
}

// All lanes of `mask` that have not ended have arrived: give each its result and let it go on; `last` runs already.
void Scheduler::complete(Warp& warp, unsigned first_number, unsigned mask, const Thread* last) {
    unsigned group = mask & warp.arrived, ballot = 0;
    Primitive primitive = warp.primitive[__builtin_ctz(group)];
    for (unsigned rest = group; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        if (warp.mask[lane] != mask || warp.primitive[lane] != primitive)
            fail("lanes of a warp meet in different primitives, or with different masks");
        ballot |= (unsigned)(warp.value[lane] != 0) << lane;
    }
    warp.arrived &= ~group;
    for (unsigned rest = group; rest;) { // the lowest lane runs next, before other warps: their stacks would take its place in the cache
        int lane = 31 - __builtin_clz(rest);
        rest &= ~(1u << lane);
        unsigned source = warp.source[lane];
        if (primitive == Primitive::ballot) warp.result[lane] = ballot;
        else if (primitive == Primitive::shuffle) warp.result[lane] = group >> source & 1u ? warp.value[source] : undefined_value;
        Thread& thread = threads[first_number + lane];
        if (&thread != last) make_next(thread);
    }
}

int Scheduler::wait_for_block(Thread& self, int predicate) {
    predicates += predicate != 0;
    if (++num_waiting + num_done == num_threads) {
        release_block(&self);
    } else {
        self.at_barrier = true;
        suspend(self);
    }
    return predicate_result;
}

void Scheduler::release_block(const Thread* last) {
    predicate_result = std::exchange(predicates, 0);
    num_waiting = 0;
    for (Thread& thread : threads) {
        if (&thread == last || !thread.at_barrier) continue;
        thread.at_barrier = false;
        make_ready(thread);
    }
}

// Errors

void Scheduler::note_failure(const char* message) {
    failed = true;
    Index b = block_index, t = current->index;
    std::snprintf(request.message, request.message_bytes, "block (%u, %u, %u), thread (%u, %u, %u): %s", b.x, b.y, b.z, t.x, t.y, t.z,
                  message);
}

void Scheduler::fail(const char* message) {
    note_failure(message);
    Context abandoned;
    switch_context(abandoned, host);
    __builtin_unreachable();
}

void Scheduler::deadlock() {
    char text[160];
    std::snprintf(text, sizeof text,
                  "deadlock: %u of %u threads have ended, %u wait at a block barrier, %u at a warp primitive, for threads that never come",
                  num_done, num_threads, num_waiting, num_threads - num_done - num_waiting);
    fail(text);
}

// Launches

Scheduler::Scheduler() {
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    void* bottom;
    pthread_attr_getstack(&attributes, &bottom, &host.size);
    host.bottom = bottom;
    pthread_attr_destroy(&attributes);
#if !defined(__SANITIZE_ADDRESS__)
    stack_t stack;
    sigaltstack(nullptr, &stack);
    if (stack.ss_flags & SS_DISABLE) {
        stack = {};
        stack.ss_size = 64 << 10;
        signal_stack = std::make_unique<char[]>(stack.ss_size);
        stack.ss_sp = signal_stack.get();
        sigaltstack(&stack, nullptr);
    }
#endif
}

Scheduler::~Scheduler() {
    if (!signal_stack) return;
    stack_t stack{};
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
}

void Scheduler::set_up(const Request& wanted) {
    request = wanted;
    grid = {wanted.grid[0], wanted.grid[1], wanted.grid[2]};
    block = {wanted.block[0], wanted.block[1], wanted.block[2]};
    num_threads = block.x * block.y * block.z;
    state = wanted.seed * 0x9e3779b97f4a7c15u;
    failed = false;
    threads.resize(num_threads);
    warps.resize((num_threads + 31) / 32);
    for (unsigned i = 0; i < num_threads; i++)
        threads[i] = {{i % block.x, i / block.x % block.y, i / (block.x * block.y)}, i, i % 32, this, &warps[i / 32], nullptr, false};
    draw_switch();
}

// Shared memory of the first block must not happen to be zeros.
void Scheduler::forget_shared_memory(void* shared) {
    struct Search {
        char* mark;
        std::pair<void*, std::size_t> found;
    } search{static_cast<char*>(shared), {nullptr, 0}};
    for (auto& [mark, memory] : shared_memory)
        if (mark == shared) search.found = memory;
    if (!search.found.first) {
        dl_iterate_phdr(
            [](dl_phdr_info* info, std::size_t, void* data) {
                auto& search = *static_cast<Search*>(data);
                for (int k = 0; k < info->dlpi_phnum; k++) {
                    auto& segment = info->dlpi_phdr[k];
                    char* begin = static_cast<char*>(info->dlpi_tls_data);
                    if (segment.p_type != PT_TLS || !begin || search.mark < begin || search.mark >= begin + segment.p_memsz) continue;
                    search.found = {begin, segment.p_memsz};
                    return 1;
                }
                return 0;
            },
            &search);
        shared_memory.push_back({shared, search.found});
    }
    if (search.found.first) std::memset(search.found.first, any_content, search.found.second);
}

void Scheduler::run_block(unsigned long long number) {
    block_index = {(unsigned)(number % grid.x), (unsigned)(number / grid.x % grid.y), (unsigned)(number / grid.x / grid.y)};
    for (std::size_t w = 0; w < warps.size(); w++) {
        unsigned rest = num_threads - 32 * w;
        warps[w].alive = rest >= 32 ? ~0u : (1u << rest) - 1u;
        warps[w].arrived = 0;
    }
    head = tail = num_done = num_waiting = 0;
    predicates = 0;
    for (Thread& thread : threads) {
        thread.fiber = nullptr;
        make_ready(thread);
    }
    Thread* first = take();
    first->fiber = idle_fiber();
    current = first;
    switch_context(host, first->fiber->context);
    current = nullptr;
}

int Scheduler::run(const Request& wanted) {
    set_up(wanted);
#if !defined(__SANITIZE_ADDRESS__)
    forget_shared_memory(wanted.shared);
#endif
    unsigned long long num_blocks = (unsigned long long)grid.x * grid.y * grid.z, step = 1, start = 0;
    if (request.seed && num_blocks > 1) { // a permutation: multiples of a number that has no factor in common with the number of blocks
        start = random(~0u) % num_blocks;
        do step = 1 + random(~0u) % num_blocks;
        while (std::gcd(step, num_blocks) != 1);
    }
    for (unsigned long long k = 0; k < num_blocks && !failed; k++)
        run_block((unsigned long long)(((__uint128_t)k * step + start) % num_blocks));
    if (failed) { // fibers are left in the middle of their threads
        idle.clear();
        fibers.clear();
    }
    return failed;
}

} // namespace

std::uint64_t meet(Primitive primitive, unsigned mask, std::uint64_t value, unsigned source) {
    return scheduler_of(*current).meet(*current, primitive, mask, value, source);
}

int wait_for_block(int predicate) { return scheduler_of(*current).wait_for_block(*current, predicate); }

void give_way() { scheduler_of(*current).give_way(*current); }

void sleep() { scheduler_of(*current).sleep(*current); }

void fail(const char* message) { scheduler_of(*current).fail(message); }

int run(const Request& request) {
#if defined(__SANITIZE_ADDRESS__)
    static std::mutex one_at_a_time;
    std::lock_guard guard(one_at_a_time);
#endif
    handle_faults();
    if (!own_scheduler) own_scheduler = std::make_unique<Scheduler>();
    return own_scheduler->run(request);
}

} // namespace cuda_on_cpu
