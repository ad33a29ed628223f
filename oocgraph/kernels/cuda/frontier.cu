// What the plan wants to know of a frontier, and the forms that it and the results take.

// Marked vertices and the sum of their degrees, as this thread sees them. A warp reads 32 words at once, far apart, so that all warps get some of
// the hubs', where each vertex has another degree: the rows of such a word are looked up by a lane each, those of others all at once.
__device__ __forceinline__ void count_rows(const u32* __restrict__ words, i64 num_words, const Lookup& rows, i64& num_rows, i64& num_edges) {
  int lane = lane_id();
  for (i64 w0 = global_warp(); w0 < num_words; w0 += 32 * num_warps()) {
    i64 w = w0 + lane * num_warps();
    u32 bits = w < num_words ? words[w] : 0u;
    bool is_mixed = bits != 0u;
    num_rows += __popc(bits);
    if (bits && !rows.num_indptr) {
      i64 c = find_class(rows.first, rows.num_classes, w * 32);
      is_mixed = c + 1 < rows.num_classes && w * 32 + 31 >= rows.first[c + 1];
      if (!is_mixed) num_edges += (i64)__popc(bits) * rows.value[c];
    }
    for (u32 mixed = __ballot_sync(FULL, is_mixed); mixed; mixed &= mixed - 1) {
      int k = __ffs((int)mixed) - 1;
      i64 begin = 0, end = 0;
      if (__shfl_sync(FULL, bits, k) >> lane & 1u) row_of(rows, (w0 + k * num_warps()) * 32 + lane, begin, end);
      num_edges += end - begin;
    }
  }
}

// Both are added to counters[slot] and counters[slot_edges].
extern "C" __global__ void count_edges(const u32* __restrict__ words, i64 num_words, LOOKUP_PARAMETERS, int slot, int slot_edges, i64* counters) {
  i64 num_rows = 0, num_edges = 0;
  count_rows(words, num_words, LOOKUP_ARGUMENTS, num_rows, num_edges);
  add_of_block(counters, {slot, slot_edges}, {num_rows, num_edges});
}

#define LOOKED_AT 16        // edges that a thread asks for before it looks at the first
#define PLANES_LOOKED_AT 8  // planes of which it asks for an entry each

// What a sample looks at, and what this thread has seen.
template <class I>
struct Sample {
  i64 step, num_words, num_vertices;
  const I* planes;
  const i64 *plane_offset, *plane_length;
  int num_planes;
  const I* resident;
  i64 num_resident, most;
  i64 sampled, probes, found, left;
};

#define SAMPLE_PARAMETERS \
  const I* __restrict__ planes, const i64* __restrict__ plane_offset, const i64* __restrict__ plane_length, int num_planes, \
      const I* __restrict__ resident, i64 num_resident, i64 most
#define SAMPLE_ARGUMENTS planes, plane_offset, plane_length, num_planes, resident, num_resident, most, 0, 0, 0, 0

