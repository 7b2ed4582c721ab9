// SPDX-License-Identifier: Apache-2.0
/// Real programs under libquarry_malloc.so: what they print must be what they print without it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

namespace malloc_test {
namespace {

struct result {
  std::string output;
  int status = -1;
  friend bool operator==(const result&, const result&) = default;
};

result run(const std::string& line, bool preloaded) {
  const std::string how = preloaded ? "LD_PRELOAD='" QUARRY_MALLOC "' " : "";
  std::FILE* pipe = ::popen(("exec 2>&1; " + how + line).c_str(), "r");
  result r;
  std::array<char, 4096> part{};
  while (std::size_t n = std::fread(part.data(), 1, part.size(), pipe))
    r.output.append(part.data(), n);
  r.status = ::pclose(pipe);
  return r;
}

bool is_there(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT
}

void expect_the_same(const std::string& program, const std::string& line) {
  if (!is_there(program)) GTEST_SKIP() << program << " is not installed";
  const result plain = run(line, false);
  ASSERT_EQ(plain.status, 0) << plain.output;
  EXPECT_EQ(run(line, true).output, plain.output);
  EXPECT_EQ(run(line, true).status, 0);
}

TEST(RegionMalloc, ReplacesTheMallocOfTheProgram) {
  if (!is_there("python3")) GTEST_SKIP() << "python3 is not installed";
  const result r = run("python3 -c 'print(open(\"/proc/self/maps\").read())'", true);
  EXPECT_NE(r.output.find("libquarry_malloc"), std::string::npos);
}

TEST(RegionMalloc, ServesPythonThatChurnsObjects) {
  expect_the_same("python3",
                  "python3 -c '\n"
                  "import hashlib\n"
                  "d = {}\n"
                  "for i in range(200000):\n"
                  "    d[i * 7919 % 5003] = [str(i)] * (i % 50)\n"
                  "print(hashlib.sha256(repr(sorted(d.items())).encode()).hexdigest())'");
}

TEST(RegionMalloc, ServesThreadsAndForks) {
  expect_the_same("python3",
                  "python3 -c '\n"
                  "import threading, os\n"
                  "out = [0] * 4\n"
                  "def work(t):\n"
                  "    for i in range(300):\n"
                  "        out[t] += len(bytearray(i * 500))\n"
                  "threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]\n"
                  "for t in threads: t.start()\n"
                  "for n in range(20):\n"
                  "    child = os.fork()\n"
                  "    if child == 0:\n"
                  "        x = [bytearray(i) for i in range(2000)]\n"
                  "        os._exit(len(x) % 251)\n"
                  "    print(os.waitpid(child, 0)[1])\n"
                  "for t in threads: t.join()\n"
                  "print(out)'");
}

TEST(RegionMalloc, ServesSqlite) {
  expect_the_same(
      "sqlite3",
      "sqlite3 :memory: \"create table t(a, b); with recursive c(x) as (select 1 union all "
      "select x + 1 from c where x < 100000) insert into t select x, x * x % 1009 from c; "
      "create index i on t(b); select b, count(*), sum(a) from t group by b order by b;\"");
}

TEST(RegionMalloc, ServesGit) {
  expect_the_same(
      "git",
      "sh -c 'd=$(mktemp -d) && cd $d && git -c init.defaultBranch=m init -q . && "
      "for i in $(seq 40); do seq $i 3000 > file$((i % 7)); git add -A; "
      "GIT_AUTHOR_DATE=@$i GIT_COMMITTER_DATE=@$i git -c user.name=a -c user.email=a@b "
      "commit -qm \"number $i\"; done; git log --stat --format=%H; git gc -q; git fsck; "
      "rm -rf $d'");
}

TEST(RegionMalloc, ServesACompiler) {
  expect_the_same(
      "g++",
      "sh -c 'd=$(mktemp -d) && cd $d && for i in $(seq 3000); do echo \"template <int N> "
      "struct s$i { static int f(int x) { return x * N + $i; } }; int f$i(int x) { return "
      "s$i<$i>::f(x); }\"; done > a.cpp && g++ -O1 -S a.cpp -o - | cksum; rm -rf $d'");
}

TEST(RegionMalloc, ServesRedis) {
  if (!is_there("redis-server") || !is_there("redis-benchmark"))
    GTEST_SKIP() << "redis is not installed";
  const std::string port = std::to_string(20'000 + ::getpid() % 10'000);
  const result r =
      run("sh -c 'redis-server --port " + port +
              " --bind 127.0.0.1 --save \"\" --daemonize no > /dev/null & "
              "server=$!; i=0; until redis-cli -p " +
              port +
              " ping > /dev/null 2>&1 || "
              "[ $i -ge 50 ]; do sleep 0.1; i=$((i + 1)); done; redis-benchmark -p " +
              port + " -n 5000 -q -t set,get,lpush,lrange_100 > /dev/null && redis-cli -p " + port +
              " set key value && redis-cli -p " + port + " get key; redis-cli -p " + port +
              " shutdown nosave; wait $server; echo exit $?'",
          true);
  EXPECT_EQ(r.output, "OK\nvalue\nexit 0\n");
}

TEST(RegionMalloc, AbortsAProgramThatFreesTwice) {
  if (!is_there("python3")) GTEST_SKIP() << "python3 is not installed";
  const result r =
      run("python3 -c '\n"
          "import ctypes\n"
          "c = ctypes.CDLL(None)\n"
          "c.malloc.restype = ctypes.c_void_p\n"
          "p = c.malloc(100)\n"
          "c.free(ctypes.c_void_p(p))\n"
          "c.free(ctypes.c_void_p(p))\n"
          "print(\"survived\")'",
          true);
  EXPECT_NE(r.status, 0);
  EXPECT_NE(r.output.find("quarry malloc: free: no live object"), std::string::npos);
  EXPECT_EQ(r.output.find("survived"), std::string::npos);
}

/// Runs a program with the functions of the C library as `c`.
result run_python(const std::string& program, const std::string& limit = "") {
  return run((limit.empty() ? "" : "sh -c '" + limit + "; exec \"$@\"' sh ") +
                 "python3 -c '\n"
                 "import ctypes, resource\n"
                 "c = ctypes.CDLL(None, use_errno=True)\n"
                 "p, n = ctypes.c_void_p, ctypes.c_size_t\n"
                 "for f in (c.malloc, c.calloc, c.realloc, c.aligned_alloc): f.restype = p\n" +
                 program + "'",
             true);
}

TEST(RegionMalloc, AbortsAProgramThatReallocatesWhatIsNoObject) {
  if (!is_there("python3")) GTEST_SKIP() << "python3 is not installed";
  for (const char* program : {"a = c.malloc(n(100)); c.free(p(a)); c.realloc(p(a), n(200))\n",
                              "a = c.malloc(n(100)); c.realloc(p(a + 16), n(200))\n",
                              "c.realloc(ctypes.byref(ctypes.c_int()), n(200))\n"}) {
    const result r = run_python(program + std::string("print(\"survived\")"));
    EXPECT_NE(r.status, 0);
    EXPECT_NE(r.output.find("quarry malloc: realloc: no live object"), std::string::npos)
        << program << r.output;
  }
}

TEST(RegionMalloc, UsesASmallerRangeWhereAddressesAreLimited) {
  if (!is_there("python3")) GTEST_SKIP() << "python3 is not installed";
  for (const char* limit : {"ulimit -v 8000000", "ulimit -v 1000000", "ulimit -v 300000"})
    EXPECT_EQ(run_python("print(sum(len(bytearray(i)) for i in range(1000)))", limit).output,
              "499500\n")
        << limit;
  const result r = run("sh -c 'ulimit -v 60000; exec ls /'", true);
  EXPECT_NE(r.status, 0);
  EXPECT_NE(r.output.find("quarry malloc: "), std::string::npos) << r.output;
}

/// Runs a program whose assertions must hold.
void expect_no_assertion_fails(const std::string& program) {
  if (!is_there("python3")) GTEST_SKIP() << "python3 is not installed";
  EXPECT_EQ(run_python(program + "print(\"good\")").output, "good\n");
}

TEST(RegionMalloc, ClearsALargeArrayWithoutUsingItsMemory) {
  expect_no_assertion_fails(
      "a = c.calloc(n(1), n(1 << 30))\n"
      "assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 200000\n"
      "size = 3000001\n"
      "for i in range(20):\n"
      "    b = c.malloc(n(size)); ctypes.memset(p(b), 85, n(size)); c.free(p(b))\n"
      "    b = c.calloc(n(size), n(1)); assert ctypes.string_at(b, size) == bytes(size)\n"
      "    c.free(p(b))\n");
}

TEST(RegionMalloc, AlignsUpToAGibibyte) {
  expect_no_assertion_fails(
      "for shift in range(4, 31):\n"
      "    a = c.aligned_alloc(n(1 << shift), n(100)); assert a and a % (1 << shift) == 0, shift\n"
      "    c.free(p(a))\n"
      "assert not c.aligned_alloc(n(1 << 45), n(100))\n");
}

/// Returns the resident bytes of a process at the end of a workload of tools/region/stress.hpp.
std::uint64_t resident_after(const std::string& workload) {
  const result r = run("'" QUARRY_REGION_PEER "' malloc stress " + workload, true);
  EXPECT_EQ(r.status, 0) << r.output;
  std::istringstream in(r.output);
  double seconds = 0;
  std::uint64_t live = 0, resident = 0, steps = 0;
  while (in >> seconds >> live >> resident >> steps) continue;
  EXPECT_NE(resident, 0u) << r.output;
  return resident;
}

// The arguments: workload, seconds, threads, MiB of live objects, steps.

TEST(RegionMalloc, TakesBoundedMemoryWhileThreadsFreeObjectsOfEachOther) {
  EXPECT_LT(resident_after("exchange 60 4 20 6000000"), 90'000'000u);
}

TEST(RegionMalloc, TakesLittleMemoryForThreadsThatEnd) {
  EXPECT_LT(resident_after("threads 60 1 1 2000000"), 15'000'000u) << "of 1000 threads";
}

}  // namespace
}  // namespace malloc_test
