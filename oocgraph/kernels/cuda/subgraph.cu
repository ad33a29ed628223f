// The dependency subgraph of the active vertices, in one launch: three arrays and three counts, no word from the host in between.
//
//   active (a bitmap)  -> vertex   the active vertices, ascending
//   vertex             -> start    where the part of its list begins that is asked for
//                         offset   where its edges go in the subgraph: the exclusive sum of the lengths of these parts (the masked degrees)
//
// Sabet, Zhao, Gupta, "Subway: Minimizing Data Transfer during Out-of-GPU-Memory Graph Processing", EuroSys 2020, section 3. Differs from the paper
// in: a flag is a bit; positions and offsets are found as a tile is read, by two prefix sums of which neither is written (scan.cu); a row may be
// asked for in part (what is not resident, and of that a window); a subgraph larger than the room for it is taken in batches of rows.

#define TILE_VERTICES (32 * BLOCK)  // a thread reads a word

// What is asked of a row: behind its first `skip` edges, within edges low .. high - 1, and of the pages of 1 << page_shift edges that this lies in
// those behind the first `behind`, `window` of them (0: all).
struct Part {
  i64 skip, low, high;
  int page_shift;
  i64 behind, window;
};

// Where the part of row v begins, and how long it is; `goes_on`: whether the row asks for more behind it.
__device__ __forceinline__ i64 part_of(const Lookup& rows, const Part& part, i64 v, i64& begin, bool& goes_on) {
  i64 end;
  row_of(rows, v, begin, end);
  begin += part.skip;
  if (begin < part.low) begin = part.low;
  if (end > part.high) end = part.high;
  i64 page = (begin >> part.page_shift) + part.behind, stop = end;
  if (part.behind) begin = page << part.page_shift;
  if (part.window && stop > (page + part.window) << part.page_shift) stop = (page + part.window) << part.page_shift;
  goes_on = stop < end && begin < end;
  return stop > begin ? stop - begin : 0;
}

// Exclusive sum and maximum over the BLOCK threads of a block, and those of all; all of them must come here.
struct SumAndMax {
  i64 sum, most;
};
__device__ __forceinline__ SumAndMax block_exclusive_both(i64 x, i64 m, SumAndMax* shared, SumAndMax& total) {
  int lane = lane_id(), warp = warp_id();
  i64 sum = warp_inclusive_sum(x), most = m;
  for (int distance = 1; distance < 32; distance <<= 1) {
    i64 below = __shfl_up_sync(FULL, most, distance);
    if (lane >= distance && below > most) most = below;
  }
  i64 most_below = __shfl_up_sync(FULL, most, 1);
  __syncthreads();  // whoever still reads `shared` of the last call
  if (lane == 31) shared[warp] = SumAndMax{sum, most};
  __syncthreads();
  SumAndMax before{0, 0};
  total = SumAndMax{0, 0};
  for (int w = 0; w < WARPS; w++) {
    SumAndMax one = shared[w];
    if (w < warp) {
      before.sum += one.sum;
      if (one.most > before.most) before.most = one.most;
    }
    total.sum += one.sum;
    if (one.most > total.most) total.most = one.most;
  }
  before.sum += sum - x;
  if (lane && most_below > before.most) before.most = most_below;
  return before;
}

