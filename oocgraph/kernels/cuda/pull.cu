// Pull (bottom-up): each unvisited vertex looks for a neighbour in the frontier, and stops at the first.
//
// Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search", SC 2012. Vertices are in degree order and lists are hub first, so that
// plane k, the k-th neighbour of each vertex, is one dense array over the first vertices: a coalesced scan.

// Four entries of a plane, read at once: planes begin at multiples of 32 entries.
template <class I>
struct alignas(16) Four {
  I entry[4];
};

// Each is read once in a pull, and is not to take the place of the frontier in the caches.
template <class I>
__device__ __forceinline__ Four<I> read_four(const I* at) {
#ifdef __CUDA_ARCH__
  union {
    Four<I> four;
    uint4 part[sizeof(I) / 4];
  } read;
#pragma unroll
  for (int i = 0; i < (int)sizeof(I) / 4; i++) read.part[i] = __ldcs(reinterpret_cast<const uint4*>(at) + i);
  return read.four;
#else
  return *reinterpret_cast<const Four<I>*>(at);
#endif
}

// Of pull_planes: threads of a block, by the bytes of an id, and blocks that a multiprocessor is to hold. The grid is one wave of these, whose
// warps stride over the vertices.
#define PULL_BLOCK(I) (sizeof(I) == 4 ? 768 : 512)
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 750 || __CUDA_ARCH__ == 1070)  // 1,024 threads
#define PULL_BLOCKS(I) (sizeof(I) == 4 ? 1 : 2)
#else
#define PULL_BLOCKS(I) 2
#endif

// Blocks of lists, as far as the registers suffice.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ != 1070
#define ROW_BLOCKS(I) (sizeof(I) == 4 ? 5 : 4)
#else
#define ROW_BLOCKS(I) 4
#endif

#define MAX_PLANES 64  // as oocgraph/store/layout.py has it

// Where planes begin, in a block's shared memory. Its address is held in a register: the compiler would rather find it again for each access,
// five instructions each.
template <class I>
struct PlanePointers {
#ifdef __CUDACC_RTC__
  u32 at;
  __device__ __forceinline__ explicit PlanePointers(const I* const* table) : at((u32)__cvta_generic_to_shared(table)) {
    asm volatile("" : "+r"(at));
  }
  __device__ __forceinline__ const I* operator[](int k) const {
    u64 found;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(found) : "r"(at + 8 * k));
    return (const I*)found;
  }
#else
  const I* const* at;
  __device__ __forceinline__ explicit PlanePointers(const I* const* table) : at(table) {}
  __device__ __forceinline__ const I* operator[](int k) const { return at[k]; }
#endif
};

// Which of four entries, of those that are asked for, are in the frontier, as a mask; entries that are not asked for may be anything.
template <class I>
__device__ __forceinline__ u32 hits_of(const Four<I>& four, u32 asked, const u32* __restrict__ frontier) {
  u32 words[4] = {}, found = 0u;
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (asked >> j & 1u) words[j] = frontier[four.entry[j] >> 5];
  __syncwarp();  // so that the compiler asks for all of them before it waits for one
#pragma unroll
  for (int j = 0; j < 4; j++) found |= (words[j] >> (four.entry[j] & 31) & 1u) << j;
  return found & asked;  // the mask changes nothing, but without it CUDA 13.5 spills two registers on sm_120
}

// Those of the four vertices from v on that plane k covers.
__device__ __forceinline__ u32 covered_by(const i64* __restrict__ plane_length, int k, i64 v) {
  i64 covered = plane_length[k] - v;
  return covered >= 4 ? 15u : covered <= 0 ? 0u : (1u << covered) - 1u;
}

template <class I>
__device__ __forceinline__ void note_hits(u32 hits, const Four<I>& four, Four<I>& of) {
  if (!hits) return;
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (hits >> j & 1u) of.entry[j] = four.entry[j];
}

