/* SPDX-License-Identifier: GPL-2.0 */
/* What the modules share: requests are counted, and rules can set the answers. */
#ifndef NVIDIA_STAND_IN_RULES_H
#define NVIDIA_STAND_IN_RULES_H

#include <linux/types.h>

#define MAJOR_NUMBER 195

/* Devices of the driver's major are numbered by minor; UVM's come after all of those. */
enum {
  NODE_LAST_GPU = 247,
  NODE_MODESET = 254,
  NODE_CTL = 255,
  NODE_UVM = 256,
  NODE_UVM_TOOLS = 257,
};

enum operation { OP_OPEN, OP_CLOSE, OP_IOCTL, OP_MMAP, OP_POLL, OP_FAULT };

struct reply {
  u32 status; /* into the ioctl's struct */
  int result; /* of the system call: 0, or an errno below 0 */
};

/* Counts one operation; number and subject (a control, or a class) are an ioctl's. */
void stand_in_count(int node, enum operation operation, u32 number, u32 subject);

/* The answer to an ioctl, after the delay that a rule sets. */
struct reply stand_in_reply(int node, u32 number, u32 subject);

/* For the files in debugfs. */
struct seq_file;
int stand_in_show_counts(struct seq_file* file, void* unused);
int stand_in_add_rule(char* text); /* what follows the word "answer" */
void stand_in_forget_rules(void);
void stand_in_reset_counts(void);

void stand_in_interrupt(u32 times);

int stand_in_information_start(void);
void stand_in_information_stop(void);

#endif
