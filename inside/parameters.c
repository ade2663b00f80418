/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The parameters of a kernel, as a launch or a graph's node is given them: a list of addresses, one
 * a parameter, or one buffer. */
#include "taping.h"

/* What `extra` says: one buffer. False: it says something else. */
static bool find_buffer(__u64 extra, __u64 sp, __u64* buffer, __u64* size) {
  enum { END, BUFFER, SIZE };
  *buffer = *size = 0;
  for (int i = 0; i < 4; i++, extra += 16) {
    __u64 pair[2];
    if (!ci_read(pair, extra, sizeof(pair[0]), sp)) return false;
    if (pair[0] == END) return *buffer || !*size;
    if (!ci_read(pair, extra, sizeof(pair), sp)) return false;
    if (pair[0] == BUFFER) *buffer = pair[1];
    if (pair[0] == SIZE && !ci_read(size, pair[1], sizeof(*size), sp)) return false;
  }
  return false;
}

static __u64 bytes_of_parameters(__u64 kernel) {
  __u64 bytes = 0;
  size_t offset = 0, size = 0;
  for (size_t i = 0; i < CI_MAX_PARAMETERS && ci_parameter(kernel, i, &offset, &size); i++)
    if (offset + size > bytes) bytes = offset + size;
  return bytes;
}

static bool is_in_buffer(const struct ci_parameters* parameters) {
  return !parameters->list && parameters->extra;
}

bool ci_find_parameters(struct ci_parameters* parameters, __u64 sp) {
  parameters->buffer = 0;
  if (!is_in_buffer(parameters))
    parameters->size = bytes_of_parameters(parameters->kernel);
  else if (!find_buffer(parameters->extra, sp, &parameters->buffer, &parameters->size))
    return false;
  return parameters->size <= CI_MAX_PARAMETER_BYTES;
}

bool ci_read_parameters(__u8* to, const struct ci_parameters* parameters, __u64 sp) {
  __u64 room = parameters->size;
  if (is_in_buffer(parameters)) return !room || ci_read(to, parameters->buffer, room, sp);
  size_t offset = 0, size = 0;
  for (size_t i = 0; i < CI_MAX_PARAMETERS && ci_parameter(parameters->kernel, i, &offset, &size);
       i++) {
    __u64 value = 0;
    if (offset > room || size > room - offset ||
        !ci_read(&value, parameters->list + 8 * i, 8, sp) || !ci_read(to + offset, value, size, sp))
      return false;
  }
  return true;
}
