// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The files of report/web, built into the program.

#include <string_view>

namespace quarry::tool::report {

extern const std::string_view page_template, page_style, page_script;

}  // namespace quarry::tool::report
