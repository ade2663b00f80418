/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Texts that the program names once and then by a handle: domains, and strings that it registers.
 */
#ifndef CUDABPF_INSIDE_RANGE_NAMES_H
#define CUDABPF_INSIDE_RANGE_NAMES_H

#include "inside.h"

/* A text of the program, of either kind. NVTX lets tools read it, so it is read where it lies. */
struct ci_text {
  const char* narrow;
  const __u32* wide;
};
/* Writes it as UTF-8 with a NUL, cut to `most` bytes. Returns its size; 0: there is none. */
HIDDEN __u32 ci_put_text(char* to, struct ci_text text, __u32 most, bool* cut);

/* Keeps a domain's name. `handle`: by which another tool knows it; 0: there is no other tool.
 * Returns the handle by which the program is to name the domain. */
HIDDEN __u64 ci_keep_domain(__u64 handle, struct ci_text name);
/* The domain's number; CB_NO_DOMAIN: it is not known, or there was no room for it. */
HIDDEN __u16 ci_domain_number(__u64 handle);
HIDDEN const char* ci_domain_name(__u16 number); /* of a known one besides the default one */

/* The same for a registered string. */
HIDDEN __u64 ci_keep_string(__u64 handle, struct ci_text text);
HIDDEN const char* ci_string_of(__u64 handle); /* null: it is not known */

#endif
