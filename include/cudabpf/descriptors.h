/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the library inside a process says of products of matrices: what lies where in cuBLASLt's
 * descriptors (CB_LT_LAYOUT), and what is set in a handle of cuBLAS (CB_BLAS_HANDLE). */
#ifndef CUDABPF_DESCRIPTORS_H
#define CUDABPF_DESCRIPTORS_H

#include "cudabpf/abi.h"

#ifdef __cplusplus
namespace cudabpf::abi {
#endif

/* What is looked for in the descriptors of a product of cuBLASLt: first those of matrices. */
enum cb_lt_field {
  CB_LT_TYPE,
  CB_LT_ROWS,
  CB_LT_COLUMNS,
  CB_LT_LD,
  CB_LT_BATCH,
  CB_LT_BATCH_MODE,
  CB_LT_COMPUTE, /* of the product itself, as what follows */
  CB_LT_TRANSA,
  CB_LT_TRANSB,
  CB_LT_EPILOGUE,
  CB_LT_FIELDS,
};
struct cb_lt_place {
  __u8 at, size; /* size: 0: it was not found */
};
struct cb_lt_layout {
  struct cb_head head;
  struct cb_lt_place places[CB_LT_FIELDS];
  __u8 reserved[4];
};

/* For its thread's products that follow, until the next such record or one that is lost. */
struct cb_blas_handle {
  struct cb_head head;
  __u64 handle, stream;
  __u32 math; /* cublasMath_t */
  __u32 reserved;
};

CB_STATIC_ASSERT(sizeof(struct cb_lt_layout) == 56, "cb_lt_layout");
CB_STATIC_ASSERT(sizeof(struct cb_blas_handle) == 56, "cb_blas_handle");

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
