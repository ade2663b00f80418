/* SPDX-License-Identifier: GPL-2.0 */
/* The tracepoint with which the real driver reports an Xid, a GPU error: nvidia:nvidia_dev_xid. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nvidia

#if !defined(NVIDIA_STAND_IN_TRACEPOINT_H) || defined(TRACE_HEADER_MULTI_READ)
#define NVIDIA_STAND_IN_TRACEPOINT_H

#include <linux/pci.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define ASSIGN_STRING(name, value) __assign_str(name)
#else
#define ASSIGN_STRING(name, value) __assign_str(name, value)
#endif

/* clang-format off */
TRACE_EVENT(nvidia_dev_xid,
  TP_PROTO(const struct pci_dev *device, u32 number, const char *text),
  TP_ARGS(device, number, text),
  TP_STRUCT__entry(
    __string(dev, pci_name(device))
    __field(u32, error_code)
    __string(msg, text)
  ),
  TP_fast_assign(
    ASSIGN_STRING(dev, pci_name(device));
    ASSIGN_STRING(msg, text);
    __entry->error_code = number;
  ),
  TP_printk("Xid %u on %s: %s", __entry->error_code, __get_str(dev), __get_str(msg))
);
/* clang-format on */

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE nvidia_tracepoint
#include <trace/define_trace.h>
