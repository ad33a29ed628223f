// Push (top-down): gather the neighbours of a batch's rows, and visit those that are not closed.
//
// Merrill, Garland, Grimshaw, "Scalable GPU Graph Traversal", PPoPP 2012, sections 5 (gathering) and 6 (duplicates). Four ways to gather:
//
//   SERIAL   a thread takes a row                                               as unbalanced as the degrees are
//   BY_WARP  the warp takes the rows of its threads, one after the other        balanced within a warp, which a short row does not fill
//   BY_SCAN  a block packs its rows into a gather vector in shared memory       no idle thread, but each row is written there by one thread
//   HYBRID   what fills a block is taken by it, what fills a warp by the warp, the rest is packed
//
// An edge passes a filter (a plain read of the bitmap), then, where a warp looks at several rows, a cull of duplicates within it, then an
// atomic that tells who was first. Found vertices collect in shared memory, at positions from a prefix sum over the warp, 32 of which
// take one atomic on the queue's size and one coalesced write.
//
// Differs from the paper in: rows come in degree order, so that equal numbers of rows would give the first block most of the edges; blocks
// take equal shares of edges instead, cut anywhere in a row (but for SERIAL). A row that is taken by a block or a warp is looked at from a
// multiple of 32 entries on, one line of memory for a warp, and its last entries, which do not fill one, are packed with the short rows.
// The gather vector holds rows, not edges: a byte each.

enum Method { SERIAL, BY_WARP, BY_SCAN, HYBRID };

#define UNROLL 4           // edges that a thread asks for before it looks at the first
#define GATHER_SLOTS 2048  // entries of the gather vector
#define CULL_SLOTS 256     // entries of a warp's hash table

// Blocks that a multiprocessor is to hold: as many as leave each thread the registers it needs. sm_75 and sm_107 hold 1,024 threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ != 1070
#define EXPAND_BLOCKS(I) (sizeof(I) == 4 ? 5 : 4)
#else
#define EXPAND_BLOCKS(I) 4
#endif

template <class I>
struct Expansion {
  const I* edges;  // that of position 0
  u32 *closed, *next;
  const u32* owned;
  const I* rank;
  I* parent;
  unsigned char* level8;
  int* level32;
  int wide, level;
  I* queue;
  i64 queue_capacity;
  i64* counters;
  // Of the warp, in shared memory:
  I* found;                  // 64 entries
  i64* num_found;            // written to the queue so far
  unsigned char* cull_lane;  // CULL_SLOTS entries
};

// The first `count` found vertices go to the queue; what is behind the 32nd moves up.
template <class I>
__device__ __forceinline__ void write_found(const Expansion<I>& p, int count, int& waiting) {
  int lane = lane_id(), rest = waiting - 32;
  u64 at = 0;
  if (lane == 0) {
    at = atomicAdd((u64*)&p.counters[QUEUE_SIZE], (u64)count);
    *p.num_found += count;
  }
  __syncwarp();
  I mine = lane < count ? p.found[lane] : I(0);
  I moved = lane < rest ? p.found[32 + lane] : I(0);
  at = __shfl_sync(FULL, at, 0) + lane;
  if (lane < count && (i64)at < p.queue_capacity) p.queue[at] = mine;
  __syncwarp();
  if (lane < rest) p.found[lane] = moved;
  waiting -= count;
}

// Whether another lane has the same open y and will see to it. One write and one read: of the lanes whose y falls into a slot one is noted.
template <class I>
__device__ __forceinline__ bool is_culled(const Expansion<I>& p, bool open, I y) {
  int lane = lane_id(), slot = (int)(y & (CULL_SLOTS - 1)), other = lane;
  __syncwarp();
  if (open) p.cull_lane[slot] = (unsigned char)lane;
  __syncwarp();
  if (open) other = p.cull_lane[slot];
  return __shfl_sync(FULL, y, other) == y && other != lane;
}

