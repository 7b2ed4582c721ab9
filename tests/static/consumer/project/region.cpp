// SPDX-License-Identifier: Apache-2.0
#include <quarry/region.hpp>

#include <vector>

int main() {
  quarry::region_tree tree;
  quarry::region region(tree);
  std::vector<int, quarry::region::allocator<int>> numbers(1000, 7, region);
  return quarry::pack(tree, region.id()) ? 0 : 1;
}
