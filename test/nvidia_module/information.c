// SPDX-License-Identifier: GPL-2.0
/* What the driver says about itself in /proc/driver/nvidia, and how a test talks to the stand-in:
 * through /sys/kernel/debug/nvidia_stand_in/control and counts. README.md has the words. */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "rules.h"
#define CREATE_TRACE_POINTS
#include "nvidia_tracepoint.h"

#define BUS_LOCATION "0000:0a:00.0"

static char* version = "580.159.04";
module_param(version, charp, 0444);
MODULE_PARM_DESC(version, "What /proc says; the layouts of ioctls stay those of 580.159.04");

static struct proc_dir_entry* proc_folder;
static struct dentry* debug_folder;
static struct pci_dev* gpu; /* no bus knows it: it is there for its name */

static int show_version(struct seq_file* file, void* unused) {
#ifdef FRONTEND
  seq_printf(file, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  (stand-in)\n", version);
#else
  seq_printf(file,
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build"
             "  (stand-in)\n",
             version);
#endif
  seq_puts(file, "GCC version:  gcc version " __VERSION__ "\n");
  return 0;
}

static int show_gpu(struct seq_file* file, void* unused) {
  seq_puts(file, "Model: \t\t NVIDIA H200\nIRQ:   \t\t 42\n");
  seq_puts(file, "GPU UUID: \t GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0\n");
  seq_puts(file, "Video BIOS: \t 96.00.bc.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\n");
  seq_puts(file, "DMA Mask: \t 0xfffffffffffff\nBus Location: \t " BUS_LOCATION "\n");
  seq_printf(file, "Device Minor: \t 0\nGPU Firmware: \t %s\nGPU Excluded:\t No\n", version);
  return 0;
}

/* xid NUMBER TEXT: the log gets all of TEXT; the tracepoint leaves out the process, with which it
 * begins. */
static int fire_xid(char* text) {
  const char* number_text = strsep(&text, " \t");
  u32 number;

  if (!number_text || kstrtou32(number_text, 0, &number)) return -EINVAL;
  if (!text) text = "";
  pr_err("NVRM: Xid (PCI:0000:0a:00): %u, %s\n", number, text);
  if (!strncmp(text, "pid=", 4) && strstr(text, ", name=")) {
    char* rest = strstr(strstr(text, ", name=") + 1, ", ");

    if (rest) text = rest + 2;
  }
  trace_nvidia_dev_xid(gpu, number, text);
  return 0;
}

static int obey(char* line) {
  char* rest = strim(line);
  const char* word = strsep(&rest, " \t");

  if (!*word) return 0;
  if (!strcmp(word, "answer") && rest) return stand_in_add_rule(rest);
  if (!strcmp(word, "xid") && rest) return fire_xid(rest);
  if (!strcmp(word, "interrupt") && rest) {
    u32 times;

    if (kstrtou32(rest, 0, &times)) return -EINVAL;
    stand_in_interrupt(times);
    return 0;
  }
  if (!strcmp(word, "forget")) {
    stand_in_forget_rules();
    return 0;
  }
  if (!strcmp(word, "reset")) {
    stand_in_reset_counts();
    return 0;
  }
  return -EINVAL;
}

static ssize_t write_control(struct file* file, const char __user* from, size_t size,
                             loff_t* offset) {
  char *text, *rest, *line;
  int bad = 0;

  if (size > PAGE_SIZE) return -E2BIG;
  text = memdup_user_nul(from, size);
  if (IS_ERR(text)) return PTR_ERR(text);
  rest = text;
  while (!bad && (line = strsep(&rest, "\n"))) bad = obey(line);
  kfree(text);
  return bad ? bad : size;
}

static const struct file_operations control_operations = {
    .owner = THIS_MODULE,
    .write = write_control,
};

static int open_counts(struct inode* inode, struct file* file) {
  return single_open(file, stand_in_show_counts, NULL);
}

static const struct file_operations counts_operations = {
    .owner = THIS_MODULE,
    .open = open_counts,
    .read = seq_read,
    .llseek = seq_lseek,
    .release = single_release,
};

int stand_in_information_start(void) {
  gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);
  if (!gpu) return -ENOMEM;
  gpu->dev.init_name = BUS_LOCATION;
  proc_folder = proc_mkdir("driver/nvidia", NULL);
  if (!proc_folder || !proc_mkdir("gpus", proc_folder) ||
      !proc_mkdir("gpus/" BUS_LOCATION, proc_folder) ||
      !proc_create_single("gpus/" BUS_LOCATION "/information", 0444, proc_folder, show_gpu) ||
      !proc_create_single("version", 0444, proc_folder, show_version)) {
    stand_in_information_stop();
    return -ENOMEM;
  }
  debug_folder = debugfs_create_dir("nvidia_stand_in", NULL);
  debugfs_create_file("control", 0200, debug_folder, NULL, &control_operations);
  debugfs_create_file("counts", 0444, debug_folder, NULL, &counts_operations);
  return 0;
}

void stand_in_information_stop(void) {
  debugfs_remove_recursive(debug_folder);
  proc_remove(proc_folder);
  kfree(gpu);
}
