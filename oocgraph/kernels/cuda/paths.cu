// Shortest paths by two piles: near vertices hand their distances on, far ones wait.
//
//   pending (a bitmap)  -> near, told   those nearer than a limit, which leave the pile; how near the others are      select_near
//   rows of `near`      -> distance     the least sum for each neighbour; whose distance got better is pending        relax<DISTANCES>
//                       -> parent       of neighbours whose sum is the distance, the smallest                         relax<PARENTS>
//
// Davidson, Baxter, Garland, Owens, "Work-Efficient Parallel GPU Methods for Single-Source Shortest Paths", IPDPS 2014, section 4.3
// (near-far pile). Differs from the paper in: a pile is a bitmap, so that a vertex is in it once, and nothing has to be removed from it
// twice; edges are taken in equal shares, not by size of rows; parents are found, by a second look at the same edges, and do not depend on
// the order of threads: a better distance forgets the parent, an equal one may lower it.
//
// An edge that hands a distance on as it is (of weight 0, or lost in rounding) makes nobody a parent, or vertices could name each other in a
// circle. Vertices that no other edge leads to are orphans at the end: find_orphans, relax<ORPHANS> and adopt give them the smallest
// parent that has one, level by level.

enum Told { NUM_NEAR, NEAREST, FARTHEST, WHY, FROM, TO, NUM_TOLD = 8 };
enum Pass { DISTANCES, PARENTS, ORPHANS };
enum Failure { OVERFLOWS = 1, NO_LENGTH = 2 };

#define NOTHING_LEFT 0x7fffffffffffffffll

// What distances of a type are made of. Sums of integers are i64: none of two valid terms overflows.
template <class D>
struct Distances;
template <>
struct Distances<int> {
  typedef i64 Sum;
  static const bool overflows = true;
  static __device__ __forceinline__ i64 most() { return 0x7ffffffell; }
};
template <>
struct Distances<i64> {
  typedef i64 Sum;
  static const bool overflows = true;
  static __device__ __forceinline__ i64 most() { return 1ll << 62; }
};
template <>
struct Distances<double> {
  typedef double Sum;
  static const bool overflows = false;
  static __device__ __forceinline__ double most() { return 1.7976931348623157e308; }
};

// Weight of edge e; `kind` is the bytes of an element, negative of unsigned integers.
__device__ __forceinline__ void weight_of(const void* weights, int kind, i64 e, i64& weight) {
  switch (kind) {
    case 1: weight = ((const signed char*)weights)[e]; break;
    case -1: weight = ((const unsigned char*)weights)[e]; break;
    case 2: weight = ((const short*)weights)[e]; break;
    case -2: weight = ((const unsigned short*)weights)[e]; break;
    case 4: weight = ((const int*)weights)[e]; break;
    case -4: weight = ((const u32*)weights)[e]; break;
    default: weight = ((const i64*)weights)[e];
  }
}

// A float's bits are widened here: a conversion would take the smallest for 0 where such are flushed.
__device__ __forceinline__ void weight_of(const void* weights, int kind, i64 e, double& weight) {
  if (kind == 8) {
    weight = ((const double*)weights)[e];
    return;
  }
  u32 bits = ((const u32*)weights)[e];
  u64 sign = (u64)(bits >> 31) << 63, exponent = bits >> 23 & 255u, fraction = bits & 0x7fffffu;
  if (exponent) {
    exponent = exponent == 255u ? 2047u : exponent + 896u;
    weight = __longlong_as_double((i64)(sign | exponent << 52 | fraction << 29));
  } else {
    weight = (double)(int)fraction * 1.401298464324817e-45;  // 2^-149
    if (sign) weight = -weight;
  }
}

__device__ __forceinline__ i64 sum_of(i64 own, i64 weight) {
  const i64 most = 1ll << 62;
  return weight <= most - own ? own + weight : most + 1;
}
__device__ __forceinline__ double sum_of(double own, double weight) { return own + weight; }

// Lower what is at `at` to x, which is not negative; what was there.
__device__ __forceinline__ int lower_distance(int* at, i64 x) { return atomicMin(at, (int)x); }
__device__ __forceinline__ i64 lower_distance(i64* at, i64 x) { return atomicMin(at, x); }
__device__ __forceinline__ double lower_distance(double* at, double x) {
  return __longlong_as_double(atomicMin((i64*)at, __double_as_longlong(x)));  // of such numbers the bits are in the same order
}

// A distance as bits that are in the same order.
__device__ __forceinline__ i64 ordered(int x) { return x; }
__device__ __forceinline__ i64 ordered(i64 x) { return x; }
__device__ __forceinline__ i64 ordered(double x) { return __double_as_longlong(x); }

template <class T>
__device__ __forceinline__ T now_at(const T* at) {
  return *(const volatile T*)at;
}

