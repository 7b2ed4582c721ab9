// SPDX-License-Identifier: Apache-2.0
// The same source serves both backends.
#include "other.cpp"
