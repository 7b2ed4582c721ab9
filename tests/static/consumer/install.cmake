# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=... -DPREFIX=... -P install.cmake
# Installs the headers, quarry::cpu and the package files of BUILD into PREFIX, after emptying it.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" --component development
  COMMAND_ERROR_IS_FATAL ANY)
