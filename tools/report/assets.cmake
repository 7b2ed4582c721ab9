# SPDX-License-Identifier: Apache-2.0
# Builds the files of tools/report/web into the program: QUARRY_REPORT_ASSETS is a source file that
# holds them as string literals. The scripts are joined in the order of this list.
set(report_folder "${PROJECT_SOURCE_DIR}/tools/report/web")
set(report_scripts dom.js theme.js chart.js export.js figure.js tables.js page.js)
set(QUARRY_REPORT_SCRIPT "")
foreach(script IN LISTS report_scripts)
  file(READ "${report_folder}/${script}" text)
  string(APPEND QUARRY_REPORT_SCRIPT "${text}")
endforeach()
file(READ "${report_folder}/page.html" QUARRY_REPORT_TEMPLATE)
file(READ "${report_folder}/style.css" QUARRY_REPORT_STYLE)
list(TRANSFORM report_scripts PREPEND "${report_folder}/")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${report_scripts} "${report_folder}/page.html" "${report_folder}/style.css")

set(QUARRY_REPORT_ASSETS "${CMAKE_CURRENT_BINARY_DIR}/generated/report_assets.cpp")
configure_file(report/assets.cpp.in "${QUARRY_REPORT_ASSETS}" @ONLY)
