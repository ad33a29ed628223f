// Pull (bottom-up): each unvisited vertex looks for a neighbour in the frontier, and stops at the first.
//
// Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search", SC 2012. Vertices are in degree order and lists are hub first, so that
// plane k, the k-th neighbour of each vertex, is one dense array over the first vertices: a coalesced scan.

// Four entries of a plane, read at once: planes begin at multiples of 32 entries.
template <class I>
struct alignas(16) Four {
  I entry[4];
};

#define HUB_WORDS 8192

#if __CUDA_ARCH__ == 750 || __CUDA_ARCH__ == 1070  // 1,024 threads on a multiprocessor
#define PULL_BLOCKS 2
#else
#define PULL_BLOCKS 3
#endif

// Pull over the planes. A thread has four neighbouring vertices, a warp 128 of them: four words of the bitmaps, which it alone writes.
//
// The frontier's first words are copied to shared memory: lists are hub first, so most of what is looked up is there, and 32 random reads
// take a few cycles there and up to 32 in the first-level cache.
// `visited`, `next` and `undecided` have num_words words; those of groups group0 .. group1 - 1 of `next` and `undecided` are overwritten.
template <class I>
__global__ void __launch_bounds__(512, PULL_BLOCKS) pull_planes(
    i64 group0, i64 group1, i64 num_words, i64 num_vertices, const I* __restrict__ planes, const i64* __restrict__ plane_offset,
    const i64* __restrict__ plane_length, int num_planes, const u32* __restrict__ frontier, i64 num_frontier_words, u32* visited, u32* undecided,
    u32* next, I* parent, unsigned char* level8, int* level32, int wide, int level, i64* counters) {
  __shared__ u32 hubs[HUB_WORDS];
  int num_hub_words = num_frontier_words < HUB_WORDS ? (int)num_frontier_words : HUB_WORDS;
  for (int i = threadIdx.x; i < num_hub_words; i += blockDim.x) hubs[i] = frontier[i];
  __syncthreads();
  int lane = lane_id(), shift = (lane & 7) * 4;
  i64 num_tails = plane_length[num_planes];
  int found = 0, left = 0;
  for (i64 group = group0 + global_warp(); group < group1; group += num_warps()) {
    i64 w = group * 4 + (lane >> 3), v = group * 128 + lane * 4;
    u32 word = w < num_words ? visited[w] : FULL;
    u32 open = (~word & word_mask(w, num_vertices)) >> shift & 15u;
    u32 rest = open;
    for (int k = 0; k < num_planes; k++) {
      i64 covered = plane_length[k] - v;
      u32 asked = covered >= 4 ? rest : covered <= 0 ? 0u : rest & ((1u << covered) - 1u);
      if (!__any_sync(FULL, asked != 0u)) break;  // and no later plane covers more
      if (asked) {
        Four<I> four = *reinterpret_cast<const Four<I>*>(planes + plane_offset[k] + v);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          if (!(asked >> j & 1u)) continue;
          I y = four.entry[j];
          u32 bits = (y >> 5) < (I)num_hub_words ? hubs[y >> 5] : frontier[y >> 5];
          if (bits >> (y & 31) & 1u) {
            rest &= ~(1u << j);
            parent[v + j] = y;
          }
        }
      }
    }
    u32 hits = open & ~rest;
    i64 tails = num_tails - v;
    u32 misses = tails >= 4 ? rest : tails <= 0 ? 0u : rest & ((1u << tails) - 1u);
    if (hits == 15u && !wide) {
      *reinterpret_cast<u32*>(level8 + v) = 0x01010101u * (u32)level;
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (hits >> j & 1u) set_level(level8, level32, wide, v + j, level);
    }
    found += __popc(hits);
    left += __popc(misses);
    u32 hit_word = hits << shift, miss_word = misses << shift;
#pragma unroll
    for (int distance = 1; distance < 8; distance <<= 1) {
      hit_word |= __shfl_xor_sync(FULL, hit_word, distance);
      miss_word |= __shfl_xor_sync(FULL, miss_word, distance);
    }
    if ((lane & 7) == 0 && w < num_words) {
      if (hit_word) visited[w] = word | hit_word;
      next[w] = hit_word;
      undecided[w] = miss_word;
    }
  }
  found = warp_sum(found);
  left = warp_sum(left);
  if (lane == 0) {
    add_to(&counters[FOUND], found);
    add_to(&counters[UNDECIDED], left);
  }
}

// The first of edges[0 .. length - 1] that is in the frontier, looked for by a warp; whether there is one.
template <class I>
__device__ __forceinline__ bool first_hit(const I* __restrict__ edges, i64 length, const u32* __restrict__ frontier, I& hit) {
  int lane = lane_id();
  for (i64 e = 0; e < length; e += 32) {
    I y = 0;
    bool is_hit = false;
    if (e + lane < length) {
      y = edges[e + lane];
      is_hit = is_marked(frontier, y);
    }
    u32 votes = __ballot_sync(FULL, is_hit);
    if (votes) {
      hit = __shfl_sync(FULL, y, __ffs((int)votes) - 1);
      return true;
    }
  }
  return false;
}

