// SPDX-License-Identifier: Apache-2.0
#include "costs/ledger_file.hpp"

#include <quarry_ledger_text.hpp>

#include <nlohmann/json.hpp>

namespace quarry::tool {
namespace {

const nlohmann::json& ledger() {
  static const nlohmann::json parsed = nlohmann::json::parse(ledger_text);
  return parsed;
}

}  // namespace

std::optional<unsigned> registers_of(std::string_view allocator) {
  const nlohmann::json& all = ledger();
  if (!all.contains("allocators")) return std::nullopt;
  const auto at = all["allocators"].find(std::string(allocator));
  if (at == all["allocators"].end() || !at->contains("registers") ||
      !(*at)["registers"].is_number())
    return std::nullopt;
  return (*at)["registers"].get<unsigned>();
}

std::string register_compiler() { return ledger().value("nvcc", std::string()); }

}  // namespace quarry::tool
