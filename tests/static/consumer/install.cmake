# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=... -DPREFIX=... -P install.cmake: the headers and the package files of
# BUILD, and nothing left from before, in PREFIX.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" --component development
  COMMAND_ERROR_IS_FATAL ANY)
