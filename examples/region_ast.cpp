// SPDX-License-Identifier: Apache-2.0
/// Memory of a compiler: symbols exist as long as the program region, the syntax tree of a function
/// only while the function is compiled. Each function has a child region, which is destroyed at
/// once.

#include <quarry/region.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct symbol {
  std::string_view name;
  long result;
};

struct expression {
  char operation;  // '#': a number
  long number;
  expression* left;
  expression* right;
};

/// sum := product {('+' | '-') product}, product := number {'*' number}
class compiler {
 public:
  compiler(std::string_view text, quarry::region& tree_lives_in)
      : text_(text), region_(tree_lives_in) {}

  expression* sum() {
    expression* e = product();
    while (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) {
      const char operation = text_[at_++];
      e = new (region_) expression{operation, 0, e, product()};
    }
    return e;
  }

 private:
  expression* product() {
    expression* e = number();
    while (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      e = new (region_) expression{'*', 0, e, number()};
    }
    return e;
  }
  expression* number() {
    long n = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
      n = n * 10 + (text_[at_++] - '0');
    return new (region_) expression{'#', n, nullptr, nullptr};
  }

  std::string_view text_;
  quarry::region& region_;
  std::size_t at_ = 0;
};

long evaluate(const expression* e) {
  switch (e->operation) {
    case '+': return evaluate(e->left) + evaluate(e->right);
    case '-': return evaluate(e->left) - evaluate(e->right);
    case '*': return evaluate(e->left) * evaluate(e->right);
    default: return e->number;
  }
}

}  // namespace

int main() {
  quarry::region_tree tree;
  quarry::region program(tree);
  std::vector<symbol*, quarry::region::allocator<symbol*>> symbols(program);

  for (int i = 0; i < 1000; ++i) {
    std::string body = std::to_string(i);
    for (int j = 0; j < 50; ++j) body += "+2*3-6";
    quarry::region function = program.create_child();
    const expression* ast = compiler(body, function).sum();
    symbols.push_back(new (program) symbol{"f", evaluate(ast)});
  }  // destroys the region of the function, and with it the syntax tree

  bool good = true;
  for (int i = 0; i < 1000; ++i) good = good && symbols[static_cast<std::size_t>(i)]->result == i;
  std::printf("%zu functions, %llu objects left in the program's region, %llu regions\n",
              symbols.size(), static_cast<unsigned long long>(program.statistics().pool.objects),
              static_cast<unsigned long long>(tree.regions()));
  return good && tree.regions() == 2 ? 0 : 1;
}
