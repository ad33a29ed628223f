// Exclusive prefix sums in two passes: sums of tiles; their own prefix sum by one block; each tile from its start.
//
// `count` says how many entries there are: a number, or where the host does not know it, a counter on the device (`on_device` not null).
// Merrill and Garland's decoupled look-back would read the input once instead of twice; the inputs here (a word of a bitmap, a row of a batch) are
// a small part of what an iteration moves.

#define SCAN_ITEMS 8
#define SCAN_TILE (BLOCK * SCAN_ITEMS)

// What is summed. Entry i of a bitmap is the number of its marked bits.
struct MarkedBits {
  const u32* words;
  __device__ __forceinline__ i64 operator()(i64 i) const { return __popc(words[i]); }
};
struct Values {
  const i64* values;
  __device__ __forceinline__ i64 operator()(i64 i) const { return values[i]; }
};

template <class Input>
__device__ __forceinline__ void sum_tiles(Input input, i64 count, i64* tile_sum) {
  __shared__ i64 sum_tiles_shared[WARPS + 1];
  for (i64 tile = blockIdx.x; tile * SCAN_TILE < count; tile += gridDim.x) {
    i64 sum = 0, total;
    for (int k = 0; k < SCAN_ITEMS; k++) {
      i64 i = tile * SCAN_TILE + (i64)k * BLOCK + threadIdx.x;
      if (i < count) sum += input(i);
    }
    block_exclusive_sum(sum, sum_tiles_shared, total);
    if (threadIdx.x == 0) tile_sum[tile] = total;
  }
}

// Entry `count` of `out` gets the total.
template <class Input>
__device__ __forceinline__ void scan_tiles(Input input, i64 count, const i64* tile_start, i64* out) {
  __shared__ i64 scan_tiles_shared[WARPS + 1];
  for (i64 tile = blockIdx.x; tile * SCAN_TILE < count; tile += gridDim.x) {
    i64 start = tile_start[tile];
    for (int k = 0; k < SCAN_ITEMS; k++) {
      i64 i = tile * SCAN_TILE + (i64)k * BLOCK + threadIdx.x, total;
      i64 x = i < count ? input(i) : 0;
      i64 before = start + block_exclusive_sum(x, scan_tiles_shared, total);
      if (i < count) out[i] = before;
      if (i == count - 1) out[count] = before + x;
      start += total;
    }
  }
}

extern "C" __global__ void sum_marked(const u32* __restrict__ words, i64 num_words, i64* tile_sum) {
  sum_tiles(MarkedBits{words}, num_words, tile_sum);
}

extern "C" __global__ void scan_marked(const u32* __restrict__ words, i64 num_words, const i64* __restrict__ tile_start, i64* out) {
  scan_tiles(MarkedBits{words}, num_words, tile_start, out);
}

extern "C" __global__ void sum_values(const i64* __restrict__ values, const i64* __restrict__ count, i64* tile_sum) {
  sum_tiles(Values{values}, *count, tile_sum);
}

extern "C" __global__ void scan_values(const i64* __restrict__ values, const i64* __restrict__ count, const i64* __restrict__ tile_start, i64* out) {
  if (*count == 0 && global_thread() == 0) out[0] = 0;
  scan_tiles(Values{values}, *count, tile_start, out);
}

// The second pass, in place, by one block. `on_device` (may be null) overrides `count`, the number of entries summed in the first pass.
extern "C" __global__ void scan_sums(i64* tile_sum, i64 count, const i64* __restrict__ on_device, i64* total_out) {
  __shared__ i64 scan_sums_shared[WARPS + 1];
  if (on_device) count = *on_device;
  i64 num_tiles = (count + SCAN_TILE - 1) / SCAN_TILE, start = 0;
  for (i64 base = 0; base < num_tiles; base += BLOCK) {
    i64 i = base + threadIdx.x, total;
    i64 x = i < num_tiles ? tile_sum[i] : 0;
    i64 before = start + block_exclusive_sum(x, scan_sums_shared, total);
    if (i < num_tiles) tile_sum[i] = before;
    start += total;
  }
  if (threadIdx.x == 0) *total_out = start;
}
