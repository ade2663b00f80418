// SPDX-License-Identifier: GPL-2.0
#include "rules.h"

#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#define MAX_RULES 64
#define MAX_COUNTS 1024

struct rule {
  bool uvm;
  u32 number;
  bool any_subject;
  u32 subject;
  u32 status;
  int result;
  u32 delay_us;
  u32 times; /* how often it still holds; 0: for ever */
};

struct count {
  int node;
  enum operation operation;
  u32 number, subject;
  u64 count;
};

static DEFINE_SPINLOCK(lock); /* guards all below */
static struct rule rules[MAX_RULES];
static int rule_count;
static struct count counts[MAX_COUNTS];
static int count_count;

void stand_in_count(int node, enum operation operation, u32 number, u32 subject) {
  int i;

  spin_lock(&lock);
  for (i = 0; i < count_count; ++i) {
    if (counts[i].node == node && counts[i].operation == operation && counts[i].number == number &&
        counts[i].subject == subject)
      break;
  }
  if (i == count_count && i < MAX_COUNTS) {
    counts[i] = (struct count){node, operation, number, subject, 0};
    ++count_count;
  }
  if (i < MAX_COUNTS)
    ++counts[i].count;
  else
    pr_warn_once("nvidia stand-in: more than %d kinds of operations\n", MAX_COUNTS);
  spin_unlock(&lock);
}
EXPORT_SYMBOL_GPL(stand_in_count);

struct reply stand_in_reply(int node, u32 number, u32 subject) {
  struct reply reply = {0, 0};
  u32 delay_us = 0;
  ktime_t until;
  int early;
  int i;

  spin_lock(&lock);
  for (i = 0; i < rule_count; ++i) {
    struct rule* rule = &rules[i];

    if (rule->uvm != (node >= NODE_UVM) || rule->number != number ||
        (!rule->any_subject && rule->subject != subject))
      continue;
    reply = (struct reply){rule->status, rule->result};
    delay_us = rule->delay_us;
    if (rule->times && --rule->times == 0) {
      memmove(rule, rule + 1, (rule_count - i - 1) * sizeof(*rule));
      --rule_count;
    }
    break;
  }
  spin_unlock(&lock);
  /* A process may be killed meanwhile. The delay does not depend on ticks, which may be late. */
  if (delay_us) {
    until = ktime_add_us(ktime_get(), delay_us);
    do { /* the kernel wakes threads for nothing, too */
      set_current_state(TASK_KILLABLE);
      early = schedule_hrtimeout(&until, HRTIMER_MODE_ABS);
    } while (early && !fatal_signal_pending(current));
    if (early) reply.result = -EINTR;
  }
  return reply;
}
EXPORT_SYMBOL_GPL(stand_in_reply);

/* Words in pairs: nr|uvm N, control|class N, status N, errno N, delay MICROSECONDS, times N. */
int stand_in_add_rule(char* text) {
  struct rule rule = {.any_subject = true};
  bool has_number = false;
  char* name;

  while ((name = strsep(&text, " \t"))) {
    char* word;
    u32 value;

    if (!*name) continue;
    word = strsep(&text, " \t");
    if (!word || kstrtou32(word, 0, &value)) return -EINVAL;
    if (!strcmp(name, "nr") || !strcmp(name, "uvm")) {
      rule.uvm = *name == 'u';
      rule.number = value;
      has_number = true;
    } else if (!strcmp(name, "control") || !strcmp(name, "class")) {
      rule.any_subject = false;
      rule.subject = value;
    } else if (!strcmp(name, "status")) {
      rule.status = value;
    } else if (!strcmp(name, "errno")) {
      rule.result = -(int)value;
    } else if (!strcmp(name, "delay")) {
      rule.delay_us = value;
    } else if (!strcmp(name, "times")) {
      rule.times = value;
    } else {
      return -EINVAL;
    }
  }
  if (!has_number) return -EINVAL;
  spin_lock(&lock);
  if (rule_count == MAX_RULES) {
    spin_unlock(&lock);
    return -ENOSPC;
  }
  rules[rule_count++] = rule;
  spin_unlock(&lock);
  return 0;
}

void stand_in_forget_rules(void) {
  spin_lock(&lock);
  rule_count = 0;
  spin_unlock(&lock);
}

void stand_in_reset_counts(void) {
  spin_lock(&lock);
  count_count = 0;
  spin_unlock(&lock);
}

static void show_node(struct seq_file* file, int node) {
  if (node == NODE_CTL)
    seq_puts(file, "nvidiactl");
  else if (node == NODE_MODESET)
    seq_puts(file, "nvidia-modeset");
  else if (node == NODE_UVM)
    seq_puts(file, "nvidia-uvm");
  else if (node == NODE_UVM_TOOLS)
    seq_puts(file, "nvidia-uvm-tools");
  else
    seq_printf(file, "nvidia%d", node);
}

int stand_in_show_counts(struct seq_file* file, void* unused) {
  static const char* const names[] = {"open", "close", "ioctl", "mmap", "poll", "fault"};
  int i;

  spin_lock(&lock);
  for (i = 0; i < count_count; ++i) {
    const struct count* count = &counts[i];

    show_node(file, count->node);
    seq_printf(file, "\t%s\t", names[count->operation]);
    if (count->operation == OP_IOCTL)
      seq_printf(file, "0x%x\t0x%x", count->number, count->subject);
    else
      seq_puts(file, "-\t-");
    seq_printf(file, "\t%llu\n", count->count);
  }
  spin_unlock(&lock);
  return 0;
}