// Look at UNROLL edges of each thread. `edge(u, position)` says whether there is a u-th and where, `source(u)` its row's vertex; MIXED if
// lanes have different rows. All lanes come here.
template <bool MIXED, class I, class Edge, class Source>
__device__ __forceinline__ void look_at(const Expansion<I>& p, int& waiting, Edge edge, Source source) {
  I y[UNROLL];
  u32 old[UNROLL], asked = 0u, open = 0u, won = 0u;
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    i64 position;
    y[u] = 0;
    if (edge(u, position)) {
      y[u] = __ldcs(p.edges + position);
      asked |= 1u << u;
    }
  }
  __syncwarp();  // so that the compiler asks for all of them before it waits for one
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (asked >> u & 1u) open |= (~p.closed[y[u] >> 5] >> (y[u] & 31) & 1u) << u;
  if (!__any_sync(FULL, open != 0u)) return;
  if (MIXED) {
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (__any_sync(FULL, open >> u & 1u) && is_culled(p, open >> u & 1u, y[u])) open &= ~(1u << u);
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    old[u] = FULL;
    if (open >> u & 1u) old[u] = atomicOr(&p.closed[y[u] >> 5], 1u << (y[u] & 31));
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++) won |= (~old[u] >> (y[u] & 31) & 1u) << u;
  for (u32 winners; (winners = __ballot_sync(FULL, won != 0u)) != 0u; won &= won - 1u) {
    if (won) {
      int u = __ffs((int)won) - 1;
      I mine = y[0];
#pragma unroll
      for (int k = 1; k < UNROLL; k++)
        if (u == k) mine = y[k];
      note(mine, source(u), p.next, p.owned, p.rank, p.parent, p.level8, p.level32, p.wide, p.level);
      p.found[waiting + __popc(winners & ((1u << lane_id()) - 1u))] = mine;
    }
    waiting += __popc(winners);
    if (waiting >= 32) write_found(p, 32, waiting);
  }
}

// Entries that the `stride` threads which take a row skip before edge `at`, so that each warp asks for a whole line.
template <class I>
__device__ __forceinline__ int lead_of(const Expansion<I>& p, i64 at) {
  return (int)((u64)(p.edges + at) / sizeof(I) & 31);
}

// How many of the `count` edges at `at` are taken by `stride` threads that do not leave one of them idle but for the lead.
template <class I>
__device__ __forceinline__ int share_of(const Expansion<I>& p, i64 at, int count, int stride) {
  if (count < stride) return 0;
  int lead = lead_of(p, at);
  return ((count + lead) & ~(stride - 1)) - lead;
}

// Edges at .. at + count - 1 of v's row, by `stride` threads.
template <class I>
__device__ __forceinline__ void take_row(const Expansion<I>& p, int& waiting, i64 at, int count, const I* v, int thread, int stride) {
  int lead = lead_of(p, at);
  for (int slot = thread - lead; slot - thread < count; slot += UNROLL * stride)
    look_at<false>(
        p, waiting,
        [&](int u, i64& position) {
          position = at + slot + u * stride;
          return slot + u * stride >= 0 && slot + u * stride < count;
        },
        [&](int) { return *v; });
}

