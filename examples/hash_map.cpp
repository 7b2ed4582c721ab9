// SPDX-License-Identifier: Apache-2.0
/// A hash map that grows inside a kernel.
///
/// Each thread block counts the keys of its part of the input in its own map. The lanes of a block
/// insert concurrently and allocate nodes from the heap. If a map has more keys than buckets, the
/// block allocates an array of twice as many buckets and moves the nodes. The host compares the
/// counts with std::unordered_map.
#include <quarry/heap.hpp>

#include <cstdint>
#include <cstdio>
#include <unordered_map>
#include <vector>

using namespace quarry::literals;
namespace simt = quarry::simt;
using memory_ref = quarry::heap_ref<>;

struct node {
  std::uint64_t next;  // address of the next node of the bucket
  std::uint32_t key;
  std::uint32_t count;
};
QUARRY_DEVICE node* to_node(std::uint64_t address) { return reinterpret_cast<node*>(address); }

/// Lanes update buckets and counters with atomics. One lane writes the other members, between two
/// barriers.
struct map {
  std::uint64_t* buckets;  // address of the first node of each bucket
  std::uint32_t bucket_count;
  std::uint32_t keys;
  std::uint32_t failed;  // not 0 if an allocation failed
  std::uint32_t growths;

  QUARRY_DEVICE std::uint64_t& bucket(std::uint64_t* array, std::uint32_t size,
                                      std::uint32_t key) const {
    return array[simt::scramble(key) % size];
  }

  /// Counts a key. Any lane may call it, between two calls of grow().
  QUARRY_DEVICE void add(const memory_ref& memory, std::uint32_t key) {
    const simt::atomic_ref first(bucket(buckets, bucket_count, key));
    node* fresh = nullptr;
    std::uint64_t searched = 0;  // the chain from this node on does not contain the key
    for (std::uint64_t head = first.load(simt::acquire);;) {
      for (std::uint64_t at = head; at != searched; at = to_node(at)->next) {
        if (to_node(at)->key != key) continue;
        simt::atomic_ref(to_node(at)->count).add(1, simt::relaxed);
        memory.free(fresh);  // another lane has inserted the key
        return;
      }
      searched = head;
      if (fresh == nullptr) fresh = static_cast<node*>(memory.malloc(sizeof(node)));
      if (fresh == nullptr) {
        simt::atomic_ref(failed).add(1, simt::relaxed);
        return;
      }
      *fresh = {head, key, 1};
      if (first.compare_exchange(head, reinterpret_cast<std::uint64_t>(fresh), simt::acq_rel))
        break;
    }
    simt::atomic_ref(keys).add(1, simt::relaxed);
  }

  /// Doubles the number of buckets if there are more keys than buckets. All lanes of the block call
  /// it.
  QUARRY_DEVICE void grow(const memory_ref& memory) {
    simt::sync_block();  // all lanes have added their keys
    const bool crowded = keys > bucket_count && failed == 0;
    const std::uint32_t old_count = bucket_count;
    std::uint64_t* const old = buckets;
    simt::sync_block();  // all lanes have read the members
    if (!crowded) return;
    if (simt::thread_id() == 0) {
      buckets = static_cast<std::uint64_t*>(memory.malloc(2 * old_count * sizeof(std::uint64_t)));
      bucket_count = 2 * old_count;
      ++growths;
    }
    simt::sync_block();
    if (buckets == nullptr) {  // the allocation failed: keep the old buckets
      simt::sync_block();
      if (simt::thread_id() == 0) buckets = old, bucket_count = old_count, failed = 1;
      simt::sync_block();
      return;
    }
    for (std::uint32_t i = simt::thread_id(); i < bucket_count; i += simt::block_size())
      buckets[i] = 0;
    simt::sync_block();
    for (std::uint32_t i = simt::thread_id(); i < old_count; i += simt::block_size()) {
      for (std::uint64_t at = old[i]; at != 0;) {
        const std::uint64_t next = to_node(at)->next;
        const simt::atomic_ref first(bucket(buckets, bucket_count, to_node(at)->key));
        to_node(at)->next = first.load(simt::relaxed);
        while (!first.compare_exchange(to_node(at)->next, at, simt::relaxed)) {
        }
        at = next;
      }
    }
    simt::sync_block();
    if (simt::thread_id() == 0) memory.free(old);
  }

