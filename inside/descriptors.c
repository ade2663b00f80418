/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What lies where in cuBLASLt's descriptors, of which only the library itself knows. It is found
 * out from it: two descriptors are made that differ in one number, and the bytes that differ are
 * that number's. Where these are not the two numbers, nothing is known.
 *
 * This is done in the call of a product, before it begins: the program itself could make a
 * descriptor there, whatever locks the library has.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "cudabpf/descriptors.h"
#include "recording.h"

OLD_VERSION(dlopen);
OLD_VERSION(dlsym);
OLD_VERSION(dlclose);

#define ROOM 512 /* more than any descriptor has */

/* NVIDIA's numbers */
enum {
  ELEMENTS_32F = 0,
  ELEMENTS_16F = 2,
  COMPUTE_32F = 68,
  COMPUTE_TF32 = 77,
  MATRIX_BATCH = 5,
  MATRIX_BATCH_MODE = 8,
  PRODUCT_TRANSA = 3,
  PRODUCT_TRANSB = 4,
  PRODUCT_EPILOGUE = 7,
  EPILOGUE_BIAS = 4,
  EPILOGUE_GELU = 32,
};

typedef int init_matrix(void* at, size_t size, int type, __u64 rows, __u64 columns, __s64 ld);
typedef int init_product(void* at, size_t size, int compute, int scale);
typedef int set_attribute(void* at, int attribute, const void* value, size_t size);

struct functions {
  init_matrix* init_matrix;
  init_product* init_product;
  set_attribute *set_of_matrix, *set_of_product;
};

/* Their numbers differ in each byte that a number has. */
struct two {
  __u64 first, second;
};
static const struct two ROWS = {0x1112131415, 0x2122232425}, COLUMNS = {0x3132333435, 0x4142434445},
                        LD = {0x5152535455, 0x6162636465}, MANY = {0x11121314, 0x21222324};

typedef __u8 descriptor[ROOM];

/* The place of the number by which these differ, and by nothing else. */
static struct cb_lt_place place_of(const __u8* a, const __u8* b, struct two are, __u8 size) {
  const struct cb_lt_place nowhere = {0, 0};
  unsigned at = 0;
  while (at < ROOM && a[at] == b[at]) at++;
  if (at + size > ROOM || at > 0xff) return nowhere;
  if (memcmp(a + at, &are.first, size) != 0 || memcmp(b + at, &are.second, size) != 0)
    return nowhere;
  if (memcmp(a + at + size, b + at + size, ROOM - at - size) != 0) return nowhere;
  return (struct cb_lt_place){(__u8)at, size};
}

struct matrix {
  int type;
  __u64 rows, columns, ld;
};
static struct matrix usual(void) {
  return (struct matrix){ELEMENTS_32F, ROWS.first, COLUMNS.first, LD.first};
}

static bool make_matrix(const struct functions* by, __u8* at, const struct matrix* of) {
  memset(at, 0, ROOM);
  return by->init_matrix(at, ROOM, of->type, of->rows, of->columns, (__s64)of->ld) == 0;
}

static struct cb_lt_place place_in_matrix(const struct functions* by, const struct matrix* other,
                                          struct two are, __u8 size) {
  descriptor a, b;
  struct matrix one = usual();
  if (!make_matrix(by, a, &one) || !make_matrix(by, b, other)) return (struct cb_lt_place){0, 0};
  return place_of(a, b, are, size);
}

static struct cb_lt_place place_of_attribute(set_attribute* set, const __u8* made, int attribute,
                                             struct two are) {
  const struct cb_lt_place nowhere = {0, 0};
  descriptor a, b;
  __s32 first = (__s32)are.first, second = (__s32)are.second;
  memcpy(a, made, ROOM);
  memcpy(b, made, ROOM);
  if (set(a, attribute, &first, sizeof(first)) != 0 ||
      set(b, attribute, &second, sizeof(second)) != 0)
    return nowhere;
  return place_of(a, b, are, sizeof(first));
}

static void look_at_matrices(const struct functions* by, struct cb_lt_place* places) {
  struct matrix other = usual();
  other.type = ELEMENTS_16F;
  places[CB_LT_TYPE] = place_in_matrix(by, &other, (struct two){ELEMENTS_32F, ELEMENTS_16F}, 4);
  other = usual();
  other.rows = ROWS.second;
  places[CB_LT_ROWS] = place_in_matrix(by, &other, ROWS, 8);
  other = usual();
  other.columns = COLUMNS.second;
  places[CB_LT_COLUMNS] = place_in_matrix(by, &other, COLUMNS, 8);
  other = usual();
  other.ld = LD.second;
  places[CB_LT_LD] = place_in_matrix(by, &other, LD, 8);
  descriptor made;
  struct matrix one = usual();
  if (!make_matrix(by, made, &one)) return;
  places[CB_LT_BATCH] = place_of_attribute(by->set_of_matrix, made, MATRIX_BATCH, MANY);
  places[CB_LT_BATCH_MODE] =
      place_of_attribute(by->set_of_matrix, made, MATRIX_BATCH_MODE, (struct two){0, 1});
}

