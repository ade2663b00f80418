/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* In each period there is one window, at a place that seems random, so that what the program does
 * periodically is neither always met nor never, but some time after the one before, so that GPUs
 * have done what was submitted in that. All processes of a machine have the same windows: their
 * figures can be added, and programs that share a GPU are seen together.
 */
#include "gpu_windows.h"

static __u64 mixed(__u64 value) { /* splitmix64 */
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ value >> 27) * 0x94d049bb133111ebULL;
  return value ^ value >> 31;
}

#define BETWEEN_NS 1000000000ULL /* at least, or a quarter of the time that there is */

static __u64 begin_of(const struct ci_gpu_wish* wish, __u64 number) {
  __u64 rest = wish->period - wish->window, between = rest / 4 < BETWEEN_NS ? rest / 4 : BETWEEN_NS;
  return number * wish->period + mixed(number) % (rest - between + 1);
}

bool ci_gpu_window_is_open(const struct ci_gpu_wish* wish, __u64 now) {
  __u64 begin = begin_of(wish, now / wish->period);
  return now >= begin && now - begin < wish->window;
}

__u64 ci_before_gpu_window(const struct ci_gpu_wish* wish, __u64 now, __u64 most) {
  if (!wish->period) return most;
  __u64 number = now / wish->period, next = begin_of(wish, number);
  if (now >= next) next += wish->window;
  if (now >= next) next = begin_of(wish, number + 1);
  return next - now < most ? next - now : most;
}
