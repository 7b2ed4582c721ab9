// SPDX-License-Identifier: Apache-2.0
/// A hash map that grows inside a kernel.
///
/// Each block of threads counts how often the keys of its share of the input occur, in a map of its own.
/// The lanes of a block insert side by side; nodes come from the heap. Between two rounds, when there
/// are more keys than buckets, the block takes a bucket array twice as large from the heap and moves the
/// nodes over. In the end the counts are held against std::unordered_map.
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

/// Members that change between barriers only are plain; buckets and counters are changed by all lanes.
struct map {
  std::uint64_t* buckets;  // addresses of first nodes
  std::uint32_t bucket_count;
  std::uint32_t keys;
  std::uint32_t failed;  // a request for memory was refused
  std::uint32_t growths;

  QUARRY_DEVICE std::uint64_t& bucket(std::uint64_t* array, std::uint32_t size,
                                      std::uint32_t key) const {
    return array[simt::scramble(key) % size];
  }

  /// Counts a key; any lane, at any time between two barriers.
  QUARRY_DEVICE void add(const memory_ref& memory, std::uint32_t key) {
    const simt::atomic_ref first(bucket(buckets, bucket_count, key));
    node* fresh = nullptr;
    std::uint64_t searched = 0;  // from here on the chain does not have the key
    for (std::uint64_t head = first.load(simt::acquire);;) {
      for (std::uint64_t at = head; at != searched; at = to_node(at)->next) {
        if (to_node(at)->key != key) continue;
        simt::atomic_ref(to_node(at)->count).add(1, simt::relaxed);
        memory.free(fresh);  // somebody was faster
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

  /// All lanes of the block together: twice as many buckets, if there are more keys than buckets.
  QUARRY_DEVICE void grow(const memory_ref& memory) {
    simt::sync_block();  // all have added
    const bool crowded = keys > bucket_count && failed == 0;
    const std::uint32_t old_count = bucket_count;
    std::uint64_t* const old = buckets;
    simt::sync_block();  // all have read: whoever goes on may add again
    if (!crowded) return;
    if (simt::thread_id() == 0) {
      buckets = static_cast<std::uint64_t*>(memory.malloc(2 * old_count * sizeof(std::uint64_t)));
      bucket_count = 2 * old_count;
      ++growths;
    }
    simt::sync_block();
    if (buckets == nullptr) {  // no memory: stay with the old ones
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
  constexpr std::uint32_t blocks = 8, threads = 128, rounds = 24, share = threads * rounds;
  const quarry::heap<> heap(8_MiB);
  const memory_ref memory = heap.ref();

  std::vector<std::uint32_t> input(blocks * share);
  simt::lane_random draw(2014);
  for (std::uint32_t& key : input)
    key = draw.below(draw.below(2000) + 1);  // small keys are frequent
  simt::array<std::uint32_t, quarry::default_backend> keys_array(input.size());
  simt::array<std::uint32_t, quarry::default_backend> counts_array(input.size());
  simt::array<map, quarry::default_backend> maps_array(blocks);
  keys_array.from_host(input);
  const std::uint32_t* const keys = keys_array.data();
  std::uint32_t* const counts = counts_array.data();
  map* const maps = maps_array.data();

  quarry::launch({blocks, threads}, [=] QUARRY_DEVICE {
    map& mine = maps[simt::block_id()];
    if (simt::thread_id() == 0) {  // eight buckets to begin with
      mine.buckets = static_cast<std::uint64_t*>(memory.malloc(8 * sizeof(std::uint64_t)));
      mine.bucket_count = 8;
      for (int i = 0; mine.buckets != nullptr && i < 8; ++i) mine.buckets[i] = 0;
    }
    simt::sync_block();
    if (mine.buckets == nullptr) return;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      mine.add(memory, keys[simt::block_id() * share + round * threads + simt::thread_id()]);
      mine.grow(memory);
    }
  });

  // Another kernel: look every key up, then give all memory back.
  quarry::launch({blocks, threads}, [=] QUARRY_DEVICE {
    map& mine = maps[simt::block_id()];
    if (mine.buckets == nullptr) return;
    for (std::uint32_t i = simt::thread_id(); i < share; i += threads)
      counts[simt::block_id() * share + i] = mine.find(keys[simt::block_id() * share + i]);
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
    for (std::uint32_t i = 0; i < share; ++i) ++expected[input[b * share + i]];
    for (std::uint32_t i = 0; i < share; ++i)
      wrong += found[b * share + i] != expected[input[b * share + i]];
    wrong += built[b].keys != expected.size() || built[b].failed != 0 || built[b].growths == 0;
  }
  const auto live = heap.statistics().live_blocks.value_or(0);
  std::printf("block 0: %u keys in %u buckets after %u growths; %zu wrong, %llu blocks left\n",
              built[0].keys, built[0].bucket_count, built[0].growths, wrong,
              static_cast<unsigned long long>(live));
  return wrong == 0 && live == 0 ? 0 : 1;
}
