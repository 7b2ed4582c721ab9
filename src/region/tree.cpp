// SPDX-License-Identifier: Apache-2.0
/// The instances of the class templates of regions for default_geometry.

#include <quarry/region/detail/definitions.hpp>

namespace quarry {

template class slab_pool<default_geometry, node_pool>;
template class metadata_pool<default_geometry>;
template class basic_region_tree<default_geometry>;

}  // namespace quarry
