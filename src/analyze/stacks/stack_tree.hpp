// Python's stacks for the page of `report`: for each weight, a tree from the outermost functions
// inwards, whose leaves are what was called or ran; and the user's lines with all that weighs
// there.
#pragma once

#include "analyze/stacks/stack_weights.hpp"

namespace cudabpf::analyze {

// {"texts": [...], "kinds": [...], "trees": {"host": {"parents", "texts", "weights", "left_out"}},
// "lines": [...]}. A node comes after its parent, -1 is that of the outermost; what a text is, its
// kind says; "left_out" is what weighs in stacks that there was no room for, the lightest.
// Null: no stack is known.
Json stacks_json(const StackWeights& weights, const Names& names);
Json stack_line_columns();

}  // namespace cudabpf::analyze
