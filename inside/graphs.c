/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads what the nodes of graphs are given: include/cudabpf/taping.h has what is kept of it.
 *
 * It is read into memory of its own first, because its size is known only then. That memory is far
 * larger than nearly all graphs need: the system gives only the pages that are written to.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "taping.h"

#define MAX_BYTES (128u << 20)
#define CALL(name, ...) (ci_cuda.name ? ci_cuda.name(__VA_ARGS__) : CI_NO_FUNCTION)

enum node_type { /* CUgraphNodeType */
                 KERNEL,
                 COPY,
                 SET,
                 HOST,
                 GRAPH,
                 EMPTY,
                 WAIT,
                 RECORD,
};

#define KERNEL_STRUCT 72    /* bytes of a CUDA_KERNEL_NODE_PARAMS_v2 */
#define KERNEL_STRUCT_V1 56 /* of the first version, which is its beginning */
#define SET_STRUCT 40       /* of a CUDA_MEMSET_NODE_PARAMS */

struct reading {
  __u64 sp;                       /* of the call */
  __u64 graphs[CI_MAX_NODES + 1]; /* to be read: the first, and those that nodes hold */
  __u32 holders[CI_MAX_NODES + 1];
  __u32 graph_count, edge_count;
  __u64 handles[CI_MAX_NODES];
  __u64 from[CI_MAX_EDGES], to[CI_MAX_EDGES], data[CI_MAX_EDGES];
  struct ci_edge edges[CI_MAX_EDGES];
  __u64 used; /* of the nodes' bytes */
  struct ci_nodes head;
  __u8 bytes[MAX_BYTES];
};

static struct reading* begin(__u64 sp) {
  long at = ci_system(SYS_mmap, 0, sizeof(struct reading), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at < 0 && at > -4096) return NULL;
  struct reading* reading = (struct reading*)at;
  reading->sp = sp;
  return reading;
}

static __u64 end(struct reading* reading) {
  if (reading->head.fault) reading->head.count = reading->edge_count = 0, reading->used = 0;
  __u64 at = ci_keep_parts(&reading->head, sizeof(reading->head) + reading->used, reading->edges,
                           reading->edge_count * sizeof(struct ci_edge));
  ci_system(SYS_munmap, (long)reading, sizeof(*reading), 0, 0, 0, 0);
  return at;
}

/* Room behind what there is, all zeroes; null: there is none. */
static void* append(struct reading* reading, __u64 size) {
  if (CI_PADDED(size) > MAX_BYTES - reading->used) {
    reading->head.fault = CI_NODES_TOO_MANY;
    return NULL;
  }
  void* at = reading->bytes + reading->used;
  reading->used += CI_PADDED(size);
  return at;
}

static struct ci_node* append_node(struct reading* reading, __u64 handle, __u32 holder) {
  struct ci_node* node =
      reading->head.count < CI_MAX_NODES ? append(reading, sizeof(struct ci_node)) : NULL;
  if (!node) {
    reading->head.fault = CI_NODES_TOO_MANY;
    return NULL;
  }
  reading->head.count++;
  node->handle = handle;
  node->holder = holder;
  return node;
}

/* What a node is given, which lies behind it. */
static void* append_given(struct reading* reading, struct ci_node* node, __u32 size) {
  void* given = append(reading, size);
  if (given) node->given = size;
  return given;
}

/* ----- kernels */

/* What the struct behind the node says. */
static void append_parameters(struct reading* reading, struct ci_node* node, const void* given) {
  const struct {
    __u64 function;
    __u32 grid[3], block[3], shared, padding;
    __u64 list, extra, kernel, context;
  }* kernel = given;
  struct ci_parameters parameters = {.kernel = kernel->function ? kernel->function : kernel->kernel,
                                     .list = kernel->list,
                                     .extra = kernel->extra};
  node->unreadable = !ci_find_parameters(&parameters, reading->sp);
  __u8* to = node->unreadable ? NULL : append(reading, parameters.size);
  if (!to) return;
  node->parameters = (__u32)parameters.size;
  node->unreadable = !ci_read_parameters(to, &parameters, reading->sp);
}

/* Those that a launch can be given, too, where they are set. */
static void append_attributes(struct reading* reading, struct ci_node* node) {
  static const __u8 ATTRIBUTES[] = {
      1,  /* access policy window */
      2,  /* cooperative */
      4,  /* cluster dimension */
      8,  /* priority */
      9,  /* map of memory synchronization domains */
      10, /* memory synchronization domain */
      11, /* preferred cluster dimension */
      14, /* preferred carveout of shared memory */
  };
  for (size_t i = 0; i < sizeof(ATTRIBUTES); i++) {
    struct {
      __u32 id, padding;
      __u64 value[8];
    } attribute = {.id = ATTRIBUTES[i]};
    _Static_assert(sizeof(attribute) == CI_LAUNCH_ATTRIBUTE, "CUlaunchAttribute");
    if (CALL(cuGraphKernelNodeGetAttribute, node->handle, ATTRIBUTES[i], attribute.value) != 0)
      continue;
    __u64 any = 0;
    for (int word = 0; word < 8; word++) any |= attribute.value[word];
    void* to = any ? append(reading, sizeof(attribute)) : NULL;
    if (!to) continue;
    __builtin_memcpy(to, &attribute, sizeof(attribute));
    node->attributes += CI_LAUNCH_ATTRIBUTE;
  }
}

/* ----- nodes */

