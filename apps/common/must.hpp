// SPDX-License-Identifier: Apache-2.0
#pragma once
/// For calls that have to succeed: their value, or an error that says what was being done.

#include <quarry/core/error.hpp>
#include <quarry/region/status.hpp>

#include <string>

namespace quarry::apps {

inline void must(region_status s, const char* doing) {
  if (s != region_status::ok) throw error(std::string(doing) + ": " + to_text(s));
}
template <class T>
T must(region_result<T> r, const char* doing) {
  must(r.status, doing);
  return r.value;
}

}  // namespace quarry::apps