  QUARRY_DEVICE std::uint32_t find(std::uint32_t key) const {
    std::uint64_t at = bucket(buckets, bucket_count, key);
    while (at != 0 && to_node(at)->key != key) at = to_node(at)->next;
    return at == 0 ? 0 : to_node(at)->count;
  }
};

int main() {
  constexpr std::uint32_t blocks = 8, threads = 128, rounds = 24, part = threads * rounds;
  const quarry::heap<> heap(8_MiB);
  const memory_ref memory = heap.ref();

  std::vector<std::uint32_t> input(blocks * part);
  simt::lane_random draw(2014);
  for (std::uint32_t& key : input)
    key = draw.below(draw.below(2000) + 1);  // small keys are more frequent
  simt::array<std::uint32_t, quarry::default_backend> keys_array(input.size());
  simt::array<std::uint32_t, quarry::default_backend> counts_array(input.size());
  simt::array<map, quarry::default_backend> maps_array(blocks);
  keys_array.from_host(input);
  const std::uint32_t* const keys = keys_array.data();
  std::uint32_t* const counts = counts_array.data();
  map* const maps = maps_array.data();

  quarry::launch({blocks, threads}, [=] QUARRY_DEVICE {
    map& mine = maps[simt::block_id()];
    if (simt::thread_id() == 0) {  // a map starts with eight buckets
      mine.buckets = static_cast<std::uint64_t*>(memory.malloc(8 * sizeof(std::uint64_t)));
      mine.bucket_count = 8;
      for (int i = 0; mine.buckets != nullptr && i < 8; ++i) mine.buckets[i] = 0;
    }
    simt::sync_block();
    if (mine.buckets == nullptr) return;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      mine.add(memory, keys[simt::block_id() * part + round * threads + simt::thread_id()]);
      mine.grow(memory);
    }
  });

  // A second kernel looks every key up and then frees the maps.
  quarry::launch({blocks, threads}, [=] QUARRY_DEVICE {
    map& mine = maps[simt::block_id()];
    if (mine.buckets == nullptr) return;
    for (std::uint32_t i = simt::thread_id(); i < part; i += threads)
      counts[simt::block_id() * part + i] = mine.find(keys[simt::block_id() * part + i]);
    simt::sync_block();
    for (std::uint32_t i = simt::thread_id(); i < mine.bucket_count; i += threads) {
      for (std::uint64_t at = mine.buckets[i]; at != 0;) {
        node* const n = to_node(at);
        at = n->next;
        memory.free(n);
      }
    }
    simt::sync_block();
    if (simt::thread_id() == 0) memory.free(mine.buckets);
  });

  const auto found = counts_array.to_host();
  const auto built = maps_array.to_host();
  std::size_t wrong = 0;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    std::unordered_map<std::uint32_t, std::uint32_t> expected;
    for (std::uint32_t i = 0; i < part; ++i) ++expected[input[b * part + i]];
    for (std::uint32_t i = 0; i < part; ++i)
      wrong += found[b * part + i] != expected[input[b * part + i]];
    wrong += built[b].keys != expected.size() || built[b].failed != 0 || built[b].growths == 0;
  }
  const auto live = heap.statistics().live_blocks.value_or(0);
  std::printf("block 0: %u keys in %u buckets after %u growths; %zu wrong, %llu blocks left\n",
              built[0].keys, built[0].bucket_count, built[0].growths, wrong,
              static_cast<unsigned long long>(live));
  return wrong == 0 && live == 0 ? 0 : 1;
}
