// Exclusive prefix sums in one pass over the input: decoupled look-back.
//
// Merrill, Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA NVR-2016-002, section 4. A tile publishes the sum of its
// own entries, looks back over the tiles before it until one has published the sum of all up to itself, and publishes that of its own.
//
// Tiles are numbered by an atomic counter as blocks begin them, so that a tile waits only for tiles that have begun: no block has to be resident
// for another to end. An entry is one 64-bit word, written and read at once, so that no fence is needed: value, state, and the launch that wrote
// it, by which entries of earlier launches count as not yet published, and nothing is cleared in between.

#define ENTRY_VALUE_BITS 48
#define ENTRY_STATE_BITS 2  // the other 14 bits number the launch

enum EntryState { OWN_SUM = 1, WHOLE_SUM = 2 };

struct PlusI64 {
  __device__ __forceinline__ i64 operator()(i64 a, i64 b) const { return a + b; }
};
struct MaxI64 {
  __device__ __forceinline__ i64 operator()(i64 a, i64 b) const { return a > b ? a : b; }
};

// Numbers of the tiles of one launch. `tickets` is 0 when a launch begins and when it has ended.
__device__ __forceinline__ i64 take_tile(u64* tickets, i64 num_tiles) {
  u64 ticket = atomicAdd(tickets, (u64)1);
  if (ticket == (u64)num_tiles + gridDim.x - 1) atomicExch(tickets, (u64)0);  // each block takes one ticket too many, this is the last
  return (i64)ticket;
}

__device__ __forceinline__ void publish(u64* entry, u64 launch, EntryState state, i64 value) {
  *(volatile u64*)entry = launch << (ENTRY_VALUE_BITS + ENTRY_STATE_BITS) | (u64)state << ENTRY_VALUE_BITS | (u64)value;
}

// What the tiles before `tile` amount to; by a warp, all of whose lanes come here with the same numbers. Values are not negative.
template <class Combine>
__device__ __forceinline__ i64 look_back(const u64* entries, i64 tile, u64 launch, Combine combine) {
  i64 before = 0;
  for (i64 last = tile - 1; last >= 0; last -= 32) {
    i64 mine = last - lane_id();
    u64 entry = 0;
    u32 whole, needed, published;
    for (;;) {
      if (mine >= 0) entry = *(const volatile u64*)(entries + mine);
      bool is_published = mine < 0 || entry >> (ENTRY_VALUE_BITS + ENTRY_STATE_BITS) == launch;
      bool is_whole = is_published && mine >= 0 && (entry >> ENTRY_VALUE_BITS & 3) == WHOLE_SUM;
      published = __ballot_sync(FULL, is_published);
      whole = __ballot_sync(FULL, is_whole);
      needed = whole ? (whole ^ (whole - 1)) : FULL;  // up to the nearest that is whole
      if ((published & needed) == needed) break;
#if __CUDA_ARCH__ >= 700
      __nanosleep(40);
#endif
    }
    bool counts = mine >= 0 && (needed >> lane_id() & 1u);
    i64 value = counts ? (i64)(entry & (((u64)1 << ENTRY_VALUE_BITS) - 1)) : 0;
    for (int distance = 16; distance; distance >>= 1) value = combine(value, __shfl_xor_sync(FULL, value, distance));
    before = combine(before, value);
    if (whole) break;
  }
  return before;
}

// Publish a tile's own value, find what is before it, publish both together; by a warp. Returns what is before.
template <class Combine>
__device__ __forceinline__ i64 value_before(u64* entries, i64 tile, u64 launch, i64 own, Combine combine) {
  if (lane_id() == 0) publish(entries + tile, launch, tile ? OWN_SUM : WHOLE_SUM, own);
  i64 before = look_back(entries, tile, launch, combine);
  if (tile && lane_id() == 0) publish(entries + tile, launch, WHOLE_SUM, combine(before, own));
  return before;
}
