// SPDX-License-Identifier: Apache-2.0
/// A heap lives on a machine.
// expect: machine
#include <quarry/heap.hpp>

#ifndef QUARRY_CONTROL
using where = int;
#else
using where = quarry::cpu;
#endif
void use() { quarry::heap<quarry::bump, where> heap(1024u); }
