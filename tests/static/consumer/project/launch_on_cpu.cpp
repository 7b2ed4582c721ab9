// SPDX-License-Identifier: Apache-2.0
// A program that links only together with quarry::cpu.
#include <quarry/simt/simt.hpp>

int main() {
  quarry::launch<quarry::cpu>({1, 32}, [] {});
  return 0;
}
