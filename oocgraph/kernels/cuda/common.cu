// What all kernels share: types, counters, row lookup, sums over a warp and a block.
//
// The files of this folder are joined to one source (oocgraph/kernels/gpu.py), this one first; they include nothing. Bitmaps are those of
// oocgraph/kernels/cpu.py, seen as 32-bit words: vertex v is bit v & 31 of word v >> 5. Blocks have BLOCK threads in one dimension, work is
// taken by grid stride, and warp primitives are reached by all 32 lanes.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define BLOCK 256
#define WARPS (BLOCK / 32)
#define FULL 0xffffffffu

// Slots of `counters`: what kernels tell the host, and each other.
enum Counter {
  FRONTIER_VERTICES,
  FRONTIER_EDGES,       // out-degrees: what a push would look at
  FRONTIER_PULL_EDGES,  // in-degrees: what no pull has to look at any more
  FOUND,
  UNDECIDED,
  SAMPLED,
  PROBES,
  SAMPLE_FOUND,
  SAMPLE_UNDECIDED,
  NUM_ROWS,   // rows in the batch
  NUM_EDGES,  // sum of their masked degrees
  NUM_PAGES,
  QUEUE_SIZE,
  NUM_BEYOND,      // rows of the batch that ask for more than it takes
  SCRATCH,         // what nobody reads
  NUM_LINES,       // lines of host memory that kernels have read
  FRONTIER_PAGES,  // that a push would read
  NUM_COUNTERS = 20
};

// A row lookup (oocgraph/kernels/rows.py): explicit row starts, or one class for each distinct degree.
struct Lookup {
  const i64* indptr;
  i64 num_indptr;
  const i64* first;
  const i64* edge;
  const i64* value;
  i64 num_classes;
};

#define LOOKUP_PARAMETERS \
  const i64* __restrict__ indptr, i64 num_indptr, const i64* __restrict__ first, const i64* __restrict__ edge, \
      const i64* __restrict__ value, i64 num_classes
#define LOOKUP_ARGUMENTS Lookup{indptr, num_indptr, first, edge, value, num_classes}

// Index of the last of `size` ascending entries that is at most x; 0 if there is none.
__device__ __forceinline__ i64 find_class(const i64* entries, i64 size, i64 x) {
  i64 low = 0, high = size;
  while (high - low > 1) {
    i64 middle = (low + high) >> 1;
    if (entries[middle] <= x) low = middle;
    else high = middle;
  }
  return low;
}

__device__ __forceinline__ void row_in_class(const Lookup& rows, i64 c, i64 v, i64& begin, i64& end) {
  i64 degree = rows.value[c];
  begin = rows.edge[c] + (v - rows.first[c]) * degree;
  end = begin + degree;
}

// First edge of vertex v and the edge after its last one.
__device__ __forceinline__ void row_of(const Lookup& rows, i64 v, i64& begin, i64& end) {
  if (rows.num_indptr) {
    begin = rows.indptr[v];
    end = rows.indptr[v + 1];
  } else {
    row_in_class(rows, find_class(rows.first, rows.num_classes, v), v, begin, end);
  }
}

// The same where `c` is the class of a vertex a little below v: neighbouring vertices share classes, so walking on is cheap.
__device__ __forceinline__ void row_after(const Lookup& rows, i64 c, i64 v, i64& begin, i64& end) {
  if (rows.num_indptr) {
    begin = rows.indptr[v];
    end = rows.indptr[v + 1];
  } else {
    while (c + 1 < rows.num_classes && v >= rows.first[c + 1]) c++;
    row_in_class(rows, c, v, begin, end);
  }
}

template <class I>
__device__ __forceinline__ u32 is_marked(const u32* __restrict__ words, I v) {
  return (words[v >> 5] >> (v & 31)) & 1u;
}

__device__ __forceinline__ int lane_id() { return threadIdx.x & 31; }
__device__ __forceinline__ int warp_id() { return threadIdx.x >> 5; }
__device__ __forceinline__ i64 global_warp() { return ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5; }
__device__ __forceinline__ i64 num_warps() { return ((i64)gridDim.x * blockDim.x) >> 5; }
__device__ __forceinline__ i64 global_thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ i64 num_threads() { return (i64)gridDim.x * blockDim.x; }

template <class T>
__device__ __forceinline__ T warp_sum(T x) {
  for (int distance = 16; distance; distance >>= 1) x += __shfl_xor_sync(FULL, x, distance);
  return x;
}

template <class T>
__device__ __forceinline__ T warp_inclusive_sum(T x) {
  int lane = lane_id();
  for (int distance = 1; distance < 32; distance <<= 1) {
    T below = __shfl_up_sync(FULL, x, distance);
    if (lane >= distance) x += below;
  }
  return x;
}

// Exclusive sum over the BLOCK threads of a block, and the total; all of them must come here. `shared` has WARPS + 1 entries.
template <class T>
__device__ __forceinline__ T block_exclusive_sum(T x, T* shared, T& total) {
  T inclusive = warp_inclusive_sum(x);
  __syncthreads();  // whoever still reads `shared` of the last call
  if (lane_id() == 31) shared[warp_id()] = inclusive;
  __syncthreads();
  if (threadIdx.x < 32) {
    T of_warp = threadIdx.x < WARPS ? shared[threadIdx.x] : T(0);
    T sums = warp_inclusive_sum(of_warp);
    if (threadIdx.x < WARPS) shared[threadIdx.x] = sums - of_warp;
    if (threadIdx.x == WARPS - 1) shared[WARPS] = sums;
  }
  __syncthreads();
  total = shared[WARPS];
  return shared[warp_id()] + inclusive - x;
}

