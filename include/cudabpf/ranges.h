/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records of the ranges by which a program says what it does (CB_RANGE). The library inside a
 * process makes them. */
#ifndef CUDABPF_RANGES_H
#define CUDABPF_RANGES_H

#include "cudabpf/abi.h"

#ifdef __cplusplus
namespace cudabpf::abi {
#endif

/* In cb_head.function. */
enum cb_range_op {
  CB_RANGE_PUSH = 1, /* a range begins inside those that the thread has pushed */
  CB_RANGE_POP = 2,  /* the thread's last one of this domain ends */
  CB_RANGE_START = 3,
  CB_RANGE_END = 4, /* the one with this number, perhaps on another thread */
  CB_RANGE_MARK = 5,
  CB_RANGE_DOMAIN = 6,   /* the text is the domain's name */
  CB_RANGE_CATEGORY = 7, /* the text is the name of the domain's category */
};

/* What a range's payload is; NVTX's numbers. */
enum cb_range_payload {
  CB_PAYLOAD_NONE = 0,
  CB_PAYLOAD_UNSIGNED_64 = 1,
  CB_PAYLOAD_SIGNED_64 = 2,
  CB_PAYLOAD_DOUBLE = 3,
  CB_PAYLOAD_UNSIGNED_32 = 4,
  CB_PAYLOAD_SIGNED_32 = 5,
  CB_PAYLOAD_FLOAT = 6,
};

#define CB_RANGE_TEXT 1024 /* longer ones are cut */
#define CB_RANGE_DOMAINS 256
#define CB_NO_DOMAIN 0xffff /* which one is not known */
#define CB_NO_LEVEL 0xffff
struct cb_range {
  struct cb_head head; /* string_size bytes follow; CB_READ_FAULT: its text is not known */
  __u64 number;        /* start, end: which one */
  __u64 payload;       /* as its type says */
  __u32 category;      /* 0: none */
  __u32 color;         /* ARGB; 0: none */
  __u16 domain;        /* 0: the default one */
  __u16 level;         /* push, pop: how many ranges of this domain are around it on its thread */
  __u8 payload_type;   /* enum cb_range_payload */
  __u8 reserved[3];
};

CB_STATIC_ASSERT(sizeof(struct cb_range) == 64, "cb_range");

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