// Pull over the planes. A thread has four neighbouring vertices, a warp 128 of them: four words of the bitmaps, which it alone writes.
//
// What the first plane has left open is mostly left open by the next: while one is looked up, the one behind it is on its way.
// `visited`, `next` and `undecided` have num_words words; those of groups group0 .. group1 - 1 of `next` and `undecided` are overwritten.
// counters[left_slot] gets how many are left.
template <class I>
__global__ void __launch_bounds__(PULL_BLOCK(I), PULL_BLOCKS(I)) pull_planes(
    i64 group0, i64 group1, i64 num_words, i64 num_vertices, const I* __restrict__ planes, const i64* __restrict__ plane_offset,
    const i64* __restrict__ plane_length, int num_planes, const u32* __restrict__ frontier, u32* visited, u32* undecided, u32* next,
    I* parent, unsigned char* level8, int* level32, int wide, int level, int left_slot, i64* counters) {
  __shared__ const I* pull_plane[MAX_PLANES];
  if ((int)threadIdx.x < num_planes) pull_plane[threadIdx.x] = planes + plane_offset[threadIdx.x];
  __syncthreads();
  PlanePointers<I> plane(pull_plane);
  int lane = lane_id(), shift = (lane & 7) * 4;
  int found = 0, left = 0, whole = num_planes;  // planes that cover all vertices of a group: ever fewer
  I group = (I)(group0 + global_warp()), stop = (I)group1, step = (I)num_warps();
  u32 word_ahead = FULL;
  if (group < stop && (i64)group * 4 + (lane >> 3) < num_words) word_ahead = visited[group * 4 + (lane >> 3)];
#pragma unroll 1
  for (; group < stop; group += step) {
    I w = group * 4 + (lane >> 3), v = group * 128 + lane * 4;
    u32 word = word_ahead;
    word_ahead = group + step < stop && (i64)w + (i64)step * 4 < num_words ? visited[w + step * 4] : FULL;
#pragma unroll 1
    while (whole && plane_length[whole - 1] < (i64)group * 128 + 128) whole--;
    u32 open = (~word & word_mask((i64)w, num_vertices)) >> shift & 15u;
    u32 rest = open, asked = whole ? rest : num_planes ? rest & covered_by(plane_length, 0, (i64)v) : 0u;
    Four<I> four = {}, of;  // of this plane, and those that were in the frontier
    if (asked) four = read_four(plane[0] + v);
    if (__any_sync(FULL, asked != 0u)) {
      u32 hits = hits_of(four, asked, frontier);
      note_hits(hits, four, of);
      rest ^= hits;
      asked = whole > 1 ? rest : num_planes > 1 ? rest & covered_by(plane_length, 1, (i64)v) : 0u;
      if (asked) four = read_four(plane[1] + v);
      Four<I> ahead = four;
#pragma unroll 1
      for (int k = 2; __any_sync(FULL, asked != 0u); k++) {  // no plane covers more than the one before
        u32 covered = 15u;
        if (k >= whole) covered = k < num_planes ? covered_by(plane_length, k, (i64)v) : 0u;
        if (rest & covered) ahead = read_four(plane[k] + v);
        hits = hits_of(four, asked, frontier);
        note_hits(hits, four, of);
        rest ^= hits;
        asked = rest & covered;
        four = ahead;
      }
    }
    u32 hits = open & ~rest, misses = rest & covered_by(plane_length, num_planes, (i64)v);
    if (hits == 15u) {
      *reinterpret_cast<Four<I>*>(parent + v) = of;
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (hits >> j & 1u) parent[v + j] = of.entry[j];
    }
    if (hits == 15u && !wide) {
      *reinterpret_cast<u32*>(level8 + v) = 0x01010101u * (u32)level;
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (hits >> j & 1u) set_level(level8, level32, wide, (i64)v + j, level);
    }
    found += __popc(hits);
    left += __popc(misses);
    u32 hit_word = hits << shift, miss_word = misses << shift;
#pragma unroll
    for (int distance = 1; distance < 8; distance <<= 1) {
      hit_word |= __shfl_xor_sync(FULL, hit_word, distance);
      miss_word |= __shfl_xor_sync(FULL, miss_word, distance);
    }
    if ((lane & 7) == 0 && (i64)w < num_words) {
      if (hit_word) visited[w] = word | hit_word;
      next[w] = hit_word;
      undecided[w] = miss_word;
    }
  }
  add_of_block(counters, {FOUND, left_slot}, {found, left});
}

#define LINES_AHEAD 4

