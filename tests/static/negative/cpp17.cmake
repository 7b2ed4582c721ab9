# SPDX-License-Identifier: Apache-2.0
# Compiles HEADER with COMPILER as C++17. The first error must say that C++20 is needed.
execute_process(
  COMMAND "${COMPILER}" -std=c++17 -fsyntax-only "-I${INCLUDE}" -x c++ "${HEADER}"
  RESULT_VARIABLE failed OUTPUT_VARIABLE messages ERROR_VARIABLE messages)
if(NOT failed)
  message(FATAL_ERROR "${HEADER} compiles as C++17")
endif()
string(REGEX MATCH "error[^\n]*" first "${messages}")
if(NOT first MATCHES "Quarry needs C\\+\\+20")
  message(FATAL_ERROR "The first error is: ${first}")
endif()
