// SPDX-License-Identifier: Apache-2.0
// Every call of a worker, over real processes.
#include "main.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace quarry::cluster::calls_test {
namespace {

std::vector<rid> one(rid r) { return {r}; }

/// QUARRY_TEST_MALLOC names the library that must serve malloc of this rank.
TEST(Malloc, IsServedByTheLibraryThatWasPreloaded) {
  const char* const library = std::getenv("QUARRY_TEST_MALLOC");
  if (library == nullptr) GTEST_SKIP() << "no library was preloaded";
  Dl_info found{};
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "malloc"), &found), 0);
  EXPECT_STREQ(found.dli_fname, library);
}

// ---- regions and objects ------------------------------------------------------------------------

using Calls = Cluster;

TEST_F(Calls, MakeFillAndFreeARegion) {
  const rid r = got(w().create_region(root, 0));
  EXPECT_NE(r, root);
  for (const std::size_t size : {1u, 64u, 65u, 192u, 1536u, 4096u, 50'048u, 3u << 20}) {
    auto* p = static_cast<unsigned char*>(got(w().allocate(r, size)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 64, 0u);
    EXPECT_GE(got(w().usable_size(p)), size);
    std::memset(p, static_cast<int>(me()), size);
    EXPECT_EQ(p[size - 1], me());
    EXPECT_EQ(w().deallocate(p), ok);
  }
  EXPECT_EQ(w().destroy_region(r), ok);
  EXPECT_EQ(w().destroy_region(r), region_status::stale_region);
}

TEST_F(Calls, GiveEveryObjectOneOwner) {
  // Objects that overlapped, in one worker or in two, would lose their marks: all are sent to the
  // first worker's list of addresses and compared there.
  const rid r = got(w().create_region(root));
  std::vector<std::uint64_t*> mine;
  for (unsigned i = 0; i < 2000; ++i) {
    auto* p = static_cast<std::uint64_t*>(got(w().allocate(r, 8 + 24 * (i % 20))));
    *p = std::uint64_t{me()} << 32 | i;
    mine.push_back(p);
  }
  for (unsigned i = 0; i < 2000; ++i) EXPECT_EQ(*mine[i], std::uint64_t{me()} << 32 | i);
  if (me() == 0) {
    std::vector<void*> all(mine.begin(), mine.end());
    for (unsigned peer = 1; peer < count(); ++peer) {
      rid list = root;
      void* table = nullptr;
      ASSERT_EQ(w().receive(peer, std::span(&list, 1), std::span(&table, 1)), ok);
      auto** addresses = static_cast<void**>(table);
      all.insert(all.end(), addresses, addresses + 2000);
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  } else {
    void* table = got(w().allocate(r, 2000 * sizeof(void*)));
    std::copy(mine.begin(), mine.end(), static_cast<void**>(table));
    EXPECT_EQ(w().send(0, one(r), std::span(&table, 1)), ok);
  }
  w().barrier();
  EXPECT_EQ(w().destroy_region(r), ok);
}

TEST_F(Calls, MakeRegionsInRegionsAtEveryLevel) {
  rid path[6] = {};
  rid above = root;
  for (int level = 0; level < 6; ++level) {
    above = path[level] = got(w().create_region(above, level % 2 == 0 ? level : -1));
    *static_cast<int*>(got(w().allocate(above, 100))) = level;
  }
  const packed_region all = got(w().pack(path[0]));
  EXPECT_GE(all.live_bytes, 6u * 128);
  EXPECT_TRUE(std::is_sorted(all.ranges.begin(), all.ranges.end(),
                             [](auto& a, auto& b) { return a.address < b.address; }));
  EXPECT_EQ(w().destroy_region(path[2]), ok);
  for (int level = 2; level < 6; ++level) {
    EXPECT_EQ(w().allocate(path[level], 8).status, region_status::stale_region);
    EXPECT_EQ(w().create_region(path[level]).status, region_status::stale_region);
  }
  EXPECT_LT(got(w().pack(path[0])).live_bytes, all.live_bytes);
  EXPECT_EQ(w().destroy_region(path[0]), ok);
}

TEST_F(Calls, ResizeObjectsAndMoveThemBetweenRegions) {
  const rid a = got(w().create_region(root)), b = got(w().create_region(root));
  auto* p = static_cast<char*>(got(w().reallocate(nullptr, 100, a)));
  std::strcpy(p, "what it held");
  for (const std::size_t size : {50u, 200u, 5000u, 200'000u, 70'000u, 64u})
    for (const rid where : {a, b}) {
      p = static_cast<char*>(got(w().reallocate(p, size, where)));
      EXPECT_STREQ(p, "what it held");
      EXPECT_GE(got(w().usable_size(p)), size);
    }
  EXPECT_EQ(w().destroy_region(a), ok);
  EXPECT_STREQ(p, "what it held");
  EXPECT_EQ(got(w().reallocate(p, 0, b)), nullptr);
  EXPECT_EQ(w().flush(), ok);
  EXPECT_EQ(got(w().pack(b)).live_bytes, 0u);
  EXPECT_EQ(w().destroy_region(b), ok);
}

TEST_F(Calls, AllocateInBulkAllOrNothing) {
  const rid r = got(w().create_region(root));
  std::vector<void*> objects(1000);
  ASSERT_EQ(w().allocate_bulk(r, 192, objects), ok);
  for (void* p : objects) std::memset(p, 1, 192);
  std::sort(objects.begin(), objects.end());
  EXPECT_EQ(std::adjacent_find(objects.begin(), objects.end()), objects.end());
  for (void* p : objects) EXPECT_EQ(w().deallocate(p), ok);
  EXPECT_EQ(w().flush(), ok);
  const std::uint64_t before = got(w().pack(r)).live_bytes;
  EXPECT_NE(w().allocate_bulk(r, std::size_t{1} << 40, objects), ok);
  EXPECT_EQ(got(w().pack(r)).live_bytes, before);
  EXPECT_EQ(w().allocate_bulk(r, 192, {}), ok);
  EXPECT_EQ(w().destroy_region(r), ok);
}

TEST_F(Calls, DiscardAWorkersCopy) {
  const rid r = got(w().create_region(root));
  auto* p = static_cast<char*>(got(w().allocate(r, 100'000)));
  std::memset(p, 7, 100'000);
  EXPECT_EQ(w().discard(r), ok);
  EXPECT_EQ(p[50'000], 0);
  EXPECT_EQ(w().destroy_region(r), ok);
}

// ---- what makes no sense ------------------------------------------------------------------------

using BadInput = Cluster;

TEST_F(BadInput, FailsWithAStatusAndAffectsNoOtherWorker) {
  const rid r = got(w().create_region(root));
  const rid stale = got(w().create_region(root));
  ASSERT_EQ(w().destroy_region(stale), ok);
  constexpr std::uint64_t one = 1;
  const auto word = [](rid id) { return static_cast<std::uint64_t>(id); };
  for (const std::uint64_t id :
       {word(stale), ~0 * one, one, word(r) ^ one << 50, 5000 * one << 22}) {
    SCOPED_TRACE(id);
    const rid bad{id};
    EXPECT_EQ(w().allocate(bad, 8).status, region_status::stale_region);
    EXPECT_EQ(w().create_region(bad).status, region_status::stale_region);
    EXPECT_EQ(w().destroy_region(bad), region_status::stale_region);
    EXPECT_EQ(w().pack(bad).status, region_status::stale_region);
  }
  EXPECT_EQ(w().destroy_region(root), region_status::is_root);
  EXPECT_EQ(w().allocate(r, 0).status, region_status::zero_size);
  EXPECT_EQ(w().allocate(r, 8, 3).status, region_status::bad_alignment);
  EXPECT_EQ(w().allocate(r, 8, std::size_t{1} << 30).status, region_status::bad_alignment);
  EXPECT_FALSE(w().allocate(r, ~std::size_t{0}));
  EXPECT_FALSE(w().allocate(r, std::size_t{1} << 50));

  int on_the_stack = 0;
  auto* object = static_cast<char*>(got(w().allocate(r, 1000)));
  void* freed = got(w().allocate(r, 70'000));
  ASSERT_EQ(w().deallocate(freed), ok);
  ASSERT_EQ(w().flush(), ok);
  auto* never = reinterpret_cast<char*>(default_base + default_capacity - 4096);  // NOLINT
  for (void* bad : {static_cast<void*>(&on_the_stack), static_cast<void*>(object + 64), freed,
                    static_cast<void*>(never), static_cast<void*>(object + 1)}) {
    EXPECT_FALSE(w().usable_size(bad)) << bad;
    EXPECT_FALSE(w().reallocate(bad, 10, r)) << bad;
    const region_status now = w().deallocate(bad);
    EXPECT_NE(now == ok ? w().flush() : now, ok) << bad;
  }
  EXPECT_EQ(w().deallocate(nullptr), ok);
  EXPECT_EQ(w().deallocate(object), ok);
  EXPECT_EQ(w().destroy_region(r), ok);
}

TEST_F(BadInput, ToTransfersIsToldToTheCaller) {
  EXPECT_EQ(w().send(me(), one(root)), region_status::no_such_worker);
  EXPECT_EQ(w().send(count(), one(root)), region_status::no_such_worker);
  rid r = root;
  EXPECT_EQ(w().receive(~0u, std::span(&r, 1)), region_status::no_such_worker);
}

TEST_F(BadInput, OfAFreeIsFoundWhenTwoFreeTheSameRegion) {
  // The first worker makes a region; all free it; one of them does.
  rid r = root;
  if (me() == 0) {
    r = got(w().create_region(root));
    got(w().allocate(r, 100));
    for (unsigned peer = 1; peer < count(); ++peer) EXPECT_EQ(w().send(peer, one(r)), ok);
  } else {
    ASSERT_EQ(w().receive(0, std::span(&r, 1)), ok);
  }
  w().barrier();
  const region_status s = w().destroy_region(r);
  EXPECT_TRUE(s == ok || s == region_status::stale_region);
  // Each worker passes the number of successful deallocations so far to the next worker.
  const rid note = got(w().create_region(root));
  auto* freed = static_cast<unsigned*>(got(w().allocate(note, sizeof(unsigned))));
  *freed = s == ok ? 1 : 0;
  void* object = freed;
  if (me() != 0) {
    rid theirs = root;
    void* number = nullptr;
    ASSERT_EQ(w().receive(worker_before(), std::span(&theirs, 1), std::span(&number, 1)), ok);
    *freed += *static_cast<unsigned*>(number);
  }
  if (me() + 1 < count())
    EXPECT_EQ(w().send(next_worker(), one(note), std::span(&object, 1)), ok);
  else
    EXPECT_EQ(*freed, 1u);
  w().barrier();
  EXPECT_EQ(w().destroy_region(note), ok);
}

// ---- soak ---------------------------------------------------------------------------------------

using Soak = Cluster;

TEST_F(Soak, KeepsWhatManyWorkersWriteInRegionsOfAllSizes) {
  struct object {
    unsigned char* p;
    std::size_t size;
    unsigned char mark;
  };
  struct place {
    rid id;
    std::vector<object> objects;
  };
  std::mt19937 random(me() + 1);
  std::vector<place> places;
  const auto check = [](const object& o) {
    return o.p[0] == o.mark && o.p[o.size / 2] == o.mark && o.p[o.size - 1] == o.mark;
  };
  for (unsigned step = 0; step < 4000; ++step) {
    const auto what = random() % 100;
    if (places.empty() || what < 3) {
      const rid parent =
          places.empty() || random() % 2 == 0 ? root : places[random() % places.size()].id;
      const auto id = w().create_region(parent, static_cast<int>(random() % 4) - 1);
      if (id) places.push_back({*id, {}});
      continue;
    }
    place& at = places[random() % places.size()];
    if (what < 65) {
      const std::size_t size = random() % 50 == 0 ? random() % 300'000 + 1 : random() % 600 + 1;
      const auto p = w().allocate(at.id, size);
      if (!p) {  // its parent was freed
        ASSERT_EQ(p.status, region_status::stale_region);
        at.objects.clear();
        continue;
      }
      const object o{static_cast<unsigned char*>(*p), size, static_cast<unsigned char>(random())};
      std::memset(o.p, o.mark, size);
      at.objects.push_back(o);
    } else if (what < 97 && !at.objects.empty()) {
      std::swap(at.objects[random() % at.objects.size()], at.objects.back());
      const object o = at.objects.back();
      at.objects.pop_back();
      ASSERT_TRUE(check(o));
      (void)w().deallocate(o.p);
    } else if (what >= 99) {
      const rid gone = at.id;
      const region_status s = w().destroy_region(gone);
      ASSERT_TRUE(s == ok || s == region_status::stale_region);
      // Regions inside it are gone as well.
      std::erase_if(places, [](place& p) { return !w().pack(p.id); });
    }
  }
  (void)w().flush();
  for (const place& p : places) {
    if (!w().pack(p.id)) continue;
    for (const object& o : p.objects) ASSERT_TRUE(check(o));
  }
  for (const place& p : places) (void)w().destroy_region(p.id);
}

}  // namespace
}  // namespace quarry::cluster::calls_test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return quarry::cluster::run(argc, argv, quarry::cluster::options_of(argc, argv),
                              quarry::cluster::run_tests);
}