// Pull the undecided over edges base .. base + num_edges - 1 of `indices`, without a list of rows: a warp has a word, and looks at its rows together.
// Those whose list does not go on outside of these edges are not undecided any more. counters[UNDECIDED] is what is left.
template <class I>
__global__ void pull_resident(
    i64 num_words, LOOKUP_PARAMETERS, i64 skip, const I* __restrict__ edges, i64 base, i64 num_edges, const u32* __restrict__ frontier,
    u32* visited, u32* undecided, u32* next, I* parent, unsigned char* level8, int* level32, int wide, int level, i64* counters) {
  Lookup rows = LOOKUP_ARGUMENTS;
  int lane = lane_id(), found = 0, left = 0;
  for (i64 w = global_warp(); w < num_words; w += num_warps()) {
    u32 bits = undecided[w], hits = 0, misses = 0;
    if (!bits) continue;
    i64 c = rows.num_indptr ? 0 : find_class(rows.first, rows.num_classes, w * 32);
    for (; bits; bits &= bits - 1) {
      int b = __ffs((int)bits) - 1;
      i64 v = w * 32 + b, begin, end;
      row_after(rows, c, v, begin, end);
      begin += skip;
      if (begin < base) begin = base;
      i64 stop = end < base + num_edges ? end : base + num_edges;
      I x;
      if (begin < stop && first_hit(edges + (begin - base), stop - begin, frontier, x)) {
        hits |= 1u << b;
        if (lane == 0) {
          parent[v] = x;
          set_level(level8, level32, wide, v, level);
        }
      } else if (begin < end && stop < end) {
        misses |= 1u << b;
      }
    }
    if (lane == 0) {
      visited[w] |= hits;
      next[w] |= hits;
      undecided[w] = misses;
    }
    found += __popc(hits);
    left += __popc(misses);
  }
  if (lane == 0) {
    add_to(&counters[FOUND], found);
    add_to(&counters[UNDECIDED], left);
  }
}

// Pull the rows of a batch over the piece e0 .. e1 - 1 of their edges (see expand.cu): a warp for each row.
template <class I>
__global__ void pull_tails(
    const I* __restrict__ vertex, const i64* __restrict__ begin, const i64* __restrict__ offset, i64 e0, i64 e1, const I* __restrict__ edges,
    i64 base, const u32* __restrict__ frontier, u32* visited, u32* undecided, u32* next, I* parent, unsigned char* level8, int* level32,
    int wide, int level, i64* counters) {
  i64 num_rows = counters[NUM_ROWS];
  if (!num_rows) return;
  i64 first_row = find_class(offset, num_rows, e0), last_row = find_class(offset, num_rows, e1 - 1);
  int lane = lane_id(), found = 0;
  for (i64 r = first_row + global_warp(); r <= last_row; r += num_warps()) {
    i64 a = offset[r], z = offset[r + 1];
    i64 at = begin[r] - a - base;
    if (a < e0) a = e0;
    if (z > e1) z = e1;
    I v = vertex[r];
    I x;
    if (a >= z || is_marked(visited, v)) continue;  // found in an earlier piece; only this warp could find it in this one
    if (first_hit(edges + (at + a), z - a, frontier, x)) {
      found++;
      if (lane == 0) {
        u32 bit = 1u << (v & 31);
        parent[v] = x;
        set_level(level8, level32, wide, (i64)v, level);
        atomicOr(&visited[v >> 5], bit);
        atomicOr(&next[v >> 5], bit);
        atomicAnd(&undecided[v >> 5], ~bit);
      }
    }
  }
  if (lane == 0) add_to(&counters[FOUND], found);
}

// After a batch: rows whose lists end in it are decided, found or not; counters[UNDECIDED] gets those that go on.
template <class I>
__global__ void close_rows(
    const I* __restrict__ vertex, const i64* __restrict__ start, const i64* __restrict__ degree, LOOKUP_PARAMETERS, u32* undecided, i64* counters) {
  Lookup rows = LOOKUP_ARGUMENTS;
  i64 num_rows = counters[NUM_ROWS];
  int left = 0;
  for (i64 base = global_warp() * 32; base < num_rows; base += num_warps() * 32) {
    i64 r = base + lane_id(), begin, end;
    if (r >= num_rows) continue;
    I v = vertex[r];
    row_of(rows, (i64)v, begin, end);
    if (start[r] + degree[r] >= end) atomicAnd(&undecided[v >> 5], ~(1u << (v & 31)));
    else if (is_marked(undecided, v)) left++;
  }
  left = warp_sum(left);
  if (lane_id() == 0) add_to(&counters[UNDECIDED], left);
}
