// The fields of a product's line: what it multiplies, or why that is not known.
#pragma once

#include "cudabpf/product.hpp"

namespace cudabpf {

// Writes them with a comma before each, and returns where they end.
char* put_product(char* at, const Product& product);

}  // namespace cudabpf