// Begin to count; `all` forgets a failure, too.
extern "C" __global__ void clear_told(i64* told, int all) {
  for (i64 i = global_thread(); i < NUM_TOLD; i += num_threads())
    if (i < WHY || all) told[i] = i == NEAREST ? NOTHING_LEFT : 0;
}

// Nothing is reached, and nothing is pending.
template <class I, class D>
__global__ void begin_paths(i64 num_vertices, D* distance, D unreached, I* parent, I none, u32* pending, i64 num_words) {
  for (i64 v = global_thread(); v < num_vertices; v += num_threads()) {
    distance[v] = unreached;
    parent[v] = none;
  }
  for (i64 w = global_thread(); w < num_words; w += num_threads()) pending[w] = 0u;
}

// The sources are reached, and pending.
template <class I, class D>
__global__ void begin_at(const i64* sources, i64 num_sources, D* distance, I* parent, u32* pending) {
  for (i64 i = global_thread(); i < num_sources; i += num_threads()) {
    i64 v = sources[i];
    distance[v] = (D)0;
    parent[v] = (I)v;
    atomicOr(pending + (v >> 5), 1u << (v & 31));
  }
}

// Of the pending those nearer than `limit` become near; those beyond `bound` are dropped. told[NUM_NEAR] gets how many are near,
// told[NEAREST] how near the others are.
template <class D>
__global__ void select_near(u32* pending, u32* near, i64 num_words, const D* __restrict__ distance, D limit, D bound, i64* told) {
  i64 nearest = NOTHING_LEFT, count = 0;
  int lane = lane_id();
  for (i64 w0 = global_warp() * 32; w0 < num_words; w0 += num_warps() * 32) {
    i64 w = w0 + lane;
    u32 mine = w < num_words ? pending[w] : 0u, taken = 0u, rest = 0u;
    for (u32 words = __ballot_sync(FULL, mine != 0u); words; words &= words - 1) {
      int k = __ffs((int)words) - 1;
      u32 bits = __shfl_sync(FULL, mine, k);
      bool on = bits >> lane & 1u;
      D d = on ? distance[(w0 + k) * 32 + lane] : (D)0;
      bool stays = on && d <= bound, is_near = stays && d < limit;
      if (stays && !is_near && ordered(d) < nearest) nearest = ordered(d);
      u32 takes = __ballot_sync(FULL, is_near), leaves = __ballot_sync(FULL, stays && !is_near);
      if (lane == k) {
        taken = takes;
        rest = leaves;
      }
    }
    if (w < num_words) near[w] = taken;
    if (mine) pending[w] = rest;
    count += __popc(taken);
  }
  for (int step = 16; step; step >>= 1) {
    i64 other = __shfl_xor_sync(FULL, nearest, step);
    if (other < nearest) nearest = other;
  }
  if (lane == 0 && nearest != NOTHING_LEFT) atomicMin(&told[NEAREST], nearest);
  add_of_block(told, {NUM_NEAR}, {count});
}

template <class I>
__device__ __forceinline__ void fail(i64* told, int why, I v, I y) {
  if (atomicCAS((u64*)&told[WHY], 0ull, (u64)why) == 0ull) {
    told[FROM] = (i64)v;
    told[TO] = (i64)y;
  }
}

// What an edge from v, at distance `own`, to y does.
template <int PASS, class I, class D>
__device__ __forceinline__ void follow(
    I v, I y, D own, typename Distances<D>::Sum sum, D* distance, I* parent, const u32* orphans, u32* pending, D bound, I none, i64* told) {
  typedef typename Distances<D>::Sum Sum;
  const Sum most = Distances<D>::most();
  D old = now_at(&distance[y]);
  if (PASS == DISTANCES) {
    if (!(sum >= (Sum)own)) fail(told, NO_LENGTH, v, y);
    else if (Distances<D>::overflows && sum > most && (Sum)old > most && (Sum)bound > most) fail(told, OVERFLOWS, v, y);
  }
  if (!(sum >= (Sum)own) || sum > (Sum)bound || sum > most) return;
  if (PASS == DISTANCES) {
    if (!(sum < (Sum)old) || !(sum < (Sum)lower_distance(&distance[y], sum))) return;
    parent[y] = none;
    if (!(now_at(&pending[y >> 5]) >> (y & 31) & 1u)) atomicOr(&pending[y >> 5], 1u << (y & 31));
  }
  if (PASS == PARENTS && sum == (Sum)old && sum != (Sum)own && v < now_at(&parent[y])) atomicMin(&parent[y], v);
  if (PASS == ORPHANS && sum == (Sum)old && sum == (Sum)own && is_marked(orphans, y)) {
    atomicMin(&parent[y], v);
    atomicOr(&pending[y >> 5], 1u << (y & 31));
  }
}

