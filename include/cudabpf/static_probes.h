/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where the arguments of a USDT probe are. The compiler has left them anywhere, and a note in the
 * library says where, so rows (cb_read) say it to the kernel side, one for each argument:
 *
 *   count                 its bytes, and CB_SIGNED if it has a sign
 *   CB_READ_CONSTANT      it is in the row: `size` << 16 | `offset`, with a sign
 *   CB_READ_REGISTER      it is in the register that is the word `base` of pt_regs
 *   CB_READ_MEMORY        that register points to it, less or more by `offset`, which has a sign,
 * and by what another register says: CB_INDEX in `size`; 0: there is none
 */
#ifndef CUDABPF_STATIC_PROBES_H
#define CUDABPF_STATIC_PROBES_H

#define CB_SIGNED 0x80
/* The register's word in pt_regs, and by how many bits it is shifted to the left. */
#define CB_INDEX(word, shift) ((word) + 1 + ((shift) << 8))
#define CB_REGISTERS 32 /* more than pt_regs has words */

#endif
