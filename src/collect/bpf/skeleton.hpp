// The kernel side's programs and data, as bpftool generates them for C. They use the contract's
// types outside any namespace.
#pragma once

#include "cudabpf/abi.h"
#include "cudabpf/walks.h"

using cudabpf::abi::cb_call_times;      // NOLINT(misc-unused-using-decls): used below
using cudabpf::abi::cb_driver_device;   // NOLINT(misc-unused-using-decls): used below
using cudabpf::abi::cb_ioctl_plan;      // NOLINT(misc-unused-using-decls): used below
using cudabpf::abi::cb_python_process;  // NOLINT(misc-unused-using-decls): used below
using cudabpf::abi::cb_read;            // NOLINT(misc-unused-using-decls): used below
using cudabpf::abi::cb_tally;           // NOLINT(misc-unused-using-decls): used below
using cudabpf::abi::cb_tally_key;       // NOLINT(misc-unused-using-decls): used below
using cudabpf::abi::cb_xid_layout;      // NOLINT(misc-unused-using-decls): used below

#include "cudabpf.skel.h"
