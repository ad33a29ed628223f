// Push many levels in one launch, for frontiers so small that a launch per level would cost more than its work. Semantics of
// oocgraph/kernels/cpu.py push_levels, but for pages: what is not on the device ends the call.
//
// One block, whose barriers take the place of launches. A level takes LEVEL_BLOCK rows of the frontier at a time: a prefix sum over their
// degrees numbers their edges, and each edge finds its row by bisection, so that any lengths of rows keep all threads busy.

#define LEVEL_BLOCK 512  // more would spill on devices with 32,768 registers a block
#define LEVEL_WARPS (LEVEL_BLOCK / 32)

// Why it stopped, as in oocgraph/kernels/cpu.py.
enum LevelsStatus { STATUS_DONE, STATUS_GROWN, STATUS_LOG_FULL, STATUS_MISSES };

// Exclusive sum over the LEVEL_BLOCK threads, and the total; see block_exclusive_sum.
__device__ __forceinline__ i64 level_exclusive_sum(i64 x, i64* shared, i64& total) {
  i64 inclusive = warp_inclusive_sum(x);
  __syncthreads();
  if (lane_id() == 31) shared[warp_id()] = inclusive;
  __syncthreads();
  i64 sums = warp_inclusive_sum(lane_id() < LEVEL_WARPS ? shared[lane_id()] : (i64)0);  // by every warp: a barrier less
  total = __shfl_sync(FULL, sums, 31);
  i64 before = __shfl_sync(FULL, sums, warp_id() ? warp_id() - 1 : 0);
  return (warp_id() ? before : 0) + inclusive - x;
}

// state (8,): 0 frontier size, 1 its edges, 2 level it is on, 4 rows of `log` used, 6 which queue holds it, 7 status (out).
// limits (6,): 0 last level to find, 1 edges and 5 vertices above which a frontier is left to others, 3 largest level that can be noted.
// log (log_capacity, 2): frontier size and edges of each level. Queues have `capacity` (< 2^31) entries; a frontier with more edges than
// that is left too. An edge is read from `edges` if it is one of the first num_edges_readable, else from the planes; a level with an edge
// that is in neither is not begun. Whatever the status, state and queues are those between two levels, and a later call goes on from there.
template <class I>
__global__ void __launch_bounds__(LEVEL_BLOCK, 1) push_levels(
    I* queue_a, I* queue_b, i64 capacity, i64* state, const i64* __restrict__ limits, i64* log, i64 log_capacity, LOOKUP_PARAMETERS,
    const I* __restrict__ planes, const i64* __restrict__ plane_offset, const i64* __restrict__ plane_length, int num_planes,
    const I* __restrict__ edges, i64 num_edges_readable, u32* visited, I* parent, unsigned char* level8, int* level32, int wide) {
  __shared__ i64 levels_sums[LEVEL_WARPS];
  __shared__ i64 levels_at[LEVEL_BLOCK];      // position of the row's edge number 0 of the tile's edges
  __shared__ int levels_before[LEVEL_BLOCK];  // edges of the tile before the row
  __shared__ I levels_vertex[LEVEL_BLOCK];
  __shared__ int levels_found, levels_missed;

  Lookup rows = LOOKUP_ARGUMENTS;
  int thread = threadIdx.x, lane = lane_id(), status;
  i64 count = state[0], num_edges = state[1], level = state[2], log_row = state[4], which = state[6];
  const i64 last_level = limits[0], most_edges = limits[1] < capacity ? limits[1] : capacity;
  const i64 largest_level = limits[3], most_vertices = limits[5] < capacity ? limits[5] : capacity;
  if (thread == 0) levels_missed = 0;
  __syncthreads();
  for (;;) {
    const I* queue = which ? queue_b : queue_a;
    I* next_queue = which ? queue_a : queue_b;
    i64 begin = 0, end = 0, before = 0, sum = 0;
    if (count <= capacity) {  // else the caller left its list incomplete
      for (i64 i = thread; i < count; i += LEVEL_BLOCK) {
        row_of(rows, (i64)queue[i], begin, end);
        sum += end - begin;
        if (end > num_edges_readable && end - begin > num_planes) levels_missed = 1;
      }
      before = level_exclusive_sum(sum, levels_sums, num_edges);
    }
    if (count == 0 || level >= last_level) status = STATUS_DONE;
    else if (num_edges > most_edges || count > most_vertices || level >= largest_level) status = STATUS_GROWN;
    else if (log_row == log_capacity) status = STATUS_LOG_FULL;
    else if (levels_missed) status = STATUS_MISSES;
    else status = -1;
    if (status >= 0) break;
    if (thread == 0) {
      levels_found = 0;
      log[2 * log_row] = count;
      log[2 * log_row + 1] = num_edges;
    }
    log_row++;
    level++;
    for (i64 tile = 0; tile < count; tile += LEVEL_BLOCK) {
      i64 total = num_edges, i = tile + thread;
      if (count > LEVEL_BLOCK) {
        begin = end = 0;
        if (i < count) row_of(rows, (i64)queue[i], begin, end);
        before = level_exclusive_sum(end - begin, levels_sums, total);
      }
      levels_before[thread] = (int)before;
      levels_at[thread] = begin - before;
      if (i < count) levels_vertex[thread] = queue[i];
      __syncthreads();
      int num_rows = count - tile < LEVEL_BLOCK ? (int)(count - tile) : LEVEL_BLOCK;
      for (int slot = thread; slot - thread < (int)total; slot += LEVEL_BLOCK) {
        bool won = false;
        I y = 0;
        int r = 0;
        if (slot < (int)total) {
          for (int high = num_rows; high - r > 1;) {  // the last row that begins at or before the slot; those of no edges begin behind it
            int middle = (r + high) >> 1;
            if (levels_before[middle] <= slot) r = middle;
            else high = middle;
          }
          i64 e = levels_at[r] + slot;
          y = e < num_edges_readable ? edges[e] : planes[plane_offset[slot - levels_before[r]] + (i64)levels_vertex[r]];
          u32 bit = 1u << (y & 31);
          won = !(visited[y >> 5] & bit) && !(atomicOr(&visited[y >> 5], bit) & bit);
        }
        u32 winners = __ballot_sync(FULL, won);
        if (!winners) continue;
        int at = 0;
        if (lane == 0) at = atomicAdd(&levels_found, __popc(winners));
        at = __shfl_sync(FULL, at, 0) + __popc(winners & ((1u << lane) - 1u));
        if (won) {
          next_queue[at] = y;
          parent[y] = levels_vertex[r];
          set_level(level8, level32, wide, (i64)y, (int)level);
        }
      }
      __syncthreads();
    }
    count = levels_found;
    which = 1 - which;
  }
  if (thread == 0) {
    state[0] = count;
    state[1] = num_edges;
    state[2] = level;
    state[4] = log_row;
    state[6] = which;
    state[7] = status;
  }
}
