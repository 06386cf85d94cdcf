// SPDX-License-Identifier: GPL-2.0-only
/* Test builds only: which call fails, set and read through module parameters. */
#include <linux/module.h>
#include <linux/sched.h>

#include "hcamem.h"

/* Counts down in the process that wrote it; the call that reaches 0 fails. */
static atomic_t inject_left = ATOMIC_INIT(0);
static pid_t inject_tgid;
static const char *inject_last = "";

bool hcamem_inject(const char *what)
{
	if (READ_ONCE(inject_tgid) != task_tgid_nr(current))
		return false;
	if (atomic_dec_if_positive(&inject_left) != 0)
		return false;
	WRITE_ONCE(inject_last, what);
	return true;
}

static int inject_set(const char *value, const struct kernel_param *param)
{
	int nth, ret = kstrtoint(value, 0, &nth);

	if (ret)
		return ret;
	WRITE_ONCE(inject_last, "");
	WRITE_ONCE(inject_tgid, task_tgid_nr(current));
	atomic_set(&inject_left, nth);
	return 0;
}

static int inject_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&inject_left));
}

static const struct kernel_param_ops inject_ops = {
	.set = inject_set,
	.get = inject_get,
};
module_param_cb(inject_nth, &inject_ops, NULL, 0600);
MODULE_PARM_DESC(inject_nth, "make the n-th call from now on fail in the process that writes this");

static int inject_last_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%s\n", READ_ONCE(inject_last));
}

static const struct kernel_param_ops inject_last_ops = {
	.get = inject_last_get,
};
module_param_cb(inject_last, &inject_last_ops, NULL, 0400);
MODULE_PARM_DESC(inject_last, "the call that was made to fail last");
