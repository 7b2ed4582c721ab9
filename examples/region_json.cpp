// SPDX-License-Identifier: Apache-2.0
/// A JSON document whose nodes lie in one region: `new (region)` builds it, and destroying the
/// region frees all nodes in one call, without destructors and without a walk over the tree.

#include <quarry/region.hpp>

#include <cctype>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

struct value {
  enum kind { null, number, text, list, object } is = null;
  double as_number = 0;
  std::string_view as_text{};  // in the region
  value* first = nullptr;      // of a list or an object
  value* next = nullptr;       // sibling in the enclosing list or object
  std::string_view key{};
};

/// Parses the part of JSON that this example needs: no escapes, no true and false.
class parser {
 public:
  parser(std::string_view in, quarry::region& where) : in_(in), region_(where) {}

  value* parse() {
    skip();
    auto* v = new (region_) value;
    if (next_character() == '"') {
      v->is = value::text;
      v->as_text = quoted();
    } else if (next_character() == '[' || next_character() == '{') {
      v->is = next_character() == '[' ? value::list : value::object;
      const char end = take() == '[' ? ']' : '}';
      value** last = &v->first;
      for (skip(); next_character() != end; skip()) {
        std::string_view key;
        if (v->is == value::object) {
          key = quoted();
          skip();
          take();  // the colon
        }
        *last = parse();
        (*last)->key = key;
        last = &(*last)->next;
        skip();
        if (next_character() == ',') take();
      }
      take();
    } else {
      v->is = value::number;
      std::size_t used = 0;
      v->as_number = std::stod(std::string(in_.substr(at_)), &used);
      at_ += used;
    }
    return v;
  }

 private:
  char next_character() const { return at_ < in_.size() ? in_[at_] : '\0'; }
  char take() { return in_[at_++]; }
  void skip() {
    while (std::isspace(static_cast<unsigned char>(next_character())) != 0) ++at_;
  }
  std::string_view quoted() {
    const std::size_t end = in_.find('"', at_ + 1);
    const std::string_view inside = in_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    if (inside.empty()) return {};
    auto* copy = static_cast<char*>(region_.allocate(inside.size()));
    inside.copy(copy, inside.size());
    return {copy, inside.size()};
  }

  std::string_view in_;
  quarry::region& region_;
  std::size_t at_ = 0;
};

double sum(const value* v) {
  double total = v->is == value::number ? v->as_number : 0;
  for (const value* child = v->first; child != nullptr; child = child->next) total += sum(child);
  return total;
}

}  // namespace

int main() {
  std::string source = "{\"name\": \"points\", \"values\": [";
  for (int i = 0; i < 100'000; ++i) source += (i == 0 ? "" : ", ") + std::to_string(i);
  source += "]}";

  quarry::region_tree tree;
  double total = 0;
  {
    quarry::region document(tree);
    const value* root = parser(source, document).parse();
    total = sum(root);
    const quarry::packed_region packed = quarry::pack(tree, document.id()).value();
    std::printf("%llu objects, packed as %zu ranges\n",
                static_cast<unsigned long long>(document.statistics().pool.objects),
                packed.ranges.size());
  }  // destroys the region with all nodes
  std::printf("sum %.0f, regions left: %llu\n", total,
              static_cast<unsigned long long>(tree.regions()));
  return total == 4'999'950'000.0 && tree.regions() == 1 ? 0 : 1;
}
