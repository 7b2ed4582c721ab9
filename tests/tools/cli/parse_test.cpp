// SPDX-License-Identifier: Apache-2.0
#include "common/parse.hpp"
#include "common/text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace quarry::tool::parse_test {
namespace {

template <class Parse>
std::string message_of(Parse&& parse) {
  try {
    (void)parse();
  } catch (const input_error& e) {
    return e.what();
  }
  return "no error";
}

TEST(ParseSize, AcceptsUnitsInEveryForm) {
  for (const char* text : {"4096", "4096B", "4K", "4k", "4KB", "4KiB", "4 KiB"})
    EXPECT_EQ(parse_size(text).value(), 4096u) << text;
  EXPECT_EQ(parse_size("1G").value(), std::uint64_t{1} << 30);
  EXPECT_EQ(parse_size("15E").value(), std::uint64_t{15} << 60);
  EXPECT_EQ(parse_size("0").value(), 0u);
}

TEST(ParseSize, AcceptsDecimalsThatMakeWholeBytes) {
  EXPECT_EQ(parse_size("1.5K").value(), 1536u);
  EXPECT_EQ(parse_size("0.25MiB").value(), 262144u);
  EXPECT_NE(message_of([] { return parse_size("0.3K"); }).find("whole number of bytes"),
            std::string::npos);
}

TEST(ParseSize, ReportsInvalidSizes) {
  for (const char* text : {"", "K", "four", "4Q", "4KiBB", "1..5K", ".5K", "1.K", "0x10", "4 4"})
    EXPECT_NE(message_of([&] { return parse_size(text); }).find("is not a size"), std::string::npos)
        << text;
  EXPECT_NE(message_of([] { return parse_size("-4K"); }).find("negative"), std::string::npos);
  for (const char* text : {"16E", "99999999999999999999", "18014398509481984K"})
    EXPECT_NE(message_of([&] { return parse_size(text); }).find("64 bits"), std::string::npos)
        << text;
}

TEST(ParseSizeRange, AcceptsOneSizeOrTwo) {
  EXPECT_EQ(parse_size_range("64").most, 64u);
  EXPECT_EQ(parse_size_range("16-1K").least, 16u);
  EXPECT_EQ(parse_size_range("16-1K").most, 1024u);
  for (const char* text : {"1K-16", "16-", "-16", "16-32-64", "-"})
    EXPECT_NE(message_of([&] { return parse_size_range(text); }), "no error") << text;
}

TEST(ParseCount, AcceptsWholeNumbersInItsRange) {
  EXPECT_EQ(parse_count("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(parse_count("7", 7, 7), 7u);
  for (const char* text : {"", "x", "1x", "1.5", " 1", "+1", "0x1"})
    EXPECT_NE(message_of([&] { return parse_count(text); }).find("not a whole number"),
              std::string::npos)
        << text;
  EXPECT_NE(message_of([] { return parse_count("-1"); }).find("negative"), std::string::npos);
  EXPECT_NE(message_of([] { return parse_count("18446744073709551616"); }).find("too large"),
            std::string::npos);
  EXPECT_NE(message_of([] { return parse_count("6", 7); }).find("the minimum is 7"),
            std::string::npos);
  EXPECT_NE(message_of([] { return parse_count("8", 1, 7); }).find("the maximum is 7"),
            std::string::npos);
}

TEST(ParseSeconds, AcceptsFiniteNumbersUpToADay) {
  EXPECT_EQ(parse_seconds("0.25"), 0.25);
  EXPECT_EQ(parse_seconds("86400"), 86400);
  for (const char* text : {"", "x", "1s", "nan", "inf"})
    EXPECT_NE(message_of([&] { return parse_seconds(text); }).find("not a number of seconds"),
              std::string::npos)
        << text;
  for (const char* text : {"0", "-1", "86401"})
    EXPECT_NE(message_of([&] { return parse_seconds(text); }).find("out of range"),
              std::string::npos)
        << text;
}

TEST(Names, AreFoundInAnyLetterCaseAndSuggestedForMisspellings) {
  constexpr std::array<std::string_view, 3> names = {"AtomicMalloc", "AWMalloc", "CMalloc"};
  EXPECT_EQ(find_name("atomicmalloc", names), "AtomicMalloc");
  EXPECT_EQ(find_name("atomic", names), "");
  EXPECT_EQ(nearest_name("atomicmaloc", names), "AtomicMalloc");
  EXPECT_EQ(nearest_name("WAMalloc", names), "AWMalloc");
  EXPECT_EQ(nearest_name("xyz", names), "");
}

TEST(Text, AlignsTables) {
  table t({{"name"}, {"n", right}});
  t.add({"a", "1000"});
  t.add({"long name", "7"});
  EXPECT_EQ(t.text(), "name          n\n---------  ----\na          1000\nlong name     7\n");
}

TEST(Text, GroupsAndRoundsNumbers) {
  EXPECT_EQ(grouped(7), "7");
  EXPECT_EQ(grouped(1048576), "1,048,576");
  EXPECT_EQ(rounded(12), "12");
  EXPECT_EQ(rounded(999), "999");
  EXPECT_EQ(rounded(999.9), "1.00 k");
  EXPECT_EQ(rounded(21'440'000), "21.4 M");
}

}  // namespace
}  // namespace quarry::tool::parse_test