// Rows row0 .. row0 + capacity - 1 of the active vertices. Sets counters[NUM_ROWS] (how many there are), [NUM_EDGES] (of their parts), [NUM_BEYOND]
// (rows that go on behind their part), [page_slot] (distinct pages of 1 << count_shift edges that their parts lie in: all, or the first of each).
//
// `vertex`, `start` and `offset` may be null, where only the counts are wanted; `start` and `offset`, where only the vertices are. `tiles` is one
// word of tickets and three entries for each of max_tiles tiles. Where `most` is not negative and counters[FRONTIER_VERTICES] is above it, nothing
// is done. Pages ascend as rows do, so a page is shared with the rows before, not counting those that ask for nothing: what counts
// is the last page of all before (one more than it: 0 is none).
template <class I>
__global__ void __launch_bounds__(BLOCK, 3) list_subgraph(
    const u32* __restrict__ active, i64 num_words, i64 row0, i64 capacity, LOOKUP_PARAMETERS, i64 skip, i64 low, i64 high, int page_shift,
    i64 behind, i64 window, int count_shift, int first_pages_only, i64 most, I* vertex, i64* start, i64* offset, u64* tiles, i64 max_tiles,
    u64 launch, int page_slot, i64* counters) {
  __shared__ unsigned short tile_vertex[TILE_VERTICES];
  __shared__ int tile_sums[WARPS + 1];
  __shared__ SumAndMax tile_both[WARPS];
  __shared__ i64 tile_number, rows_before, edges_before, pages_before;

  if (most >= 0 && counters[FRONTIER_VERTICES] > most) return;
  Lookup rows = LOOKUP_ARGUMENTS;
  Part part{skip, low, high, page_shift, behind, window};
  u64 *of_rows = tiles + 1, *of_edges = of_rows + max_tiles, *of_pages = of_edges + max_tiles;
  const int thread = threadIdx.x;
  const i64 num_tiles = (num_words + BLOCK - 1) / BLOCK;
  const bool asks = offset || !vertex;
  i64 pages = 0, beyond = 0;
  for (;;) {
    __syncthreads();  // whoever still reads tile_number and tile_vertex
    if (thread == 0) tile_number = take_tile(tiles, num_tiles);
    __syncthreads();
    const i64 tile = tile_number;
    if (tile >= num_tiles) break;
    if (tile == 0 && thread == 0) {  // before the first entry is published, without which no other tile goes on
      counters[page_slot] = counters[NUM_BEYOND] = 0;
      __threadfence();
    }
    i64 w = tile * BLOCK + thread;
    u32 bits = w < num_words ? active[w] : 0u;
    int count, at = block_exclusive_sum(__popc(bits), tile_sums, count);
    for (; bits; bits &= bits - 1) tile_vertex[at++] = (unsigned short)(thread * 32 + __ffs((int)bits) - 1);
    if (warp_id() == 0) {
      i64 before = value_before(of_rows, tile, launch, (i64)count, PlusI64());
      if (lane_id() == 0) rows_before = before;
    }
    __syncthreads();
    const i64 number = rows_before - row0;  // in the batch, of the tile's first row
    const int first = number >= 0 ? 0 : -number < count ? (int)-number : count;
    const int stop = number + count <= capacity ? count : number >= capacity ? first : (int)(capacity - number);
    const i64 v0 = tile * TILE_VERTICES;
    i64 sum = 0, last_page = 0;
    if (asks) {
      for (int i = first + thread; i < stop; i += BLOCK) {
        i64 begin;
        bool goes_on;
        i64 length = part_of(rows, part, v0 + tile_vertex[i], begin, goes_on);
        sum += length;
        beyond += goes_on;
        if (length) last_page = ((first_pages_only ? begin : begin + length - 1) >> count_shift) + 1;  // ascends with i
      }
      SumAndMax total;
      block_exclusive_both(sum, last_page, tile_both, total);
      if (warp_id() == 0) {
        i64 before = value_before(of_edges, tile, launch, total.sum, PlusI64());
        if (lane_id() == 0) edges_before = before;
      } else if (warp_id() == 1) {
        i64 before = value_before(of_pages, tile, launch, total.most, MaxI64());
        if (lane_id() == 0) pages_before = before;
      }
      __syncthreads();
    }
    i64 edge = asks ? edges_before : 0, page = asks ? pages_before : 0;
    for (int base = first; base < stop; base += BLOCK) {
      int i = base + thread;
      i64 begin = 0, length = 0, v = 0;
      bool goes_on;
      if (i < stop) {
        v = v0 + tile_vertex[i];
        if (asks) length = part_of(rows, part, v, begin, goes_on);
      }
      i64 z = !length ? 0 : ((first_pages_only ? begin : begin + length - 1) >> count_shift) + 1;
      SumAndMax total{0, 0}, before{0, 0};
      if (asks) before = block_exclusive_both(length, z, tile_both, total);
      if (before.most < page) before.most = page;
      if (length) {
        i64 a = (begin >> count_shift) + 1;
        if (a <= before.most) a = before.most + 1;
        if (z >= a) pages += z - a + 1;
      }
      if (i < stop && vertex) vertex[number + i] = (I)v;
      if (i < stop && offset) {
        start[number + i] = begin;
        offset[number + i] = edge + before.sum;
      }
      edge += total.sum;
      if (page < total.most) page = total.most;
    }
    if (tile == num_tiles - 1 && thread == 0) {
      i64 left = number + count, listed = left < 0 ? 0 : left < capacity ? left : capacity;
      counters[NUM_ROWS] = listed;
      counters[NUM_EDGES] = edge;
      if (offset) offset[listed] = edge;
    }
  }
  add_of_block(counters, {page_slot, NUM_BEYOND}, {pages, beyond});
}