// How many of `size` ascending entries are at most x; found by a warp, all of whose lanes come here with the same numbers. Each of its
// ceil(log32(size)) steps is one round of loads.
__device__ __forceinline__ i64 warp_upper_bound(const i64* __restrict__ entries, i64 size, i64 x) {
  i64 low = 0, high = size;
  while (low < high) {
    i64 step = (high - low + 31) >> 5, begin = low + lane_id() * step;
    i64 last = (begin + step < high ? begin + step : high) - 1;
    int below = __popc(__ballot_sync(FULL, begin < high && entries[last] <= x));
    i64 stop = high;
    low = low + below * step < stop ? low + below * step : stop;
    high = low + step - 1 < stop ? low + step - 1 : stop;
  }
  return low;
}

// Lets a block's first warp find the rows that edges s0 .. s1 - 1 lie in: rows[0] is the first that ends behind s0, rows[1] the first that
// begins at or behind s1; `rows` is shared, and the caller synchronizes before and behind this.
__device__ __forceinline__ void find_rows(const i64* __restrict__ offset, i64 num_rows, i64 s0, i64 s1, i64* rows) {
  if (warp_id() == 0) {
    i64 first = warp_upper_bound(offset + 1, num_rows, s0);
    i64 stop = warp_upper_bound(offset, num_rows, s1 - 1);
    if (lane_id() == 0) {
      rows[0] = first;
      rows[1] = stop;
    }
  }
}

#define MIN_SHARE 1024  // edges that a block takes at once: at least 4 shares a block where there are enough
#define MAX_SHARE 16384

__device__ __forceinline__ i64 share_of(i64 num_edges) {
  i64 share = num_edges / (4 * (i64)gridDim.x);
  return share < MIN_SHARE ? MIN_SHARE : share > MAX_SHARE ? MAX_SHARE : share;
}

__device__ __forceinline__ void add_to(i64* counter, i64 x) {
  if (x) atomicAdd((u64*)counter, (u64)x);
}

// Add x[i] of all threads of a block to counters[slot[i]], with one atomic for each: thousands of warps that end at once would take turns.
// All threads come here, once in a kernel.
template <int N>
__device__ __forceinline__ void add_of_block(i64* counters, const int (&slot)[N], const i64 (&x)[N]) {
  __shared__ i64 add_of_block_sums[N][32];
#pragma unroll
  for (int i = 0; i < N; i++) {
    i64 sum = warp_sum(x[i]);
    if (lane_id() == 0) add_of_block_sums[i][warp_id()] = sum;
  }
  __syncthreads();
  if (warp_id() == 0) {
#pragma unroll
    for (int i = 0; i < N; i++) {
      i64 sum = warp_sum(lane_id() < (int)(blockDim.x >> 5) ? add_of_block_sums[i][lane_id()] : (i64)0);
      if (lane_id() == 0) add_to(&counters[slot[i]], sum);
    }
  }
}

// Levels are bytes or 32-bit numbers (`wide`), in one buffer.
__device__ __forceinline__ void set_level(unsigned char* level8, int* level32, int wide, i64 at, int level) {
  if (wide) level32[at] = level;
  else level8[at] = (unsigned char)level;
}

// Position at which a partition notes vertex v, which it owns; v itself where `owned` is null.
template <class I>
__device__ __forceinline__ i64 position_of(const u32* __restrict__ owned, const I* __restrict__ rank, I v) {
  if (!owned) return (i64)v;
  i64 word = (i64)(v >> 6) * 2;
  u64 bits = (u64)owned[word] | (u64)owned[word + 1] << 32;
  return (i64)rank[v >> 6] + __popcll(bits & (((u64)1 << (v & 63)) - 1));
}

// A bitmap word behind the last vertex has no open bits.
__device__ __forceinline__ u32 word_mask(i64 word, i64 num_vertices) {
  i64 left = num_vertices - word * 32;
  return left >= 32 ? FULL : left <= 0 ? 0u : (1u << left) - 1u;
}

// Note that vertex y, which this thread has claimed, was found from v.
template <class I>
__device__ __forceinline__ void note(
    I y, I v, u32* next, const u32* __restrict__ owned, const I* __restrict__ rank, I* parent, unsigned char* level8, int* level32,
    int wide, int level) {
  atomicOr(&next[y >> 5], 1u << (y & 31));
  i64 at = position_of(owned, rank, y);
  parent[at] = v;
  set_level(level8, level32, wide, at, level);
}

// Visit y from v unless it is closed; whether this thread was the one to do so. `closed` and `next` are over all vertices.
template <class I>
__device__ __forceinline__ bool claim(
    I y, I v, u32* closed, u32* next, const u32* __restrict__ owned, const I* __restrict__ rank, I* parent,
    unsigned char* level8, int* level32, int wide, int level) {
  u32 bit = 1u << (y & 31);
  if (closed[y >> 5] & bit) return false;  // the filter: most edges end here, without an atomic
  if (atomicOr(&closed[y >> 5], bit) & bit) return false;
  note(y, v, next, owned, rank, parent, level8, level32, wide, level);
  return true;
}
