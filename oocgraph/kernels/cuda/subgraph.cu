// The dependency subgraph of the active vertices, step by step: five arrays, no word from the host in between.
//
//   active (a bitmap)  -> positions  how many are active before each word           scan.cu: sum_marked, scan_sums, scan_marked
//   active, positions  -> vertex     the active vertices, ascending                 list_rows
//   vertex             -> start      where the part of its list begins that is asked for
//                         degree     and how long it is: the masked degree          mask_degrees
//   degree             -> offset     where its edges go in the subgraph             scan.cu: sum_values, scan_sums, scan_values
//
// Sabet, Zhao, Gupta, "Subway: Minimizing Data Transfer during Out-of-GPU-Memory Graph Processing", EuroSys 2020, section 3. Differs from the paper
// in: a flag is a bit and a position is kept for each word of 32, an eighth of a byte a vertex instead of eight; degrees are
// masked after the vertices are compacted, so what is summed is as long as the subgraph; a row may be asked for in part (what is
// not resident, and of that a window); a subgraph larger than the room for it is taken in batches of rows.

// Rows row0 .. row0 + capacity - 1 of the active vertices; counters[NUM_ROWS] says how many there are. `total` is what scan_sums left.
template <class I>
__global__ void list_rows(
    const u32* __restrict__ active, const i64* __restrict__ positions, i64 num_words, i64 row0, i64 capacity, I* vertex, i64* counters) {
  if (global_thread() == 0) {
    i64 rows = positions[num_words] - row0;
    counters[NUM_ROWS] = rows < 0 ? 0 : rows < capacity ? rows : capacity;
  }
  int lane = lane_id();
  for (i64 w0 = global_warp() * 32; w0 < num_words; w0 += num_warps() * 32) {
    i64 w = w0 + lane;
    u32 mine = w < num_words ? active[w] : 0u;
    i64 before = w < num_words ? positions[w] - row0 : 0;
    for (u32 words = __ballot_sync(FULL, mine != 0u); words; words &= words - 1) {
      int k = __ffs((int)words) - 1;
      u32 bits = __shfl_sync(FULL, mine, k);
      i64 at = __shfl_sync(FULL, before, k) + __popc(bits & ((1u << lane) - 1u));
      if ((bits >> lane & 1u) && at >= 0 && at < capacity) vertex[at] = (I)((w0 + k) * 32 + lane);
    }
  }
}

// The part of each row that is asked for: behind its first `skip` edges, within edges low .. high - 1, and of the pages of 1 << page_shift edges
// that this lies in those behind the first `behind`, `window` of them (0: all).
template <class I>
__global__ void mask_degrees(
    const I* __restrict__ vertex, LOOKUP_PARAMETERS, i64 skip, i64 low, i64 high, int page_shift, i64 behind, i64 window, i64* start,
    i64* degree, const i64* __restrict__ counters) {
  Lookup rows = LOOKUP_ARGUMENTS;
  i64 num_rows = counters[NUM_ROWS];
  for (i64 r = global_thread(); r < num_rows; r += num_threads()) {
    i64 begin, end;
    row_of(rows, (i64)vertex[r], begin, end);
    begin += skip;
    if (begin < low) begin = low;
    if (end > high) end = high;
    i64 page = (begin >> page_shift) + behind;
    if (behind) begin = page << page_shift;
    if (window && end > (page + window) << page_shift) end = (page + window) << page_shift;
    start[r] = begin;
    degree[r] = end > begin ? end - begin : 0;
  }
}

// Distinct pages of `indices` that the rows' parts lie in: all of them, or the first of each. Rows ascend, so a page is shared with the row before,
// not counting those that ask for nothing: their neighbours in the warp are asked by ballot, and what lies further back 32 rows at a time.
extern "C" __global__ void count_pages(
    const i64* __restrict__ start, const i64* __restrict__ degree, int page_shift, int first_pages_only, i64* counters) {
  i64 num_rows = counters[NUM_ROWS], pages = 0;
  int lane = lane_id();
  for (i64 base = global_warp() * 32; base < num_rows; base += num_warps() * 32) {
    i64 r = base + lane, length = r < num_rows ? degree[r] : 0;
    u32 asking = __ballot_sync(FULL, length > 0);
    if (!asking) continue;
    i64 begin = length > 0 ? start[r] : 0, further = -1;
    i64 a = begin >> page_shift, z = first_pages_only ? a : (begin + length - 1) >> page_shift;
    for (i64 back = base - 32; back >= 0; back -= 32) {
      u32 some = __ballot_sync(FULL, degree[back + lane] > 0);
      if (!some && start[back] > start[0]) continue;
      if (!some) break;  // nor has a row further back any edges: all begin where the first one does
      i64 q = back + 31 - __clz((int)some);
      further = (first_pages_only ? start[q] : start[q] + degree[q] - 1) >> page_shift;
      break;
    }
    u32 below = asking & ((1u << lane) - 1u);
    i64 last = __shfl_sync(FULL, z, below ? 31 - __clz((int)below) : lane);
    if (!below) last = further;
    if (a <= last) a = last + 1;
    if (length > 0 && z >= a) pages += z - a + 1;
  }
  add_of_block(counters, {NUM_PAGES}, {pages});
}
