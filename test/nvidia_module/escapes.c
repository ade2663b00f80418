// SPDX-License-Identifier: GPL-2.0
#include "escapes.h"

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "rules.h"

#define NO_STATUS 0xffff

enum where { ANYWHERE, CTL, GPU };

struct layout {
  u8 number;
  u8 where;
  u16 size;
  u16 status_at;
};

static const struct layout layouts[] = {
    {0x27, GPU, 56, 40},            /* RM_ALLOC_MEMORY */
    {0x28, CTL, 20, 16},            /* RM_ALLOC_OBJECT */
    {0x29, CTL, 16, 12},            /* RM_FREE */
    {0x2a, CTL, 32, 28},            /* RM_CONTROL */
    {0x2b, ANYWHERE, 32, 28},       /* RM_ALLOC, NVOS21 */
    {0x2b, ANYWHERE, 48, 40},       /* RM_ALLOC, NVOS64 */
    {0x34, CTL, 28, 24},            /* RM_DUP_OBJECT */
    {0x35, CTL, 24, 20},            /* RM_SHARE */
    {0x39, GPU, 32, 24},            /* RM_I2C_ACCESS */
    {0x41, CTL, 56, 48},            /* RM_IDLE_CHANNELS */
    {0x4a, CTL, 184, 20},           /* RM_VID_HEAP_CONTROL */
    {0x4d, CTL, 72, 64},            /* RM_ACCESS_REGISTRY */
    {0x4e, CTL, 56, 40},            /* RM_MAP_MEMORY */
    {0x4f, CTL, 32, 24},            /* RM_UNMAP_MEMORY */
    {0x52, ANYWHERE, 16, 12},       /* RM_GET_EVENT_DATA */
    {0x54, CTL, 56, 48},            /* RM_ALLOC_CONTEXT_DMA2 */
    {0x57, CTL, 64, 56},            /* RM_MAP_MEMORY_DMA */
    {0x58, CTL, 48, 40},            /* RM_UNMAP_MEMORY_DMA */
    {0x59, CTL, 16, 12},            /* RM_BIND_CONTEXT_DMA */
    {0x5e, CTL, 40, 32},            /* RM_UPDATE_DEVICE_MAPPING_INFO */
    {0xc9, ANYWHERE, 4, NO_STATUS}, /* REGISTER_FD */
    {0xce, ANYWHERE, 16, 12},       /* ALLOC_OS_EVENT */
    {0xcf, ANYWHERE, 16, 12},       /* FREE_OS_EVENT */
    {0xd1, CTL, 12, 8},             /* STATUS_CODE */
    {0xd2, CTL, 72, NO_STATUS},     /* CHECK_VERSION_STR */
    {0xd5, GPU, 8, 4},              /* QUERY_DEVICE_INTR */
    {0xd6, CTL, 8, NO_STATUS},      /* SYS_PARAMS */
    {0xd7, GPU, 560, NO_STATUS},    /* NUMA_INFO: its status is that of the memory */
    {0xd8, GPU, 4, NO_STATUS},      /* SET_NUMA_STATUS */
    {0xd9, GPU, 2608, 2600},        /* EXPORT_TO_DMABUF_FD */
    {0xda, ANYWHERE, 8, 4},         /* WAIT_OPEN_COMPLETE */
};

static const struct layout* find(u32 number, u32 size, bool* known) {
  int i;

  *known = false;
  for (i = 0; i < ARRAY_SIZE(layouts); ++i) {
    if (layouts[i].number != number) continue;
    *known = true;
    if (layouts[i].size == size) return &layouts[i];
  }
  return NULL;
}

static u32 word(const void* structure, u32 at) {
  u32 value;

  memcpy(&value, structure + at, sizeof(value));
  return value;
}

static void set_word(void* structure, u32 at, u32 value) {
  memcpy(structure + at, &value, sizeof(value));
}

static void set_wide(void* structure, u32 at, u64 value) {
  memcpy(structure + at, &value, sizeof(value));
}

static u64 wide(const void* structure, u32 at) {
  u64 value;

  memcpy(&value, structure + at, sizeof(value));
  return value;
}

int escape_check(int node, u32 number, u32 size) {
  bool known;
  const struct layout* layout = find(number, size, &known);

  if (number == 0xc8) return node == NODE_CTL && size && size % 72 == 0 ? 0 : -EINVAL;
  if (!known) return 0;
  if (!layout) return -EINVAL;
  if (layout->where == CTL && node != NODE_CTL) return -EINVAL;
  if (layout->where == GPU && node > NODE_LAST_GPU) return -EINVAL;
  return 0;
}

u32 escape_subject(u32 number, const void* structure, u32 size) {
  if (number == 0x2a && size >= 12) return word(structure, 8);
  if ((number == 0x2b || number == 0x27 || number == 0x28) && size >= 16)
    return word(structure, 12);
  return 0;
}

/* The handles and addresses that the driver chooses look like the real one's. */
static u32 new_handle(void) {
  static atomic_t next = ATOMIC_INIT(0);

  return 0xc1d00000 + atomic_inc_return(&next);
}

static u64 new_address(u64 size) {
  static atomic64_t next = ATOMIC64_INIT(0x100000000);

  return atomic64_add_return(round_up(size, 0x10000), &next) - round_up(size, 0x10000);
}

/* The only parameter of a control that is answered: GET_WORK_SUBMIT_TOKEN's token. */
static int answer_control(const void* structure) {
  static const u32 token = 0x00010008;

  if (word(structure, 8) != 0xc36f0108) return 0;
  if (word(structure, 24) != sizeof(token)) return -EINVAL;
  return copy_to_user((void __user*)wide(structure, 16), &token, sizeof(token)) ? -EFAULT : 0;
}

static void answer_card_info(void* structure) {
  memset(structure, 0, 72);
  set_word(structure, 0, 1);             /* valid */
  set_word(structure, 8, 0x0a);          /* bus */
  set_word(structure, 12, 0x233510de);   /* vendor and device */
  set_word(structure, 16, 0x0a00);       /* gpu_id */
  set_wide(structure, 48, 141ull << 30); /* fb_size */
  set_word(structure, 56, 0);            /* minor */
}

int escape_answer(u32 number, void* structure, u32 size, u32 status) {
  bool known;
  const struct layout* layout = find(number, size, &known);
  int bad = 0;

  if (number == 0xc8) answer_card_info(structure);
  if (!layout) return 0;
  switch (status ? 0 : number) {
    case 0x27: /* RM_ALLOC_MEMORY */
    case 0x2b: /* RM_ALLOC: a caller names the object itself, or leaves it to the driver */
      if (!word(structure, 8)) set_word(structure, 8, new_handle());
      break;
    case 0x2a:
      bad = answer_control(structure);
      break;
    case 0x4a: /* VID_HEAP_CONTROL, to allocate a size */
      if (word(structure, 8) == 2 && !word(structure, 44)) set_word(structure, 44, new_handle());
      set_wide(structure, 24, 141ull << 30);
      set_wide(structure, 32, 140ull << 30);
      break;
    case 0x4e: /* MAP_MEMORY: what the mmap that follows is to ask for */
      set_wide(structure, 32, new_address(wide(structure, 24)));
      break;
    case 0xd2:
      set_word(structure, 4, 1); /* recognized */
      break;
    case 0xd6:
      set_wide(structure, 0, 128ull << 20);
      break;
    case 0xd7:
      set_word(structure, 0, -1); /* no NUMA node */
      break;
  }
  if (layout->status_at != NO_STATUS) set_word(structure, layout->status_at, status);
  return bad;
}
