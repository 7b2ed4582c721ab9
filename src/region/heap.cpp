// SPDX-License-Identifier: Apache-2.0
/// The instances of the class templates of regions for heap_geometry.

#include <quarry/region/detail/definitions.hpp>
#include <quarry/region/heap.hpp>

namespace quarry {

template class slab_pool<heap_geometry, node_pool>;
template class metadata_pool<heap_geometry>;
template class basic_region_tree<heap_geometry>;

}  // namespace quarry