// Edges e0 .. e1 - 1 of the rows that offset describes (see expand.cu): edge e of row i is edges[begin[i] + (e - offset[i]) - base], and so is
// its weight. Blocks take equal shares of them, cut anywhere in a row.
template <class I, class D, int PASS>
__global__ void __launch_bounds__(BLOCK, 4) relax(
    const I* __restrict__ vertex, const i64* __restrict__ begin, const i64* __restrict__ offset, const i64* __restrict__ counters, i64 e0,
    i64 e1, const I* __restrict__ edges, const void* __restrict__ weights, int kind, i64 base, D* distance, I* parent,
    const u32* __restrict__ orphans, u32* pending, D bound, I none, i64* told) {
  typedef typename Distances<D>::Sum Sum;
  __shared__ i64 relax_rows[2];
  __shared__ i64 relax_offset[BLOCK + 1];
  __shared__ i64 relax_begin[BLOCK];
  __shared__ I relax_vertex[BLOCK];
  __shared__ D relax_own[BLOCK];
  int thread = threadIdx.x;
  i64 num_rows = counters[NUM_ROWS];
  if (!num_rows) return;
  i64 num_edges = offset[num_rows];
  if (e1 > num_edges) e1 = num_edges;
  i64 share = share_of(e1 - e0);
  for (i64 s0 = e0 + blockIdx.x * share; s0 < e1; s0 += gridDim.x * share) {
    i64 s1 = s0 + share < e1 ? s0 + share : e1;
    __syncthreads();  // others may still read relax_rows
    find_rows(offset, num_rows, s0, s1, relax_rows);
    __syncthreads();
    i64 stop = relax_rows[1];
    for (i64 tile = relax_rows[0]; tile < stop; tile += BLOCK) {
      int count = stop - tile < BLOCK ? (int)(stop - tile) : BLOCK;
      __syncthreads();  // others may still look at the last tile
      if (thread < count) {
        I v = vertex[tile + thread];
        relax_vertex[thread] = v;
        relax_own[thread] = now_at(&distance[v]);
        relax_begin[thread] = begin[tile + thread];
        relax_offset[thread] = offset[tile + thread];
        if (thread == count - 1) relax_offset[count] = offset[tile + count];
      }
      __syncthreads();
      i64 a = relax_offset[0] > s0 ? relax_offset[0] : s0, z = relax_offset[count] < s1 ? relax_offset[count] : s1;
      for (i64 e = a + thread; e < z; e += BLOCK) {
        int row = (int)find_class(relax_offset, count, e);
        i64 at = relax_begin[row] + (e - relax_offset[row]) - base;
        Sum weight;
        weight_of(weights, kind, at, weight);
        D own = relax_own[row];
        follow<PASS>(
            relax_vertex[row], edges[at], own, sum_of((Sum)own, weight), distance, parent, orphans, pending, bound, none, told);
      }
    }
  }
}

// The largest distance of some vertices, to told[FARTHEST].
template <class D>
__global__ void find_farthest(const i64* __restrict__ vertices, i64 count, const D* __restrict__ distance, i64* told) {
  for (i64 i = global_thread(); i < count; i += num_threads()) atomicMax(&told[FARTHEST], ordered(distance[vertices[i]]));
}

// Which vertices have been reached, in `near` those that have a parent and in `orphans` those that have none; told[NUM_NEAR] gets how many
// have none.
template <class I, class D>
__global__ void find_orphans(
    i64 num_vertices, i64 num_words, const D* __restrict__ distance, D unreached, D bound, const I* __restrict__ parent, I none, u32* near,
    u32* orphans, i64* told) {
  i64 count = 0;
  for (i64 w = global_warp(); w < num_words; w += num_warps()) {
    i64 v = w * 32 + lane_id();
    bool is_reached = v < num_vertices && distance[v] < unreached && distance[v] <= bound, has_none = is_reached && parent[v] == none;
    u32 with = __ballot_sync(FULL, is_reached && !has_none), without = __ballot_sync(FULL, has_none);
    if (lane_id() == 0) {
      near[w] = with;
      orphans[w] = without;
      count += __popc(without);
    }
  }
  add_of_block(told, {NUM_NEAR}, {count});
}

// Those in `pending` have found a parent: they are no orphans any more, and the next to be one.
extern "C" __global__ void adopt(u32* pending, u32* orphans, u32* near, i64 num_words, i64* told) {
  i64 count = 0;
  for (i64 w = global_thread(); w < num_words; w += num_threads()) {
    u32 found = pending[w];
    near[w] = found;
    orphans[w] &= ~found;
    pending[w] = 0u;
    count += __popc(found);
  }
  add_of_block(told, {NUM_NEAR}, {count});
}
