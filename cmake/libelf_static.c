/* elfutils 0.192's static libelf, which Debian 12's backports and Debian 13 have, calls four
 * functions of its internal libeu but does not contain them. They are defined here as weak symbols,
 * so that a libelf.a that does contain them wins. cudabpf opens its only BPF object from one
 * thread, so no lock is needed. */
#define _GNU_SOURCE
#include <search.h>

struct search_tree {
  void* root; /* a lock follows, which nothing here touches */
};
typedef int (*compare_fn)(const void*, const void*);

__attribute__((weak)) void eu_search_tree_init(struct search_tree* tree) { tree->root = 0; }
__attribute__((weak)) void eu_search_tree_fini(struct search_tree* tree, void (*free_node)(void*)) {
  tdestroy(tree->root, free_node);
}
__attribute__((weak)) void* eu_tsearch(const void* key, struct search_tree* tree,
                                       compare_fn compare) {
  return tsearch(key, &tree->root, compare);
}
__attribute__((weak)) void* eu_tdelete(const void* key, struct search_tree* tree,
                                       compare_fn compare) {
  return tdelete(key, &tree->root, compare);
}
