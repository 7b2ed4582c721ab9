// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Turns a failed region or cluster call into an exception, for callers that cannot continue
/// without its result.
///
///   throw_on_failure(status, action)   throws unless status is ok
///   value_or_throw(result, action)     returns *result, or throws
///
/// Both throw quarry::error with the message "cannot <action>: <status>". `action` is a verb phrase
/// such as "send a message".

#include <quarry/core/error.hpp>
#include <quarry/region/status.hpp>

#include <string>

namespace quarry::apps {

inline void throw_on_failure(region_status status, const char* action) {
  if (status != region_status::ok)
    throw error("cannot " + std::string(action) + ": " + to_text(status));
}

template <class T>
T value_or_throw(region_result<T> result, const char* action) {
  throw_on_failure(result.status, action);
  return result.value();
}

}  // namespace quarry::apps
