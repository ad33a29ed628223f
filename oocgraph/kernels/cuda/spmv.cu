// y = plus(y, A x) over a range of edges that may begin and end anywhere in a line: of a PartialCSR by rows, of a PartialCSC by columns.
// S says how: PLUS sums products, MIN takes the least of sums; a NaN is handed on. Null values are ones. Columns of x are trusted.
//
// Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022: equal shares of non-zeros, not of rows; a row
// that is cut gets partial sums. The same again within a device: a warp takes SPMV_TILE edges, multiplies them by coalesced reads into
// shared memory, and sums them there by rows, as a block does in the stream kernel of Greathouse and Daga, "Efficient Sparse
// Matrix-Vector Multiplication on GPUs Using the CSR Storage Format", SC 2014; warps do not wait for each other. The threads that sum a
// row are as many as it has entries on average.

#define SPMV_TILE 256
#define SPMV_HUBS 4096  // rows whose sums a block of spmv_columns keeps in shared memory: 32 KiB of doubles, four blocks a multiprocessor
#define SPMM_EDGES 64   // edges that a group of spmm takes

template <class V>
__device__ __forceinline__ void add_atomically(V* at, V x) {
  atomicAdd(at, x);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600  // which adds no doubles
template <>
__device__ __forceinline__ void add_atomically<double>(double* at, double x) {
  u64 before = *(u64*)at, expected;
  do {
    expected = before;
    before = atomicCAS((u64*)at, expected, (u64)__double_as_longlong(x + __longlong_as_double((i64)expected)));
  } while (before != expected);
}
#endif

template <class V>
struct Bits;
template <>
struct Bits<float> {
  typedef u32 type;
};
template <>
struct Bits<double> {
  typedef u64 type;
};

template <class V>
__device__ __forceinline__ void lower_atomically(V* at, V x) {
  typedef typename Bits<V>::type B;
  B before = *(B*)at, lower = *(B*)&x;
  for (;;) {
    V old = *(V*)&before;
    if (!(x < old || x != x)) return;
    B found = atomicCAS((B*)at, before, lower);
    if (found == before) return;
    before = found;
  }
}

enum Ring { PLUS, MIN };

// Null values are ones.
template <int S, class V>
__device__ __forceinline__ V times(const V* values, V value, V x) {
  if (S == MIN) return x + value;
  return values ? x * value : x;
}

template <int S, class V>
__device__ __forceinline__ V times(const V* values, i64 e, V x) {
  return times<S>(values, values ? values[e] : (V)1, x);
}

template <int S, class V>
__device__ __forceinline__ V plus(V a, V b) {
  if (S == MIN) return b < a || b != b ? b : a;
  return a + b;
}

template <int S, class V>
__device__ __forceinline__ void plus_atomically(V* at, V x) {
  if (S == MIN) lower_atomically(at, x);
  else add_atomically(at, x);
}

template <class V>
__global__ void __launch_bounds__(BLOCK) set_values(V* y, i64 size, V value) {
  for (i64 i = (i64)blockIdx.x * BLOCK + threadIdx.x; i < size; i += (i64)gridDim.x * BLOCK) y[i] = value;
}

// Local pointers of a part (algorithms 2 and 4): those of its lines, cut to its edges start .. stop - 1, from 0.
template <class P>
__global__ void __launch_bounds__(BLOCK) local_pointers(const P* __restrict__ pointers, i64 size, i64 start, i64 stop, i64* offset) {
  for (i64 i = (i64)blockIdx.x * BLOCK + threadIdx.x; i < size; i += (i64)gridDim.x * BLOCK) {
    i64 p = (i64)pointers[i];
    offset[i] = (p < start ? start : p < stop ? p : stop) - start;
  }
}

// The same of coordinates (algorithm 6), whose lines ascend from first_line: offset has num_lines + 1 entries. The coordinates are those
// from edge `base` on; `begun` (0 or 1) says whether an earlier piece has written where the first line begins.
template <class I>
__global__ void __launch_bounds__(BLOCK) line_pointers(
    const I* __restrict__ lines, i64 num_entries, i64 first_line, i64 num_lines, i64 base, i64 begun, i64* offset) {
  for (i64 e = (i64)blockIdx.x * BLOCK + threadIdx.x; e <= num_entries; e += (i64)gridDim.x * BLOCK) {
    i64 last = e < num_entries ? (i64)lines[e] - first_line : num_lines;
    for (i64 line = e ? (i64)lines[e - 1] - first_line + 1 : begun; line <= last; line++) offset[line] = base + e;
  }
}

// y = plus(y, other): partial results of columns, of which one was made by another device.
template <class V, int S>
__global__ void __launch_bounds__(BLOCK) add_values(V* y, const V* __restrict__ other, i64 size) {
  for (i64 i = (i64)blockIdx.x * BLOCK + threadIdx.x; i < size; i += (i64)gridDim.x * BLOCK) y[i] = plus<S>(y[i], other[i]);
}

#define SPMV_AHEAD 4  // edges whose column and value a thread asks for at once

// Read once in a product, and not to take the place of x in the caches.
template <class T>
__device__ __forceinline__ T read_once(const T* at) {
#ifdef __CUDA_ARCH__
  return __ldcs(at);
#else
  return *at;
#endif
}

// Edge e of row r, offset[r] <= e < offset[r + 1], has its column at indices[e] and its value at values[e] (null: 1). The piece is
// e0 .. e1 - 1; `offset` may begin before 0 and end behind the arrays where its first and last row are cut. Row r is y[first_row + r]. Only
// rows that are cut by a piece or a tile are added to by an atomic; others belong to one warp. A warp takes shares of `share` edges, tile by
// tile, that are far apart: the rows of hubs, whose columns are in the caches, take less time than others.
// At least 4 blocks a multiprocessor, as sm_75 holds: without this the compiler aims at 8 on some targets, and spills.
template <class I, class V, int S>
__global__ void __launch_bounds__(BLOCK, 4) spmv(
    const i64* __restrict__ offset, i64 num_rows, const I* __restrict__ indices, const V* __restrict__ values, const V* __restrict__ x,
    V* y, i64 first_row, i64 e0, i64 e1, int share, V identity) {
  __shared__ V spmv_products[WARPS][SPMV_TILE];
  V* products = spmv_products[warp_id()];
  int lane = lane_id();
  for (i64 s0 = e0 + global_warp() * share; s0 < e1; s0 += num_warps() * share) {
    i64 s1 = s0 + share < e1 ? s0 + share : e1;
    i64 row = warp_upper_bound(offset + 1, num_rows, s0), behind = warp_upper_bound(offset, num_rows, s1 - 1);
    for (i64 t0 = s0; t0 < s1; t0 += SPMV_TILE) {
      int size = t0 + SPMV_TILE < s1 ? SPMV_TILE : (int)(s1 - t0);
      i64 t1 = t0 + size;
      __syncwarp();  // lanes that still sum the last tile
      for (int k0 = lane; k0 - lane < size; k0 += SPMV_AHEAD * 32) {
        I column[SPMV_AHEAD];
        V value[SPMV_AHEAD];
#pragma unroll
        for (int u = 0; u < SPMV_AHEAD; u++) {
          int k = k0 + u * 32;
          column[u] = 0;
          value[u] = (V)1;
          if (k < size) {
            column[u] = read_once(indices + t0 + k);
            if (values) value[u] = read_once(values + t0 + k);
          }
        }
        __syncwarp();  // so that the compiler asks for all of them before it waits for one
#pragma unroll
        for (int u = 0; u < SPMV_AHEAD; u++) {
          int k = k0 + u * 32;
          if (k < size) products[k] = times<S>(values, value[u], x[column[u]]);
        }
      }
      i64 stop = row + warp_upper_bound(offset + row, behind - row, t1 - 1);  // behind the last row that begins in the tile
      __syncwarp();
      int shift = 0;  // 1 << shift lanes sum a row
      while (shift < 5 && (stop - row) << (shift + 1) <= size) shift++;
      for (i64 r0 = row; r0 < stop; r0 += 32 >> shift) {
        i64 r = r0 + (lane >> shift), begin = 0, end = 0;
        if (r < stop) {
          begin = offset[r];
          end = offset[r + 1];
        }
        int from = begin > t0 ? (int)(begin - t0) : 0, to = end < t1 ? (int)(end - t0) : size;
        bool any = r < stop && from < to;
        V sum = identity;
        if (any)
          for (int k = from + (lane & ((1 << shift) - 1)); k < to; k += 1 << shift) sum = plus<S>(sum, products[k]);
        for (int distance = (1 << shift) >> 1; distance; distance >>= 1) sum = plus<S>(sum, __shfl_xor_sync(FULL, sum, distance));
        if (any && (lane & ((1 << shift) - 1)) == 0) {
          if (begin < t0 || end > t1) plus_atomically<S>(&y[first_row + r], sum);
          else y[first_row + r] = plus<S>(y[first_row + r], sum);
        }
      }
      row = stop - 1;  // which may go on
    }
  }
}

// Edge e of column c, offset[c] <= e < offset[c + 1], has its row at indices[e]; x[c] is the column's element. A block finds the columns of
// its share once, and each thread that of its edge among them. Rows of y are reached by any block, so all is added by atomics: of the first
// `num_hubs` rows, to which most edges of a matrix in degree order go, in the block's own memory, and once for each block in y.
template <class I, class V, int S>
__global__ void __launch_bounds__(BLOCK, 4) spmv_columns(
    const i64* __restrict__ offset, i64 num_columns, const I* __restrict__ indices, const V* __restrict__ values, const V* __restrict__ x,
    V* y, i64 e0, i64 e1, int share, int num_hubs, V identity) {
  __shared__ V spmv_hubs[SPMV_HUBS];
  __shared__ i64 spmv_columns_of_share[2];
  for (int i = threadIdx.x; i < num_hubs; i += BLOCK) spmv_hubs[i] = identity;
  for (i64 s0 = e0 + (i64)blockIdx.x * share; s0 < e1; s0 += (i64)gridDim.x * share) {
    i64 s1 = s0 + share < e1 ? s0 + share : e1;
    __syncthreads();  // threads that are still at the last share, or set hubs
    find_rows(offset, num_columns, s0, s1, spmv_columns_of_share);
    __syncthreads();
    i64 first = spmv_columns_of_share[0], columns = spmv_columns_of_share[1] - first;
    for (i64 e = s0 + threadIdx.x; e < s1; e += BLOCK) {
      i64 c = first + find_class(offset + first, columns, e);
      I row = indices[e];
      V* at = row < (I)num_hubs ? &spmv_hubs[row] : &y[row];
      plus_atomically<S>(at, times<S>(values, e, x[c]));
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < num_hubs; i += BLOCK)
    if (spmv_hubs[i] != identity) plus_atomically<S>(&y[i], spmv_hubs[i]);  // a NaN is not equal to it
}

// Y = plus(Y, A X) of rows as in spmv, where X and Y have `width` numbers a row, one row behind the other. A group of `lanes` threads (a
// power of two, at most 32) takes SPMM_EDGES edges, each thread a column of X, and those `lanes` on. A row that lies in these edges is
// written by one group; others are added to by atomics.
template <class I, class V, int S>
__global__ void __launch_bounds__(BLOCK, 4) spmm(
    const i64* __restrict__ offset, i64 num_rows, const I* __restrict__ indices, const V* __restrict__ values, const V* __restrict__ x,
    V* y, i64 width, i64 e0, i64 e1, int lanes, V identity) {
  i64 groups = (i64)gridDim.x * (BLOCK / lanes);
  int lane = threadIdx.x & (lanes - 1);
  for (i64 g = (i64)blockIdx.x * (BLOCK / lanes) + threadIdx.x / lanes; e0 + g * SPMM_EDGES < e1; g += groups) {
    i64 s0 = e0 + g * SPMM_EDGES, s1 = s0 + SPMM_EDGES < e1 ? s0 + SPMM_EDGES : e1;
    i64 low = 0, high = num_rows;  // the first row that ends behind s0
    while (low < high) {
      i64 middle = (low + high) >> 1;
      if (offset[middle + 1] <= s0) low = middle + 1;
      else high = middle;
    }
    for (i64 column = lane; column < width; column += lanes) {
      for (i64 r = low, e = s0; e < s1; r++) {
        i64 end = offset[r + 1], to = end < s1 ? end : s1;
        if (e == to) continue;  // a row without edges
        V sum = identity;
        bool whole = offset[r] >= s0 && end <= s1;
        for (; e < to; e++) sum = plus<S>(sum, times<S>(values, e, x[(i64)indices[e] * width + column]));
        V* at = &y[r * width + column];
        if (whole) *at = plus<S>(*at, sum);
        else plus_atomically<S>(at, sum);
      }
    }
  }
}