// The first of edges[0 .. length - 1] that is in the frontier, looked for by a warp; whether there is one. Of a list that does not end with
// its first 32 entries four times as many are on their way at once. BY_LINES: lanes begin at a multiple of 32 entries, so that a warp asks for
// whole lines, and `num_lines` counts those of 128 bytes that were asked for.
template <bool BY_LINES, class I>
__device__ __forceinline__ bool first_hit(const I* __restrict__ edges, i64 length, const u32* __restrict__ frontier, I& hit, int& num_lines) {
  const int per_line = 128 / (int)sizeof(I);
  int lane = lane_id(), lines = 1, lead = BY_LINES ? (int)((u64)edges / sizeof(I) & 31) : 0;
  for (i64 e = -(i64)lead; e < length; e += 32 * lines, lines = LINES_AHEAD) {
    I y[LINES_AHEAD];
    u32 marked[LINES_AHEAD], asked = 0u;
#pragma unroll
    for (int u = 0; u < LINES_AHEAD; u++) {
      i64 at = e + 32 * u + lane;
      y[u] = 0;
      if (u < lines && at < length && (!BY_LINES || at >= 0)) {
        y[u] = __ldcs(edges + at);
        asked |= 1u << u;
      }
    }
    __syncwarp();  // so that the compiler asks for all of them before it waits for one
    if (BY_LINES) {
      i64 last = e + 32 * lines < length ? e + 32 * lines : length;  // from the first entry of a line on but for the first of all
      i64 begin = e < 0 ? 0 : e;
      num_lines += (int)((last + lead + per_line - 1) / per_line - (begin + lead) / per_line);
    }
#pragma unroll
    for (int u = 0; u < LINES_AHEAD; u++) {
      marked[u] = 0u;
      if (asked >> u & 1u) marked[u] = is_marked(frontier, y[u]);
    }
#pragma unroll
    for (int u = 0; u < LINES_AHEAD; u++) {
      u32 votes = __ballot_sync(FULL, marked[u] != 0u);
      if (votes) {
        hit = __shfl_sync(FULL, y[u], __ffs((int)votes) - 1);
        return true;
      }
    }
  }
  return false;
}

// Pull the undecided over edges base .. base + num_edges - 1 of `indices`, without a list of rows. A warp reads 32 words at once, far apart so that
// all warps get some of the long lists; of each that has a bit its lanes look up the rows, which it then takes one after the other.
// Those whose list does not go on outside of these edges are not undecided any more.
template <bool BY_LINES, class I>
__device__ __forceinline__ void pull_lists(
    i64 num_words, const Lookup& rows, i64 skip, const I* __restrict__ edges, i64 base, i64 num_edges, const u32* __restrict__ frontier,
    u32* visited, u32* undecided, u32* next, I* parent, unsigned char* level8, int* level32, int wide, int level, int& found, int& left,
    int& num_lines) {
  int lane = lane_id();
  for (i64 w0 = global_warp(); w0 < num_words; w0 += 32 * num_warps()) {
    i64 mine = w0 + lane * num_warps();
    u32 word = mine < num_words ? undecided[mine] : 0u;
    for (u32 words = __ballot_sync(FULL, word != 0u); words; words &= words - 1) {
      int k = __ffs((int)words) - 1;
      i64 w = w0 + k * num_warps(), begin = 0, end = 0;
      bool is_open = __shfl_sync(FULL, word, k) >> lane & 1u;
      if (is_open) {
        row_of(rows, w * 32 + lane, begin, end);
        begin += skip;
        if (begin < base) begin = base;
      }
      i64 stop = end < base + num_edges ? end : base + num_edges;
      u32 hits = 0u, misses = __ballot_sync(FULL, is_open && begin < end && stop < end);
      for (u32 rest = __ballot_sync(FULL, is_open && begin < stop); rest; rest &= rest - 1) {
        int b = __ffs((int)rest) - 1;
        i64 v = w * 32 + b, a = __shfl_sync(FULL, begin, b), z = __shfl_sync(FULL, stop, b);
        I x;
        if (!first_hit<BY_LINES>(edges + (a - base), z - a, frontier, x, num_lines)) continue;
        hits |= 1u << b;
        if (lane == 0) {
          parent[v] = x;
          set_level(level8, level32, wide, v, level);
        }
      }
      misses &= ~hits;
      if (lane == 0) {
        if (hits) {
          visited[w] |= hits;
          next[w] |= hits;
        }
        undecided[w] = misses;
        found += __popc(hits);
        left += __popc(misses);
      }
    }
  }
}

