// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The files of report/ and the chart library, built into the program.

#include <string_view>

namespace quarry::tool::report {

extern const std::string_view page_template, page_style, page_script;
extern const std::string_view
    chart_library;  // empty if it was not there when the program was built

}  // namespace quarry::tool::report