// Try what a pull would do for the unvisited vertices of every `step`-th 64-bit word, changing nothing: a thread for each vertex. A list is
// looked at up to `most` resident edges; of a longer one all are counted as looked at, in vain.
template <class I>
__device__ __forceinline__ void try_pull(
    Sample<I>& s, const Lookup& rows, const u32* __restrict__ frontier, const u32* __restrict__ visited) {
  i64 num_sampled_words = (s.num_words / 2 + s.step - 1) / s.step * 2;
  for (i64 i = global_warp(); i < num_sampled_words; i += num_warps()) {
    i64 w = i / 2 * s.step * 2 + (i & 1);
    i64 v = w * 32 + lane_id(), begin = 0, end = 0;
    bool is_open = v < s.num_vertices && !(visited[w] >> lane_id() & 1u), hit = false;
    s.sampled += is_open;
    for (int k0 = 0; k0 < s.num_planes && __any_sync(FULL, is_open && !hit && v < s.plane_length[k0]); k0 += PLANES_LOOKED_AT) {
      I y[PLANES_LOOKED_AT];
      u32 asked = 0u, marked = 0u;
#pragma unroll
      for (int j = 0; j < PLANES_LOOKED_AT; j++) {
        y[j] = 0;
        if (is_open && !hit && k0 + j < s.num_planes && v < s.plane_length[k0 + j]) {
          y[j] = s.planes[s.plane_offset[k0 + j] + v];
          asked |= 1u << j;
        }
      }
      __syncwarp();  // so that the compiler asks for all of them before it waits for one
#pragma unroll
      for (int j = 0; j < PLANES_LOOKED_AT; j++)
        if (asked >> j & 1u) marked |= is_marked(frontier, y[j]) << j;
      s.probes += marked ? __ffs((int)marked) : __popc(asked);
      hit = hit || marked != 0u;
    }
    if (is_open && !hit && v < s.plane_length[s.num_planes]) {
      row_of(rows, v, begin, end);
      begin += s.num_planes;
    }
    i64 stop = end < s.num_resident ? end : s.num_resident, last = stop - begin < s.most ? stop : begin + s.most, e = begin;
    while (__any_sync(FULL, e < last && !hit)) {
      I y[LOOKED_AT];
      u32 marked = 0u;
      int count = hit ? 0 : last - e < LOOKED_AT ? (int)(last - e) : LOOKED_AT;
#pragma unroll
      for (int j = 0; j < LOOKED_AT; j++) {
        y[j] = 0;
        if (j < count) y[j] = s.resident[e + j];
      }
      __syncwarp();  // so that the compiler asks for all of them before it waits for one
#pragma unroll
      for (int j = 0; j < LOOKED_AT; j++)
        if (j < count) marked |= is_marked(frontier, y[j]) << j;
      if (count > 0) {
        hit = marked != 0u;
        e += hit ? __ffs((int)marked) : count;
      }
    }
    s.probes += e - begin;
    if (!hit && e < stop) s.probes += stop - e;
    if (!hit && begin < end && stop < end) s.left++;
    s.found += hit;
  }
}

template <class I>
__global__ void sample_heads(
    i64 step, i64 num_words, i64 num_vertices, LOOKUP_PARAMETERS, SAMPLE_PARAMETERS, const u32* __restrict__ frontier,
    const u32* __restrict__ visited, i64* counters) {
  Sample<I> s{step, num_words, num_vertices, SAMPLE_ARGUMENTS};
  try_pull(s, LOOKUP_ARGUMENTS, frontier, visited);
  add_of_block(counters, {SAMPLED, PROBES, SAMPLE_FOUND, SAMPLE_UNDECIDED}, {s.sampled, s.probes, s.found, s.left});
}

// All that the plan wants to know of a frontier of a whole graph, in one launch: count_edges by the lookup of a push and, unless it is the same
// (`push_is_pull`), by that of a pull; and what sample_heads finds.
template <class I>
__global__ void measure_frontier(
    const i64* __restrict__ push_indptr, i64 push_num_indptr, const i64* __restrict__ push_first, const i64* __restrict__ push_edge,
    const i64* __restrict__ push_value, i64 push_num_classes, int push_is_pull, i64 step, i64 num_words, i64 num_vertices, LOOKUP_PARAMETERS,
    SAMPLE_PARAMETERS, const u32* __restrict__ frontier, const u32* __restrict__ visited, i64* counters) {
  i64 num_rows = 0, num_edges = 0, same_rows = 0, pull_edges = 0;
  count_rows(
      frontier, num_words, Lookup{push_indptr, push_num_indptr, push_first, push_edge, push_value, push_num_classes}, num_rows, num_edges);
  if (!push_is_pull) count_rows(frontier, num_words, LOOKUP_ARGUMENTS, same_rows, pull_edges);
  Sample<I> s{step, num_words, num_vertices, SAMPLE_ARGUMENTS};
  try_pull(s, LOOKUP_ARGUMENTS, frontier, visited);
  add_of_block(
      counters, {FRONTIER_VERTICES, FRONTIER_EDGES, FRONTIER_PULL_EDGES, SAMPLED, PROBES, SAMPLE_FOUND, SAMPLE_UNDECIDED},
      {num_rows, num_edges, pull_edges, s.sampled, s.probes, s.found, s.left});
}

