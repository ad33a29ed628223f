// An iteration of PageRank on a device, behind the product that sums the shares of in-neighbours (spmv.cu): the vectors stay here, and the
// host gets two numbers. The arithmetic is that of oocgraph/kernels/pagerank.py, in its order for every vertex.

#define RANK_SUMS 2  // the sum of the changes; the sum of the ranks of vertices that no edge leaves

// Sums of the BLOCK threads of a block, by thread 0, to out[0 .. RANK_SUMS - 1], in an order that depends on nothing but the block.
__device__ __forceinline__ void rank_sums_of_block(double change, double dangling, double* out) {
  __shared__ double rank_sums[RANK_SUMS][WARPS];
  change = warp_sum(change);
  dangling = warp_sum(dangling);
  if (lane_id() == 0) {
    rank_sums[0][warp_id()] = change;
    rank_sums[1][warp_id()] = dangling;
  }
  __syncthreads();
  if (threadIdx.x < RANK_SUMS) {
    double sum = 0;
    for (int w = 0; w < WARPS; w++) sum += rank_sums[threadIdx.x][w];
    out[threadIdx.x] = sum;
  }
}

// Ranks of `size` vertices from the sums of their in-neighbours' shares; `jump` is what each gets whatever its neighbours, times `teleport`
// where that is not null. `share` gets rank / strength, 0 where that is 0; partial[RANK_SUMS * block] what a block has summed.
extern "C" __global__ void __launch_bounds__(BLOCK) finish_ranks(
    const double* __restrict__ sums, i64 size, double damping, double jump, const double* __restrict__ teleport, double* rank,
    const double* __restrict__ strength, double* share, double* partial) {
  double change = 0, dangling = 0;
  for (i64 v = (i64)blockIdx.x * BLOCK + threadIdx.x; v < size; v += (i64)gridDim.x * BLOCK) {
    double now = damping * sums[v] + (teleport ? jump * teleport[v] : jump);
    double moved = now - rank[v];
    change += moved < 0 ? -moved : moved;
    rank[v] = now;
    double of = strength[v];
    share[v] = of > 0 ? now / of : 0;
    if (!(of > 0)) dangling += now;
  }
  rank_sums_of_block(change, dangling, partial + (i64)RANK_SUMS * blockIdx.x);
}

// Sums of what `size` blocks have summed; one block.
extern "C" __global__ void __launch_bounds__(BLOCK) sum_partials(const double* __restrict__ partial, i64 size, double* out) {
  double change = 0, dangling = 0;
  for (i64 i = threadIdx.x; i < size; i += BLOCK) {
    change += partial[RANK_SUMS * i];
    dangling += partial[RANK_SUMS * i + 1];
  }
  rank_sums_of_block(change, dangling, out);
}
