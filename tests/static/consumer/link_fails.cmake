# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=... -DINCLUDE=... -DSOURCE=... -DOUTPUT=... -P link_fails.cmake
# Passes if a program that runs a kernel on the CPU compiles, does not link without quarry::cpu, and
# the linker's message names that library.
execute_process(
  COMMAND "${COMPILER}" -std=c++20 "-I${INCLUDE}" -c "${SOURCE}" -o "${OUTPUT}.o"
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND "${COMPILER}" "${OUTPUT}.o" -pthread -o "${OUTPUT}"
  RESULT_VARIABLE status OUTPUT_VARIABLE messages ERROR_VARIABLE messages)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} links without quarry::cpu")
elseif(NOT messages MATCHES "undefined reference to .*needs_quarry_cpu::run_grid")
  message(FATAL_ERROR "the linker's message does not name quarry::cpu:\n${messages}")
endif()