extern "C" __global__ void fill_words(u32* words, i64 num_words, u32 value) {
  for (i64 w = global_thread(); w < num_words; w += num_threads()) words[w] = value;
}

// Clear some arrays of words at once; one that has 0 words may be null.
extern "C" __global__ void clear_words(u32* a, i64 num_a, u32* b, i64 num_b, u32* c, i64 num_c, u32* d, i64 num_d) {
  for (i64 w = global_thread(); w < num_a || w < num_b || w < num_c || w < num_d; w += num_threads()) {
    if (w < num_a) a[w] = 0u;
    if (w < num_b) b[w] = 0u;
    if (w < num_c) c[w] = 0u;
    if (w < num_d) d[w] = 0u;
  }
}

extern "C" __global__ void copy_words(const u32* __restrict__ source, u32* target, i64 num_words) {
  for (i64 w = global_thread(); w < num_words; w += num_threads()) target[w] = source[w];
}

// List -> bitmap.
template <class I>
__global__ void add_vertices(const I* __restrict__ vertices, i64 count, u32* words) {
  for (i64 i = global_thread(); i < count; i += num_threads()) atomicOr(&words[vertices[i] >> 5], 1u << (vertices[i] & 31));
}

// out[i] = values[vertices[i]].
template <class I>
__global__ void take(const I* __restrict__ vertices, i64 count, const I* __restrict__ values, I* out) {
  for (i64 i = global_thread(); i < count; i += num_threads()) out[i] = values[vertices[i]];
}

// The sources of a search: visited, at level 0, parents of themselves.
template <class I>
__global__ void begin_search(
    const I* __restrict__ sources, i64 count, u32* frontier, u32* visited, I* parent, unsigned char* level8, int* level32, int wide) {
  for (i64 i = global_thread(); i < count; i += num_threads()) {
    I v = sources[i];
    atomicOr(&frontier[v >> 5], 1u << (v & 31));
    atomicOr(&visited[v >> 5], 1u << (v & 31));
    parent[v] = v;
    set_level(level8, level32, wide, (i64)v, 0);
  }
}

// Parent and level of what was not reached.
template <class I>
__global__ void finish_search(
    i64 num_vertices, const u32* __restrict__ visited, I* parent, I none, unsigned char* level8, int* level32, int wide) {
  for (i64 v = global_thread(); v < num_vertices; v += num_threads()) {
    if (visited[v >> 5] >> (v & 31) & 1u) continue;
    parent[v] = none;
    if (wide) level32[v] = -1;
    else level8[v] = 255;
  }
}

// One-byte levels of vertices v0 .. v1 - 1 to 32 bits in place. The host begins with the last three quarters, whose targets lie behind
// all levels that are still to be read, and goes on with the last three quarters of what is left.
extern "C" __global__ void widen_levels(i64 v0, i64 v1, const unsigned char* level8, int* level32) {
  for (i64 v = v0 + global_thread(); v < v1; v += num_threads()) level32[v] = level8[v];
}

// Push the neighbours that the planes hold of a batch's rows: those at or behind edge `low`, which are not resident.
template <class I>
__global__ void push_heads(
    const I* __restrict__ vertex, LOOKUP_PARAMETERS, i64 low, const I* __restrict__ planes, const i64* __restrict__ plane_offset,
    const i64* __restrict__ plane_length, int num_planes, u32* closed, u32* next, const u32* __restrict__ owned, const I* __restrict__ rank,
    I* parent, unsigned char* level8, int* level32, int wide, int level, i64* counters) {
  Lookup rows = LOOKUP_ARGUMENTS;
  i64 num_rows = counters[NUM_ROWS];
  int found = 0;
  for (i64 base = global_warp() * 32; base < num_rows; base += num_warps() * 32) {
    i64 r = base + lane_id(), begin, end;
    if (r >= num_rows) continue;
    I v = vertex[r];
    row_of(rows, (i64)v, begin, end);
    if (end <= low) continue;
    for (int k = 0; k < num_planes && (i64)v < plane_length[k]; k++)
      if (begin + k >= low)
        found += claim(planes[plane_offset[k] + v], v, closed, next, owned, rank, parent, level8, level32, wide, level);
  }
  add_of_block(counters, {FOUND}, {found});
}
