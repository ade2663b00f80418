/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The parts of NVTX's interface to tools (version 3) that are used here. Every library that names
 * ranges has a copy of NVTX, which asks the tool once for the functions that it is to call. */
#ifndef CUDABPF_INSIDE_NVTX_H
#define CUDABPF_INSIDE_NVTX_H

#include "inside.h"

#define NVTX_CALLBACKS 1 /* the table of which nvtx_callbacks is the beginning */
typedef const void* (*nvtx_export_table)(__u32 which);

enum { NVTX_CORE = 1, NVTX_CORE2 = 5 };
typedef void (*nvtx_function)(void);
struct nvtx_callbacks {
  size_t size;
  /* The places of a module's functions; 0: there is no such module. */
  int (*functions)(int module, nvtx_function*** places, unsigned* count);
};

enum nvtx_core {
  NVTX_MARK_EX = 1,
  NVTX_MARK_A,
  NVTX_MARK_W,
  NVTX_RANGE_START_EX,
  NVTX_RANGE_START_A,
  NVTX_RANGE_START_W,
  NVTX_RANGE_END,
  NVTX_RANGE_PUSH_EX,
  NVTX_RANGE_PUSH_A,
  NVTX_RANGE_PUSH_W,
  NVTX_RANGE_POP,
  NVTX_NAME_CATEGORY_A,
  NVTX_NAME_CATEGORY_W,
  NVTX_CORE_FUNCTIONS,
};

enum nvtx_core2 {
  NVTX_DOMAIN_MARK_EX = 1,
  NVTX_DOMAIN_RANGE_START_EX,
  NVTX_DOMAIN_RANGE_END,
  NVTX_DOMAIN_RANGE_PUSH_EX,
  NVTX_DOMAIN_RANGE_POP,
  NVTX_DOMAIN_NAME_CATEGORY_A = 8,
  NVTX_DOMAIN_NAME_CATEGORY_W,
  NVTX_DOMAIN_REGISTER_STRING_A,
  NVTX_DOMAIN_REGISTER_STRING_W,
  NVTX_DOMAIN_CREATE_A,
  NVTX_DOMAIN_CREATE_W,
  NVTX_CORE2_FUNCTIONS = 16,
};

/* NVTX's extension for payloads has ways of its own to name ranges. */
#define NVTX_PAYLOAD_MODULE 2
enum nvtx_payload {
  NVTX_MARK_PAYLOAD = 2,
  NVTX_RANGE_PUSH_PAYLOAD,
  NVTX_RANGE_POP_PAYLOAD,
  NVTX_RANGE_START_PAYLOAD,
  NVTX_RANGE_END_PAYLOAD,
  NVTX_DOMAIN_IS_ENABLED,
  NVTX_PAYLOAD_FUNCTIONS,
};
/* What an extension gives to a tool. */
struct nvtx_extension {
  __u16 version, size, module, compatible;
  size_t segments;
  struct nvtx_segment {
    size_t number, count;
    nvtx_function* functions;
  } * segment;
  void* export_function;
  const void* more;
};
CB_STATIC_ASSERT(sizeof(struct nvtx_extension) == 40, "nvtxExtModuleInfo_t");

enum { NVTX_TEXT = 1, NVTX_WIDE = 2, NVTX_REGISTERED = 3 };
#define NVTX_ARGB 1
struct nvtx_event {
  __u16 version;
  __u16 size;
  __u32 category;
  __s32 color_type;
  __u32 color;
  __s32 payload_type; /* as enum cb_range_payload; an extension has others */
  __s32 reserved;
  __u64 payload;
  __s32 message_type;
  const void* message;
};
CB_STATIC_ASSERT(sizeof(struct nvtx_event) == 48, "nvtxEventAttributes_v2");

#define NVTX_NO_TRACKING (-2) /* what push and pop return if the depth is not known */

#endif
