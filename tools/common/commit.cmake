# SPDX-License-Identifier: Apache-2.0
# Runs in every build. Writes the name of the commit in SOURCE to the header OUTPUT, and leaves the
# header untouched if the commit has not changed.
execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[
// Written by tools/common/commit.cmake.
#define QUARRY_COMMIT "@commit@"
]] @ONLY)
