// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hibernation writes memory to disk and brings it back elsewhere in time, while
 * HCAs keep writing to it: refused as long as memory is handed out. Suspend
 * leaves memory where it is and needs nothing from us.
 */
#include <linux/moduleparam.h>
#include <linux/notifier.h>
#include <linux/suspend.h>

#include "hcamem.h"

static bool hcamem_allow_hibernation;
module_param_named(allow_hibernation, hcamem_allow_hibernation, bool, 0644);
MODULE_PARM_DESC(allow_hibernation, "hibernate even while memory is handed out (default: no)");

static bool hcamem_hibernating;

/*
 * Either this sees what was charged, or the one who charges sees the flag: both
 * sides write first and then look.
 */
static int hcamem_power_notify(struct notifier_block *block, unsigned long event, void *unused)
{
	switch (event) {
	case PM_HIBERNATION_PREPARE:
		if (READ_ONCE(hcamem_allow_hibernation))
			return NOTIFY_OK;
		WRITE_ONCE(hcamem_hibernating, true);
		smp_mb(); /* pairs with hcamem_power_refused() */
		if (!hcamem_total_pages())
			return NOTIFY_OK;
		WRITE_ONCE(hcamem_hibernating, false);
		pr_notice("hibernation refused: %llu bytes of DMA memory are handed out; end their users, or set allow_hibernation\n",
			  (u64)hcamem_total_pages() << PAGE_SHIFT);
		return notifier_from_errno(-EBUSY);
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		WRITE_ONCE(hcamem_hibernating, false);
		return NOTIFY_OK;
	}
	return NOTIFY_DONE;
}

/* Called with the charge made: may memory be handed out now? */
bool hcamem_power_refused(void)
{
	smp_mb(); /* pairs with hcamem_power_notify() */
	return READ_ONCE(hcamem_hibernating);
}

static struct notifier_block hcamem_power_notifier = { .notifier_call = hcamem_power_notify };

int __init hcamem_power_init(void)
{
	return register_pm_notifier(&hcamem_power_notifier);
}

void hcamem_power_exit(void)
{
	unregister_pm_notifier(&hcamem_power_notifier);
}