/* The driver's answer to what the node is given. */
static int ask(__u32 type, __u64 node, void* given) {
  switch (type) {
    case KERNEL:
      return CALL(cuGraphKernelNodeGetParams_v2, node, given);
    case COPY:
      return CALL(cuGraphMemcpyNodeGetParams, node, given);
    case SET:
      return CALL(cuGraphMemsetNodeGetParams, node, given);
    case WAIT:
      return CALL(cuGraphEventWaitNodeGetEvent, node, given);
    case RECORD:
      return CALL(cuGraphEventRecordNodeGetEvent, node, given);
    default:
      return CI_NO_FUNCTION;
  }
}

static __u32 size_of_given(__u32 type) {
  switch (type) {
    case KERNEL:
      return KERNEL_STRUCT;
    case COPY:
      return sizeof(struct ci_rows);
    case SET:
      return SET_STRUCT;
    case WAIT:
    case RECORD:
      return sizeof(__u64);
    default:
      return 0;
  }
}

static void read_node(struct reading* reading, __u64 handle, __u32 holder) {
  struct ci_node* node = append_node(reading, handle, holder);
  if (!node) return;
  __u32 number = reading->head.count;
  if (CALL(cuGraphNodeGetType, handle, &node->type) != 0) {
    node->type = ~0u;
    node->unreadable = true;
    return;
  }
  if (node->type == GRAPH) {
    __u64 held = 0;
    node->unreadable = CALL(cuGraphChildGraphNodeGetGraph, handle, &held) != 0;
    if (node->unreadable) return;
    reading->graphs[reading->graph_count] = held;
    reading->holders[reading->graph_count++] = number;
    return;
  }
  __u32 size = size_of_given(node->type);
  void* given = size ? append_given(reading, node, size) : NULL;
  if (!given) return;
  node->unreadable = ask(node->type, handle, given) != 0;
  if (node->unreadable) return;
  if (node->type == COPY) ci_resolve_memory_types(given);
  if (node->type != KERNEL) return;
  append_parameters(reading, node, given);
  append_attributes(reading, node);
}

/* Revised, because the first version fails for edges that say more than their ends. */
static int ask_edges(struct reading* reading, __u64 graph, bool which, size_t* count) {
  __u64 *from = which ? reading->from : NULL, *to = which ? reading->to : NULL;
  if (ci_cuda.cuGraphGetEdges_v2)
    return ci_cuda.cuGraphGetEdges_v2(graph, from, to, which ? reading->data : NULL, count);
  return CALL(cuGraphGetEdges, graph, from, to, count);
}

/* How many there are is asked first: the driver fills what is left of the room. */
static void read_graph(struct reading* reading, __u64 graph, __u32 holder) {
  size_t nodes = 0, edges = 0;
  if (CALL(cuGraphGetNodes, graph, NULL, &nodes) != 0 || ask_edges(reading, graph, false, &edges)) {
    reading->head.fault = CI_NODES_UNREADABLE;
    return;
  }
  if (nodes > CI_MAX_NODES || edges > CI_MAX_EDGES - reading->edge_count) {
    reading->head.fault = CI_NODES_TOO_MANY;
    return;
  }
  if ((nodes && CALL(cuGraphGetNodes, graph, reading->handles, &nodes) != 0) ||
      (edges && ask_edges(reading, graph, true, &edges) != 0)) {
    reading->head.fault = CI_NODES_UNREADABLE;
    return;
  }
  for (size_t i = 0; i < nodes && !reading->head.fault; i++)
    read_node(reading, reading->handles[i], holder);
  for (size_t i = 0; i < edges; i++)
    reading->edges[reading->edge_count++] = (struct ci_edge){reading->from[i], reading->to[i]};
}

__u64 ci_keep_nodes(__u64 graph, __u64 sp) {
  struct reading* reading = begin(sp);
  if (!reading) return 0;
  reading->graphs[reading->graph_count++] = graph;
  for (__u32 i = 0; i < reading->graph_count && !reading->head.fault; i++)
    read_graph(reading, reading->graphs[i], reading->holders[i]);
  return end(reading);
}

/* ----- what a call gives one node */

static __u64 keep_one(__u32 type, __u32 size, __u64 from, __u64 sp) {
  struct reading* reading = begin(sp);
  if (!reading) return 0;
  reading->head.of_node = true;
  struct ci_node* node = append_node(reading, 0, 0);
  node->type = type;
  void* given = append_given(reading, node, size_of_given(type));
  node->unreadable = !given || !ci_read(given, from, size, sp);
  if (type == COPY && !node->unreadable) ci_resolve_memory_types(given);
  if (type == KERNEL && !node->unreadable) append_parameters(reading, node, given);
  return end(reading);
}

__u64 ci_keep_node(enum ci_keep what, __u64 given, __u64 sp) {
  enum { IN_STRUCT = 16, COPY_IN_STRUCT = 32 }; /* a CUgraphNodeParams: its type comes first */
  __u32 type = ~0u;
  __u64 graph = 0;
  switch (what) {
    case CI_KEEP_KERNEL_NODE:
      return keep_one(KERNEL, KERNEL_STRUCT, given, sp);
    case CI_KEEP_KERNEL_NODE_V1:
      return keep_one(KERNEL, KERNEL_STRUCT_V1, given, sp);
    case CI_KEEP_COPY_NODE:
      return keep_one(COPY, sizeof(struct ci_rows), given, sp);
    case CI_KEEP_SET_NODE:
      return keep_one(SET, SET_STRUCT, given, sp);
    default:
      break;
  }
  if (!ci_read(&type, given, sizeof(type), sp)) type = ~0u;
  if (type == GRAPH && ci_read(&graph, given + IN_STRUCT, sizeof(graph), sp))
    return ci_keep_nodes(graph, sp);
  return keep_one(type, size_of_given(type), given + (type == COPY ? COPY_IN_STRUCT : IN_STRUCT),
                  sp);
}
