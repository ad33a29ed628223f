// Expanding the frontier of a part of a graph: what it finds comes to the host, which knows whose masters those vertices are.
//
// The seed's "parallel BFS", section 3: blocks of the frontier, of the parents and of the edges go to a core's own memory, in which they are worked
// on; row pointers are read where they are, for they are scattered. Here that memory is shared memory, and
//
//   frontier, pointers  a tile of BLOCK rows and where their edges begin       relations that each edge looks up
//   edges, parents      CACHED_EDGES of them, with the row of each             read once, coalesced
//   found               what is new among them, with its row                   written once, coalesced, behind one atomic a block
//
// Edges are taken in equal shares, cut anywhere in a row (see expand.cu).

#define CACHED_EDGES 1024

// Edges e0 .. e1 - 1 of the rows that offset describes: edge e of row i is edges[begin[i] + (e - offset[i]) - base]. Vertices that are not in
// `seen` are added to it, and listed with the vertex of their row; counters[QUEUE_SIZE] says how many there are.
template <class I>
__global__ void __launch_bounds__(BLOCK, 4) expand_part(
    const I* __restrict__ vertex, const i64* __restrict__ begin, const i64* __restrict__ offset, i64 e0, i64 e1, const I* __restrict__ edges,
    i64 base, u32* seen, I* found, I* found_from, i64* counters) {
  __shared__ i64 part_rows[2];
  __shared__ i64 part_offset[BLOCK + 1];
  __shared__ i64 part_begin[BLOCK];
  __shared__ I part_vertex[BLOCK];
  __shared__ I part_edge[CACHED_EDGES];
  __shared__ unsigned char part_row[CACHED_EDGES];
  __shared__ int part_winner[CACHED_EDGES];
  __shared__ int part_count;
  __shared__ u64 part_at;
  int thread = threadIdx.x;
  i64 num_rows = counters[NUM_ROWS];
  if (!num_rows) return;
  i64 num_edges = offset[num_rows];
  if (e1 > num_edges) e1 = num_edges;
  i64 share = share_of(e1 - e0);
  for (i64 s0 = e0 + blockIdx.x * share; s0 < e1; s0 += gridDim.x * share) {
    i64 s1 = s0 + share < e1 ? s0 + share : e1;
    __syncthreads();  // others may still read part_rows
    find_rows(offset, num_rows, s0, s1, part_rows);
    __syncthreads();
    i64 stop = part_rows[1];
    for (i64 tile = part_rows[0]; tile < stop; tile += BLOCK) {
      int count = stop - tile < BLOCK ? (int)(stop - tile) : BLOCK;
      __syncthreads();  // others may still look at the last tile
      if (thread < count) {
        part_vertex[thread] = vertex[tile + thread];
        part_begin[thread] = begin[tile + thread];
        part_offset[thread] = offset[tile + thread];
        if (thread == count - 1) part_offset[count] = offset[tile + count];
      }
      __syncthreads();
      i64 a = part_offset[0] > s0 ? part_offset[0] : s0, z = part_offset[count] < s1 ? part_offset[count] : s1;
      for (i64 e = a; e < z; e += CACHED_EDGES) {
        int cached = z - e < CACHED_EDGES ? (int)(z - e) : CACHED_EDGES;
        for (int k = thread; k < cached; k += BLOCK) {
          int row = (int)find_class(part_offset, count, e + k);
          part_row[k] = (unsigned char)row;
          part_edge[k] = edges[part_begin[row] + (e + k - part_offset[row]) - base];
        }
        if (thread == 0) part_count = 0;
        __syncthreads();
        for (int k = thread; k < cached; k += BLOCK) {
          I y = part_edge[k];
          u32 bit = 1u << (y & 31);
          if (seen[y >> 5] & bit) continue;  // the filter: most edges end here, without an atomic
          if (atomicOr(&seen[y >> 5], bit) & bit) continue;
          part_winner[atomicAdd(&part_count, 1)] = k;
        }
        __syncthreads();
        if (thread == 0) part_at = part_count ? atomicAdd((u64*)&counters[QUEUE_SIZE], (u64)part_count) : 0ull;
        __syncthreads();
        for (int i = thread; i < part_count; i += BLOCK) {
          found[part_at + i] = part_edge[part_winner[i]];
          found_from[part_at + i] = part_vertex[part_row[part_winner[i]]];
        }
        __syncthreads();
      }
    }
  }
}
