// SPDX-License-Identifier: Apache-2.0
/// The second argument of heap is a backend.
// expect: typename Backend::is_backend
#include <quarry/heap.hpp>

#ifndef QUARRY_CONTROL
using where = int;
#else
using where = quarry::cpu;
#endif
void use() { quarry::heap<quarry::bump, where> heap(1024u); }