// Over edges in device memory. counters[UNDECIDED] is what is left.
template <class I>
__global__ void __launch_bounds__(BLOCK, ROW_BLOCKS(I)) pull_resident(
    i64 num_words, LOOKUP_PARAMETERS, i64 skip, const I* __restrict__ edges, i64 base, i64 num_edges, const u32* __restrict__ frontier,
    u32* visited, u32* undecided, u32* next, I* parent, unsigned char* level8, int* level32, int wide, int level, i64* counters) {
  int found = 0, left = 0, num_lines = 0;
  pull_lists<false>(
      num_words, LOOKUP_ARGUMENTS, skip, edges, base, num_edges, frontier, visited, undecided, next, parent, level8, level32, wide, level, found,
      left, num_lines);
  add_of_block(counters, {FOUND, UNDECIDED}, {found, left});
}

#define MAPPED_BLOCKS 4  // as the link, not the multiprocessors, bounds it

// Over edges in host memory, where they are (Min et al., "EMOGI", VLDB 2020: whole lines): a list is read no further than to its first
// neighbour in the frontier and the lines that are under way then. counters[NUM_LINES] gets the lines read.
template <class I>
__global__ void __launch_bounds__(BLOCK, MAPPED_BLOCKS) pull_mapped(
    i64 num_words, LOOKUP_PARAMETERS, i64 skip, const I* __restrict__ edges, i64 base, i64 num_edges, const u32* __restrict__ frontier,
    u32* visited, u32* undecided, u32* next, I* parent, unsigned char* level8, int* level32, int wide, int level, i64* counters) {
  int found = 0, left = 0, num_lines = 0;
  pull_lists<true>(
      num_words, LOOKUP_ARGUMENTS, skip, edges, base, num_edges, frontier, visited, undecided, next, parent, level8, level32, wide, level, found,
      left, num_lines);
  add_of_block(counters, {FOUND, SCRATCH, NUM_LINES}, {found, left, lane_id() ? 0 : num_lines});
}

// Pull the rows of a batch over the piece e0 .. e1 - 1 of their edges (see expand.cu): a warp for each row. Which rows these are is found by one
// warp of each block, in a few rounds of loads.
template <class I>
__global__ void __launch_bounds__(BLOCK, ROW_BLOCKS(I)) pull_tails(
    const I* __restrict__ vertex, const i64* __restrict__ begin, const i64* __restrict__ offset, i64 e0, i64 e1, const I* __restrict__ edges,
    i64 base, const u32* __restrict__ frontier, u32* visited, u32* undecided, u32* next, I* parent, unsigned char* level8, int* level32,
    int wide, int level, i64* counters) {
  __shared__ i64 tails_rows[2];
  find_rows(offset, counters[NUM_ROWS], e0, e1, tails_rows);
  __syncthreads();
  int lane = lane_id(), found = 0, num_lines = 0;
  for (i64 r = tails_rows[0] + global_warp(), stop = tails_rows[1]; r < stop; r += num_warps()) {
    i64 a = offset[r], z = offset[r + 1];
    i64 at = begin[r] - a - base;
    if (a < e0) a = e0;
    if (z > e1) z = e1;
    I v = vertex[r];
    I x;
    if (a >= z || is_marked(visited, v)) continue;  // found in an earlier piece; only this warp could find it in this one
    if (first_hit<false>(edges + (at + a), z - a, frontier, x, num_lines)) {
      if (lane == 0) {
        found++;
        u32 bit = 1u << (v & 31);
        parent[v] = x;
        set_level(level8, level32, wide, (i64)v, level);
        atomicOr(&visited[v >> 5], bit);
        atomicOr(&next[v >> 5], bit);
        atomicAnd(&undecided[v >> 5], ~bit);
      }
    }
  }
  add_of_block(counters, {FOUND}, {found});
}

// After a batch: rows whose lists end in it are decided, found or not.
template <class I>
__global__ void close_rows(
    const I* __restrict__ vertex, const i64* __restrict__ start, const i64* __restrict__ offset, LOOKUP_PARAMETERS, u32* undecided,
    const i64* __restrict__ counters) {
  Lookup rows = LOOKUP_ARGUMENTS;
  i64 num_rows = counters[NUM_ROWS];
  for (i64 r = global_thread(); r < num_rows; r += num_threads()) {
    i64 begin, end;
    I v = vertex[r];
    row_of(rows, (i64)v, begin, end);
    if (start[r] + (offset[r + 1] - offset[r]) >= end) atomicAnd(&undecided[v >> 5], ~(1u << (v & 31)));
  }
}
