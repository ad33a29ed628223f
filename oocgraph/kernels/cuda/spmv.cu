// y += A x over a PartialCSR: a range of edges that may begin and end anywhere in a row.
//
// Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022: equal shares of non-zeros, not of rows; a row
// that is cut gets partial sums. The same again within a device: a block takes SPMV_SHARE edges, multiplies them by coalesced reads into
// shared memory, and sums them there by rows, as in the stream kernel of Greathouse and Daga, "Efficient Sparse Matrix-Vector
// Multiplication on GPUs Using the CSR Storage Format", SC 2014. The threads that sum a row are as many as it has entries on average.

#define SPMV_SHARE 2048

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

// Edge e of row r, offset[r] <= e < offset[r + 1], has its column at indices[e] and its value at values[e] (null: 1). The piece is
// e0 .. e1 - 1; `offset` may begin before 0 and end behind the arrays where its first and last row are cut. Row r is y[first_row + r]. Only
// rows that are cut by a piece or a share are added to by an atomic; others belong to one block.
template <class I, class V>
__global__ void __launch_bounds__(BLOCK) spmv(
    const i64* __restrict__ offset, i64 num_rows, const I* __restrict__ indices, const V* __restrict__ values, const V* __restrict__ x,
    V* y, i64 first_row, i64 e0, i64 e1) {
  __shared__ V spmv_products[SPMV_SHARE];
  __shared__ i64 spmv_rows[2];
  int thread = threadIdx.x;
  for (i64 s0 = e0 + (i64)blockIdx.x * SPMV_SHARE; s0 < e1; s0 += (i64)gridDim.x * SPMV_SHARE) {
    i64 s1 = s0 + SPMV_SHARE < e1 ? s0 + SPMV_SHARE : e1;
    int size = (int)(s1 - s0);
    __syncthreads();  // whoever still sums the last share
    if (thread < 32) {
      i64 first = warp_upper_bound(offset + 1, num_rows, s0);
      i64 stop = warp_upper_bound(offset, num_rows, s1 - 1);
      if (thread == 0) {
        spmv_rows[0] = first;
        spmv_rows[1] = stop;
      }
    }
#pragma unroll 4
    for (int k = thread; k < size; k += BLOCK) {
      V product = x[indices[s0 + k]];
      if (values) product *= values[s0 + k];
      spmv_products[k] = product;
    }
    __syncthreads();
    i64 stop = spmv_rows[1], rows = stop - spmv_rows[0];
    int shift = 0;  // 1 << shift threads sum a row
    while (shift < 5 && rows << (shift + 1) <= size) shift++;
    for (i64 r0 = spmv_rows[0]; r0 < stop; r0 += BLOCK >> shift) {
      i64 r = r0 + (thread >> shift), begin = 0, end = 0;
      if (r < stop) {
        begin = offset[r];
        end = offset[r + 1];
      }
      int from = begin > s0 ? (int)(begin - s0) : 0, to = end < s1 ? (int)(end - s0) : size;
      bool any = r < stop && from < to;
      V sum = 0;
      if (any)
        for (int k = from + (thread & ((1 << shift) - 1)); k < to; k += 1 << shift) sum += spmv_products[k];
      for (int distance = (1 << shift) >> 1; distance; distance >>= 1) sum += __shfl_xor_sync(FULL, sum, distance);
      if (any && (thread & ((1 << shift) - 1)) == 0) {
        if (begin < s0 || end > s1) add_atomically(&y[first_row + r], sum);
        else y[first_row + r] += sum;
      }
    }
  }
}
