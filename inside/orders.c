/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A thread that stands at a launch does what cudabpf orders: it asks the driver, and copies.
 * include/cudabpf/taping.h has the orders.
 */
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "taping.h"

OLD_VERSION(dlopen);
OLD_VERSION(dlsym);

#define PATIENCE_S 120 /* with a cudabpf that says nothing */

struct ci_driver_functions ci_cuda;

void ci_find_driver_functions(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return;
#define FIND(name, parameters) *(void**)&ci_cuda.name = dlsym(library, #name);
  CI_DRIVER_FUNCTIONS(FIND)
  CI_GRAPH_FUNCTIONS(FIND)
#undef FIND
}

/* The runtime launches by CUkernel, others by CUfunction: each of the driver's functions fails for
 * the other kind. */
bool ci_parameter(__u64 kernel, size_t at, size_t* offset, size_t* size) {
  if (ci_cuda.cuFuncGetParamInfo && ci_cuda.cuFuncGetParamInfo(kernel, at, offset, size) == 0)
    return true;
  return ci_cuda.cuKernelGetParamInfo &&
         ci_cuda.cuKernelGetParamInfo(kernel, at, offset, size) == 0;
}

static void* window(__u64 at, __u64 size) {
  if (at > CI_WINDOW_SIZE || size > CI_WINDOW_SIZE - at) return NULL;
  return (__u8*)ci_tape() + CI_WINDOW_AT + at;
}

#define CALL(name, ...) (ci_cuda.name ? ci_cuda.name(__VA_ARGS__) : CI_NO_FUNCTION)

static void copy_text(char* to, size_t size, const char* from) {
  size_t i = 0;
  for (; from && from[i] && i + 1 < size; i++) to[i] = from[i];
  to[i] = 0;
}

static int describe_kernel(__u64 handle) {
  struct ci_kernel* kernel = window(0, sizeof(*kernel));
  const char* name = NULL;
  kernel->owner = kernel->parameters = kernel->has = 0;
  int result = CALL(cuFuncGetName, &name, handle), device = 0;
  bool is_kernel = result != 0;
  if (is_kernel) {
    result = CALL(cuKernelGetName, &name, handle);
    if (result == 0) result = CALL(cuKernelGetLibrary, &kernel->owner, handle);
    CALL(cuCtxGetDevice, &device);
  } else {
    result = CALL(cuFuncGetModule, &kernel->owner, handle);
  }
  if (result != 0) return result;
  copy_text(kernel->name, sizeof(kernel->name), name);
  for (int i = 0; i < CI_KERNEL_ATTRIBUTES; i++) {
    int* value = &kernel->attributes[i];
    int known = is_kernel ? CALL(cuKernelGetAttribute, value, i, handle, device)
                          : CALL(cuFuncGetAttribute, value, i, handle);
    if (known == 0) kernel->has |= 1u << i;
  }
  size_t offset = 0, size = 0;
  while (kernel->parameters < CI_MAX_PARAMETERS &&
         ci_parameter(handle, kernel->parameters, &offset, &size)) {
    kernel->parameter[kernel->parameters].offset = (__u32)offset;
    kernel->parameter[kernel->parameters++].size = (__u32)size;
  }
  return 0;
}

static int describe_device(void) {
  enum { MAJOR = 75, MINOR = 76 };
  struct ci_device* device = window(0, sizeof(*device));
  int number = 0, value = 0;
  int result = CALL(cuCtxGetDevice, &number);
  if (result != 0) return result;
  *device = (struct ci_device){0};
  result = CALL(cuDeviceGetName, device->name, sizeof(device->name), number);
  CALL(cuDeviceGetUuid_v2, device->uuid, number);
  size_t size = 0;
  if (CALL(cuDeviceTotalMem_v2, &size, number) == 0) device->memory = size;
  if (CALL(cuDeviceGetAttribute, &value, MAJOR, number) == 0) device->major = (__u32)value;
  if (CALL(cuDeviceGetAttribute, &value, MINOR, number) == 0) device->minor = (__u32)value;
  for (int i = 0; i < CI_LIMITS - 1; i++)
    if (CALL(cuCtxGetLimit, &size, i) == 0) device->limits[i] = size;
  return result;
}

