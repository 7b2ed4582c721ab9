# SPDX-License-Identifier: Apache-2.0
# Run at every build: writes OUTPUT, the name of the commit in SOURCE, and touches it only when that has changed.
execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[
// Written by tools/common/commit.cmake.
#define QUARRY_COMMIT "@commit@"
]] @ONLY)
