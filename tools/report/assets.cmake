# SPDX-License-Identifier: Apache-2.0
# The page of `quarry report` goes into the program: the files of report/ and Chart.js, as texts in a
# source file, QUARRY_REPORT_ASSETS. Without Chart.js the program is built all the same, and says so
# when a page is asked for.
find_file(QUARRY_CHART_JS chart.min.js
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist
  NO_DEFAULT_PATH
  DOC "Chart.js 3, one file: what draws the charts of quarry report")

set(report_folder "${PROJECT_SOURCE_DIR}/tools/report/web")
set(report_scripts dom.js looks.js marks.js chart.js export.js figure.js tables.js page.js)
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

set(QUARRY_CHART_LIBRARY "")
if(QUARRY_CHART_JS)
  file(READ "${QUARRY_CHART_JS}" QUARRY_CHART_LIBRARY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${QUARRY_CHART_JS}")
else()
  message(WARNING "Chart.js (libjs-chart.js) was not found: quarry report will write no pages. "
    "scripts/install-deps installs it; -DQUARRY_CHART_JS=FILE names it.")
endif()

set(QUARRY_REPORT_ASSETS "${CMAKE_CURRENT_BINARY_DIR}/generated/report_assets.cpp")
configure_file(report/assets.cpp.in "${QUARRY_REPORT_ASSETS}" @ONLY)
