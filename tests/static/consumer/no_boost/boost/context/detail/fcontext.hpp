// SPDX-License-Identifier: Apache-2.0
// Shadows Boost.Context in the tests of programs that must compile without Boost.
#error "a header of quarry::quarry includes Boost"
