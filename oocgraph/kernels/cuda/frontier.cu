// What the plan wants to know of a frontier, and the forms that it and the results take.

// Marked vertices and the sum of their degrees, added to counters[slot] and counters[slot_edges].
extern "C" __global__ void count_edges(const u32* __restrict__ words, i64 num_words, LOOKUP_PARAMETERS, int slot, int slot_edges, i64* counters) {
  Lookup rows = LOOKUP_ARGUMENTS;
  i64 num_rows = 0, num_edges = 0;
  for (i64 base = global_warp() * 32; base < num_words; base += num_warps() * 32) {
    i64 w = base + lane_id();
    u32 bits = w < num_words ? words[w] : 0u;
    if (!bits) continue;
    num_rows += __popc(bits);
    i64 c = rows.num_indptr ? 0 : find_class(rows.first, rows.num_classes, w * 32);
    if (!rows.num_indptr && (c + 1 == rows.num_classes || w * 32 + 31 < rows.first[c + 1])) {
      num_edges += (i64)__popc(bits) * rows.value[c];
      continue;
    }
    for (; bits; bits &= bits - 1) {
      i64 begin, end;
      row_after(rows, c, w * 32 + __ffs((int)bits) - 1, begin, end);
      num_edges += end - begin;
    }
  }
  add_of_block(counters, {slot, slot_edges}, {num_rows, num_edges});
}

#define LOOKED_AT 16  // edges that a thread asks for before it looks at the first

// Try what a pull would do for the unvisited vertices of every `step`-th 64-bit word, changing nothing: a thread for each vertex. A list is
// looked at up to `most` resident edges; of a longer one all are counted as looked at, in vain.
template <class I>
__global__ void sample_heads(
    i64 step, i64 num_words, i64 num_vertices, LOOKUP_PARAMETERS, const I* __restrict__ planes, const i64* __restrict__ plane_offset,
    const i64* __restrict__ plane_length, int num_planes, const I* __restrict__ resident, i64 num_resident, i64 most,
    const u32* __restrict__ frontier, const u32* __restrict__ visited, i64* counters) {
  Lookup rows = LOOKUP_ARGUMENTS;
  i64 sampled = 0, probes = 0, found = 0, left = 0;
  i64 num_sampled_words = (num_words / 2 + step - 1) / step * 2;
  for (i64 i = global_warp(); i < num_sampled_words; i += num_warps()) {
    i64 w = i / 2 * step * 2 + (i & 1);
    i64 v = w * 32 + lane_id(), begin = 0, end = 0;
    bool is_open = v < num_vertices && !(visited[w] >> lane_id() & 1u), hit = false;
    sampled += is_open;
    for (int k = 0; k < num_planes && is_open && !hit && v < plane_length[k]; k++) {
      probes++;
      hit = is_marked(frontier, planes[plane_offset[k] + v]);
    }
    if (is_open && !hit && v < plane_length[num_planes]) {
      row_of(rows, v, begin, end);
      begin += num_planes;
    }
    i64 stop = end < num_resident ? end : num_resident, last = stop - begin < most ? stop : begin + most, e = begin;
    while (__any_sync(FULL, e < last && !hit)) {
      I y[LOOKED_AT];
      u32 marked = 0u;
      int count = hit ? 0 : last - e < LOOKED_AT ? (int)(last - e) : LOOKED_AT;
#pragma unroll
      for (int j = 0; j < LOOKED_AT; j++) {
        y[j] = 0;
        if (j < count) y[j] = resident[e + j];
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
    probes += e - begin;
    if (!hit && e < stop) probes += stop - e;
    if (!hit && begin < end && stop < end) left++;
    found += hit;
  }
  add_of_block(counters, {SAMPLED, PROBES, SAMPLE_FOUND, SAMPLE_UNDECIDED}, {sampled, probes, found, left});
}

extern "C" __global__ void fill_words(u32* words, i64 num_words, u32 value) {
  for (i64 w = global_thread(); w < num_words; w += num_threads()) words[w] = value;
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
