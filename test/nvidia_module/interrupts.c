// SPDX-License-Identifier: GPL-2.0
/* Interrupts of a GPU that does not exist: the handlers run where the real ones do, at once on the
 * current CPU, and later in a thread. They are not counted: there are as many as were requested.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>

#include "rules.h"

#define HANDLER_US 200

irqreturn_t nvidia_isr(int irq, void* device);
noinline irqreturn_t nvidia_isr(int irq, void* device) {
  udelay(HANDLER_US);
  return IRQ_WAKE_THREAD;
}

/* With MSI-X, one handler calls the other. */
irqreturn_t nvidia_isr_msix(int irq, void* device);
noinline irqreturn_t nvidia_isr_msix(int irq, void* device) { return nvidia_isr(irq, device); }

irqreturn_t nvidia_isr_kthread_bh(int irq, void* device);
noinline irqreturn_t nvidia_isr_kthread_bh(int irq, void* device) {
  udelay(HANDLER_US);
  return IRQ_HANDLED;
}

static irqreturn_t (*volatile handler)(int irq, void* device) = nvidia_isr_msix;
static irqreturn_t (*volatile bottom_half)(int irq, void* device) = nvidia_isr_kthread_bh;

static void arrive(struct irq_work* work) { handler(42, NULL); }

void stand_in_interrupt(u32 times) {
  struct irq_work work = IRQ_WORK_INIT_HARD(arrive);

  while (times--) {
    irq_work_queue(&work);
    irq_work_sync(&work);
    bottom_half(42, NULL);
  }
}