static int find_variable(const struct ci_order* order, struct ci_reply* reply) {
  const char* name = window(0, 1);
  ((char*)window(0, CI_WINDOW_SIZE))[CI_WINDOW_SIZE - 1] = 0;
  size_t size = 0;
  int result = order->a[1] ? CALL(cuModuleGetGlobal_v2, &reply->v[0], &size, order->a[0], name)
                           : CALL(cuLibraryGetGlobal, &reply->v[0], &size, order->a[0], name);
  reply->v[1] = size;
  return result;
}

/* Copies are several times as fast into memory that the driver has locked. If it refuses, they work
 * all the same. */
static bool window_is_locked;
static void lock_window(void) {
  if (!window_is_locked)
    window_is_locked = CALL(cuMemHostRegister_v2, window(0, 0), CI_WINDOW_SIZE, 0) == 0;
}
static void unlock_window(void) {
  if (window_is_locked) CALL(cuMemHostUnregister, window(0, 0));
  window_is_locked = false;
}

static int do_as_ordered(const struct ci_order* order, struct ci_reply* reply) {
  switch (order->what) {
    case CI_IS_DONE:
      return CALL(cuStreamQuery, order->a[0]);
    case CI_DRAIN:
      return CALL(cuCtxSynchronize);
    case CI_COPY: {
      void* to = window(order->a[2], order->a[1]);
      lock_window();
      return to ? CALL(cuMemcpyDtoH_v2, to, order->a[0], order->a[1]) : CI_NO_MEMORY;
    }
    case CI_COPY_HOST: {
      void* to = window(order->a[2], order->a[1]);
      __u64 sp = (__u64)__builtin_frame_address(0);
      return to && ci_read(to, order->a[0], order->a[1], sp) ? 0 : CI_NO_MEMORY;
    }
    case CI_MODULE:
      return CALL(cuLibraryGetModule, &reply->v[0], order->a[0]);
    case CI_KERNEL:
      return describe_kernel(order->a[0]);
    case CI_VARIABLE:
      return find_variable(order, reply);
    case CI_DEVICE:
      return describe_device();
    default:
      return CI_NO_FUNCTION;
  }
}

/* cudabpf has gone, or gives no more orders: nothing of this stays. */
static void end_taping(void) {
  struct ci_tape* tape = ci_tape();
  __atomic_store_n(&tape->keeps, CI_KEEPS_NOTHING, __ATOMIC_RELEASE);
  __atomic_store_n(&tape->held, 0, __ATOMIC_SEQ_CST);
  ci_system(SYS_futex, (long)&tape->held, FUTEX_WAKE, 1 << 30, 0, 0, 0);
}

struct ci_stop ci_take_orders(void) {
  struct ci_stop next = {0};
  __u64 signals = ci_block_signals(); /* a handler may need what a thread that is held has locked */
  long fd = ci_connect(PATIENCE_S);
  struct ci_hello hello = {.version = CI_VERSION,
                           .reason = CI_STOPPED,
                           .pid = ci_process->pid,
                           .tid = ci_thread.tid,
                           .has_memory = true};
  bool ordered = fd >= 0 && ci_send(fd, &hello, sizeof(hello));
  while (ordered) {
    struct ci_order order;
    long got = ci_system(SYS_recvfrom, fd, (long)&order, sizeof(order), 0, 0, 0);
    ordered = got == sizeof(order) && order.version == CI_VERSION;
    if (ordered && order.what == CI_GO_ON) {
      next = (struct ci_stop){
          .after = order.a[0], .at_wait = order.a[1] != 0, .tid = (__u32)order.a[2]};
      break;
    }
    struct ci_reply reply = {.version = CI_VERSION};
    if (ordered) reply.result = do_as_ordered(&order, &reply);
    ordered = ordered && ci_send(fd, &reply, sizeof(reply));
  }
  unlock_window();
  if (!ordered) end_taping();
  if (fd >= 0) ci_system(SYS_close, fd, 0, 0, 0, 0, 0);
  ci_restore_signals(signals);
  return next;
}