static void look_at_products(const struct functions* by, struct cb_lt_place* places) {
  descriptor made = {0}, other = {0};
  if (by->init_product(made, ROOM, COMPUTE_32F, ELEMENTS_32F) != 0) return;
  if (by->init_product(other, ROOM, COMPUTE_TF32, ELEMENTS_32F) == 0)
    places[CB_LT_COMPUTE] = place_of(made, other, (struct two){COMPUTE_32F, COMPUTE_TF32}, 4);
  places[CB_LT_TRANSA] =
      place_of_attribute(by->set_of_product, made, PRODUCT_TRANSA, (struct two){0, 1});
  places[CB_LT_TRANSB] =
      place_of_attribute(by->set_of_product, made, PRODUCT_TRANSB, (struct two){0, 1});
  places[CB_LT_EPILOGUE] = place_of_attribute(by->set_of_product, made, PRODUCT_EPILOGUE,
                                              (struct two){EPILOGUE_BIAS, EPILOGUE_GELU});
}

static void look(const void* code, struct cb_lt_place* places) {
  struct ci_library library;
  if (!ci_library_at((__u64)code, &library)) return;
  void* handle = dlopen(library.path, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return;
  struct functions by;
  *(void**)&by.init_matrix = dlsym(handle, "cublasLtMatrixLayoutInit_internal");
  *(void**)&by.set_of_matrix = dlsym(handle, "cublasLtMatrixLayoutSetAttribute");
  *(void**)&by.init_product = dlsym(handle, "cublasLtMatmulDescInit_internal");
  *(void**)&by.set_of_product = dlsym(handle, "cublasLtMatmulDescSetAttribute");
  if (by.init_matrix && by.set_of_matrix) look_at_matrices(&by, places);
  if (by.init_product && by.set_of_product) look_at_products(&by, places);
  dlclose(handle);
}

/* Another thread may do the same meanwhile: the record comes before the first product either way.
 */
void ci_show_descriptors(struct ci_thread* thread, struct ci_entry* entry) {
  __u32 generation = ci_process->generation;
  if (likely(__atomic_load_n(&entry->shown, __ATOMIC_ACQUIRE) == generation)) return;
  struct cb_lt_place places[CB_LT_FIELDS] = {{0, 0}};
  int kept = errno;
  look(entry->code, places);
  errno = kept;
  struct cb_lt_layout* record = ci_reserve(thread, sizeof(*record), CB_DROPPED_NAME);
  if (!record) return;
  ci_fill_head(&record->head, thread, CB_LT_LAYOUT, ci_now());
  record->head.sp = 0;
  record->head.function = 0;
  memcpy(record->places, places, sizeof(places));
  memset(record->reserved, 0, sizeof(record->reserved));
  ci_commit(thread, sizeof(*record));
  __atomic_store_n(&entry->shown, generation, __ATOMIC_RELEASE);
}

/* The handle is asked, so that no call that sets it need be recorded: PyTorch sets the stream and
 * the mode before each product. */
void ci_tell_handle(struct ci_thread* thread, const struct ci_frame* frame) {
  __u64 handle = frame->args[0], stream = 0;
  __u32 math = 0;
  int kept = errno;
  bool known =
      frame->entry->stream_of(handle, &stream) == 0 && frame->entry->math_of(handle, &math) == 0;
  errno = kept;
  if (!known) return;
  if (thread->blas.handle == handle && thread->blas.stream == stream && thread->blas.math == math &&
      thread->blas.drops == thread->ring->drops)
    return;
  struct cb_blas_handle* record = ci_reserve(thread, sizeof(*record), CB_DROPPED_NAME);
  if (!record) return;
  ci_fill_head(&record->head, thread, CB_BLAS_HANDLE, ci_now());
  record->head.sp = 0;
  record->head.function = 0;
  record->handle = handle;
  record->stream = stream;
  record->math = math;
  record->reserved = 0;
  thread->blas.handle = handle;
  thread->blas.stream = stream;
  thread->blas.math = math;
  thread->blas.drops = record->head.drops;
  ci_commit(thread, sizeof(*record));
}
