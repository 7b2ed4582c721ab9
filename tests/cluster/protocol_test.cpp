// SPDX-License-Identifier: Apache-2.0
/// The encoding of messages, and the table of the protocol in docs/cluster.md.

#include "cluster/protocol/bodies.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <set>
#include <sstream>

namespace quarry::cluster::detail::protocol_test {
namespace {

template <class Visit, class... Bodies>
void for_each_body(std::tuple<Bodies...>*, Visit visit) {
  (visit(static_cast<Bodies*>(nullptr)), ...);
}
template <class Visit>
void for_each_body(Visit visit) {
  for_each_body(static_cast<all_bodies*>(nullptr), visit);
}

std::mt19937_64 random_words(7);

template <class T>
void randomize(T& value) {
  if constexpr (described<T>) {
    for_each_field(value, [](auto& field) { randomize(field); });
  } else if constexpr (is_vector<T>::value) {
    value.resize(random_words() % 5);
    for (auto& element : value) randomize(element);
  } else if constexpr (std::is_same_v<T, bool>) {
    value = random_words() % 2 == 0;
  } else if constexpr (std::is_same_v<T, region_status>) {
    value = static_cast<region_status>(random_words() % (last_region_status + 1));
  } else {
    value = static_cast<T>(random_words());
  }
}

TEST(Protocol, EveryKindHasOneBody) {
  std::set<message_kind> kinds;
  for_each_body([&]<class Body>(Body*) { EXPECT_TRUE(kinds.insert(Body::kind).second); });
  EXPECT_EQ(kinds.size(), message_kinds);
  EXPECT_EQ(static_cast<std::uint64_t>(*kinds.rbegin()), message_kinds - 1);
}

TEST(Protocol, DecodesWhatItEncodes) {
  for_each_body([]<class Body>(Body*) {
    for (int i = 0; i < 50; ++i) {
      Body body;
      randomize(body);
      const message m = make_message(3, body);
      const std::optional<Body> decoded = body_of<Body>(m);
      ASSERT_TRUE(decoded) << Body::name;
      std::vector<std::uint64_t> again;
      encode(*decoded, again);
      EXPECT_EQ(again, m.body) << Body::name;
    }
  });
}

TEST(Protocol, RejectsBodiesThatAreTooShortOrTooLong) {
  for_each_body([]<class Body>(Body*) {
    for (int i = 0; i < 20; ++i) {
      Body body;
      randomize(body);
      message m = make_message(3, body);
      const std::vector<std::uint64_t> whole = m.body;
      for (std::size_t n = 0; n < whole.size(); ++n) {
        m.body.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
        EXPECT_FALSE(body_of<Body>(m)) << Body::name << " of " << n << " words";
      }
      m.body = whole;
      m.body.push_back(0);
      EXPECT_FALSE(body_of<Body>(m)) << Body::name;
    }
  });
}

TEST(Protocol, RejectsOtherKindsLengthsAndValuesOutOfRange) {
  EXPECT_FALSE(body_of<size_request>(make_message(0, size_reply{5})));
  message m = make_message(0, lease_reply{{{64, 1}}});
  m.body[0] = ~std::uint64_t{0};
  EXPECT_FALSE(body_of<lease_reply>(m)) << "more elements than words";
  m = make_message(0, destroy_region_request{rid{5}, true});
  m.body[1] = 2;
  EXPECT_FALSE(body_of<destroy_region_request>(m)) << "no bool";
  m = make_message(0, free_reply{1, {{64, region_status::not_ours}}});
  m.body[3] = last_region_status + 1;
  EXPECT_FALSE(body_of<free_reply>(m)) << "no status";
  m = make_message(0, create_remote_request{rid{1}, 0, 7});
  m.body[2] = std::uint64_t{1} << 32;
  EXPECT_FALSE(body_of<create_remote_request>(m)) << "no node";
}

// ---- the documented table -----------------------------------------------------------------------

template <class T>
std::string type_name() {
  if constexpr (is_vector<T>::value)
    return type_name<typename T::value_type>() + "[]";
  else if constexpr (described<T>)
    return T::name;
  else if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_same_v<T, region_status>)
    return "status";
  else if constexpr (std::is_same_v<T, rid>)
    return "rid";
  else if constexpr (std::is_same_v<T, node_id>)
    return "node";
  else if constexpr (std::is_signed_v<T>)
    return "i64";
  else
    return "u64";
}

template <class T>
std::string field_list() {
  T value;
  std::istringstream names(T::field_names);
  std::string list;
  for_each_field(value, [&]<class Field>(Field&) {
    std::string name;
    std::getline(names >> std::ws, name, ',');
    list += (list.empty() ? "`" : ", `") + name + ": " + type_name<Field>() + "`";
  });
  return list.empty() ? "–" : list;
}

template <class Body>
std::string reply_name() {
  if constexpr (requires { typename Body::reply; })
    return "`" + std::string(Body::reply::name) + "`";
  else
    return "–";
}

std::string documented_table() {
  std::string text = "| message | fields | reply |\n| --- | --- | --- |\n";
  for_each_body([&]<class Body>(Body*) {
    text += "| `" + std::string(Body::name) + "` | " + field_list<Body>() + " | " +
            reply_name<Body>() + " |\n";
  });
  text += "\n| part | fields |\n| --- | --- |\n";
  const auto part = [&]<class Part>(Part*) {
    text += "| `" + std::string(Part::name) + "` | " + field_list<Part>() + " |\n";
  };
  part(static_cast<slab_slots*>(nullptr));
  part(static_cast<address_run*>(nullptr));
  part(static_cast<page_run*>(nullptr));
  part(static_cast<failed_free*>(nullptr));
  part(static_cast<file_range*>(nullptr));
  return text;
}

TEST(Protocol, DocumentationListsTheFieldsOfEveryMessage) {
  std::ifstream file(QUARRY_SOURCE_DIR "/docs/cluster.md");
  std::stringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  const std::string start = "<!-- protocol table -->\n", end = "<!-- end of the protocol table -->";
  const std::size_t from = text.find(start), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos)
      << "docs/cluster.md: no markers";
  EXPECT_EQ(text.substr(from + start.size(), to - from - start.size()), documented_table())
      << "replace the table in docs/cluster.md by:\n"
      << documented_table();
}

}  // namespace
}  // namespace quarry::cluster::detail::protocol_test