// Edges e0 .. e1 - 1 of the rows that offset describes, a piece that may begin and end anywhere in a row: edge e of row i is
// edges[begin[i] + (e - offset[i]) - base]. counters_in[NUM_ROWS] is the number of rows; e1 may lie behind their last edge.
template <class I, int METHOD>
__global__ void __launch_bounds__(BLOCK, EXPAND_BLOCKS(I)) expand(
    const I* __restrict__ vertex, const i64* __restrict__ begin, const i64* __restrict__ offset, const i64* counters_in, i64 e0, i64 e1,
    const I* __restrict__ edges, i64 base, u32* closed, u32* next, const u32* __restrict__ owned, const I* __restrict__ rank, I* parent,
    unsigned char* level8, int* level32, int wide, int level, I* queue, i64 queue_capacity, i64* counters) {
  __shared__ I expand_found[WARPS][64];
  __shared__ i64 expand_num_found[WARPS];
  __shared__ unsigned char expand_cull[WARPS][CULL_SLOTS];
  __shared__ i64 expand_rows[2];
  __shared__ i64 expand_at[BLOCK];
  __shared__ int expand_count[BLOCK];
  __shared__ u32 expand_large[WARPS];
  __shared__ unsigned char expand_gather[GATHER_SLOTS];
  __shared__ int expand_sums[WARPS + 1];

  int thread = threadIdx.x, warp = warp_id(), waiting = 0;
  Expansion<I> p{edges - base, closed, next, owned, rank, parent, level8, level32, wide, level, queue, queue_capacity, counters,
                 expand_found[warp], &expand_num_found[warp], expand_cull[warp]};
  if (lane_id() == 0) expand_num_found[warp] = 0;
  i64 num_rows = counters_in[NUM_ROWS], num_edges = offset[num_rows];
  if (e1 > num_edges) e1 = num_edges;
  i64 share = METHOD == SERIAL ? e1 - e0 : share_of(e1 - e0);
  for (i64 s0 = METHOD == SERIAL ? e0 : e0 + blockIdx.x * share; s0 < e1; s0 += METHOD == SERIAL ? share : gridDim.x * share) {
    i64 s1 = s0 + share < e1 ? s0 + share : e1;
    __syncthreads();  // whoever still reads expand_rows
    find_rows(offset, num_rows, s0, s1, expand_rows);
    __syncthreads();
    i64 stop = expand_rows[1];
    i64 tile = expand_rows[0] + (METHOD == SERIAL ? (i64)blockIdx.x * BLOCK : 0);
    for (; tile < stop; tile += METHOD == SERIAL ? (i64)gridDim.x * BLOCK : BLOCK) {
      i64 row = tile + thread, at = 0, length = 0;
      if (row < stop) {
        i64 from = offset[row], to = offset[row + 1];
        i64 a = from > s0 ? from : s0;
        length = (to < s1 ? to : s1) - a;
        at = begin[row] + (a - from);
      }
      if (METHOD == SERIAL) {
        for (i64 slot = 0; __any_sync(FULL, slot < length); slot += UNROLL)
          look_at<true>(
              p, waiting,
              [&](int u, i64& position) {
                position = at + slot + u;
                return slot + u < length;
              },
              [&](int) { return vertex[row]; });
        continue;
      }
      int count = (int)length;  // at most a share
      if (METHOD == HYBRID) {
        u32 large = __ballot_sync(FULL, count >= BLOCK);
        expand_at[thread] = at;  // nobody still reads that of the last tile: its gathering has ended with a barrier
        expand_count[thread] = count;
        if (lane_id() == 0) expand_large[warp] = large;
        __syncthreads();
        for (int w = 0; w < WARPS; w++)
          for (large = expand_large[w]; large; large &= large - 1) {
            int r = w * 32 + __ffs((int)large) - 1;
            i64 r_at = expand_at[r];
            take_row(p, waiting, r_at, share_of(p, r_at, expand_count[r], BLOCK), vertex + tile + r, thread, BLOCK);
          }
        int taken = share_of(p, at, count, BLOCK);
        at += taken;
        count -= taken;
      }
      if (METHOD == HYBRID || METHOD == BY_WARP) {
        int taken = METHOD == BY_WARP ? count : share_of(p, at, count, 32);
        for (u32 rows = __ballot_sync(FULL, taken > 0); rows; rows &= rows - 1) {
          int r = __ffs((int)rows) - 1;
          take_row(p, waiting, __shfl_sync(FULL, at, r), __shfl_sync(FULL, taken, r), vertex + tile + warp * 32 + r, lane_id(), 32);
        }
        at += taken;
        count -= taken;
      }
      if (METHOD == HYBRID || METHOD == BY_SCAN) {
        int total, before = block_exclusive_sum(count, expand_sums, total);
        expand_at[thread] = at - before;
        int packed = 0;
        for (int done = 0; done < total; done += GATHER_SLOTS) {
          for (; packed < count && before + packed < done + GATHER_SLOTS; packed++)
            expand_gather[before + packed - done] = (unsigned char)thread;
          __syncthreads();
          int num_slots = total - done < GATHER_SLOTS ? total - done : GATHER_SLOTS;
          for (int slot = thread; slot - thread < num_slots; slot += UNROLL * BLOCK)
            look_at<true>(
                p, waiting,
                [&](int u, i64& position) {
                  int s = slot + u * BLOCK;
                  if (s >= num_slots) return false;
                  position = expand_at[expand_gather[s]] + done + s;
                  return true;
                },
                [&](int u) { return vertex[tile + expand_gather[slot + u * BLOCK]]; });
          __syncthreads();
        }
      }
    }
  }
  if (waiting) write_found(p, waiting, waiting);
  if (lane_id() == 0) add_to(&counters[FOUND], expand_num_found[warp]);
}
