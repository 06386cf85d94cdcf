// SPDX-License-Identifier: GPL-2.0-only
/*
 * Telling processes that the kernel wants memory back, or that their HCA is gone.
 *
 * The shrinker and the OOM notifier tell only that somebody looks for memory:
 * both run in places where nothing may be waited for, and reclaim of page cache
 * calls them too. So they do nothing but queue work. The work compares what is
 * available with two thresholds; below one of them it says by how much. Memory
 * in use is never taken: it is for its holders to give back.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "hcamem.h"

unsigned long long hcamem_low_bytes;
unsigned long long hcamem_critical_bytes;

/* All open files, and what waits in them to be read. */
static DEFINE_SPINLOCK(hcamem_events_lock);
static LIST_HEAD(hcamem_event_files);

static void hcamem_pressure_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(hcamem_pressure, hcamem_pressure_work);

/* The same level is not said again sooner; while it lasts, it is. */
#define HCAMEM_REPEAT HZ
#define HCAMEM_LOOK (HZ / 10)

/* Only of the work. */
static u32 hcamem_level;		/* 0 or enum hcamem_event_type */
static unsigned long hcamem_level_said;	/* jiffies */

/*
 * The HCA may have gone since the file was allowed: either hcamem_events_gone()
 * finds the file on the list, or the file finds the HCA gone.
 */
void hcamem_events_open(struct hcamem_file *file)
{
	init_waitqueue_head(&file->wait);
	spin_lock(&hcamem_events_lock);
	file->gone = hcamem_node_gone(file->node);
	list_add(&file->entry, &hcamem_event_files);
	spin_unlock(&hcamem_events_lock);
}

void hcamem_events_close(struct hcamem_file *file)
{
	spin_lock(&hcamem_events_lock);
	list_del(&file->entry);
	spin_unlock(&hcamem_events_lock);
}

/* An event that was not read yet is replaced: the latest word counts. */
static void hcamem_raise(u32 type, u64 wanted)
{
	struct hcamem_file *file;

	trace_hcamem_event("", type, wanted);
	spin_lock(&hcamem_events_lock);
	list_for_each_entry(file, &hcamem_event_files, entry) {
		file->pressure.type = type;
		file->pressure.wanted = wanted;
		wake_up_interruptible_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
	}
	spin_unlock(&hcamem_events_lock);
}

/* The HCA of @node is gone; each of its files is told once. */
void hcamem_events_gone(struct hcamem_node *node)
{
	struct hcamem_file *file;

	trace_hcamem_event(dev_name(&node->dev), HCAMEM_EVENT_GONE, 0);
	spin_lock(&hcamem_events_lock);
	list_for_each_entry(file, &hcamem_event_files, entry) {
		if (file->node != node)
			continue;
		file->gone = true;
		wake_up_interruptible_poll(&file->wait, EPOLLIN | EPOLLRDNORM | EPOLLHUP);
	}
	spin_unlock(&hcamem_events_lock);
}

static void hcamem_pressure_work(struct work_struct *work)
{
	u64 available = (u64)max(si_mem_available(), 0L) << PAGE_SHIFT;
	u64 low = READ_ONCE(hcamem_low_bytes), critical = READ_ONCE(hcamem_critical_bytes);
	u32 level = 0;

	if (available < critical)
		level = HCAMEM_EVENT_CRITICAL;
	else if (available < low)
		level = HCAMEM_EVENT_LOW;

	if (level > hcamem_level ||
	    (level && time_after_eq(jiffies, hcamem_level_said + HCAMEM_REPEAT))) {
		hcamem_raise(level, PAGE_ALIGN(max(low, critical) - available));
		hcamem_level_said = jiffies;
	}
	hcamem_level = level;
	if (level)
		schedule_delayed_work(&hcamem_pressure, HCAMEM_REPEAT);
}

/*
 * Look at the thresholds, ten times a second at most. Reclaim calls this
 * thousands of times a second; obtaining a region calls it too, since memory may
 * be short without anybody reclaiming yet.
 */
void hcamem_events_look(void)
{
	static unsigned long looked;
	unsigned long last = READ_ONCE(looked);

	if (last && time_before(jiffies, last + HCAMEM_LOOK)) {
		schedule_delayed_work(&hcamem_pressure, HCAMEM_LOOK);
		return;
	}
	WRITE_ONCE(looked, jiffies);
	mod_delayed_work(system_wq, &hcamem_pressure, 0);
}

static unsigned long hcamem_shrink_count(struct shrinker *shrinker, struct shrink_control *control)
{
	hcamem_events_look();
	return SHRINK_EMPTY;
}

static unsigned long hcamem_shrink_scan(struct shrinker *shrinker, struct shrink_control *control)
{
	return SHRINK_STOP;
}

static int hcamem_oom(struct notifier_block *block, unsigned long unused, void *freed)
{
	hcamem_events_look();
	return NOTIFY_OK;
}

static struct shrinker *hcamem_shrinker;
static struct notifier_block hcamem_oom_notifier = { .notifier_call = hcamem_oom };

/* Take what is next to be read: 1; -EAGAIN if there is none yet, 0 if none will come. */
static int hcamem_event_take(struct hcamem_file *file, struct hcamem_event *event)
{
	int ret = 1;

	spin_lock(&hcamem_events_lock);
	if (file->gone && !file->gone_read) {
		*event = (struct hcamem_event){ .type = HCAMEM_EVENT_GONE };
		file->gone_read = true;
	} else if (file->pressure.type) {
		*event = file->pressure;
		file->pressure.type = 0;
	} else {
		ret = file->gone ? 0 : -EAGAIN;
	}
	spin_unlock(&hcamem_events_lock);
	return ret;
}

ssize_t hcamem_events_read(struct file *file, char __user *buffer, size_t size, loff_t *offset)
{
	struct hcamem_file *priv = file->private_data;
	struct hcamem_event event;
	int ret;

	if (size < sizeof(event))
		return -EINVAL;
	while ((ret = hcamem_event_take(priv, &event)) == -EAGAIN) {
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = wait_event_interruptible(priv->wait,
					       READ_ONCE(priv->pressure.type) ||
					       READ_ONCE(priv->gone));
		if (ret)
			return ret;
	}
	if (!ret)
		return 0;
	return copy_to_user(buffer, &event, sizeof(event)) ? -EFAULT : sizeof(event);
}

__poll_t hcamem_events_poll(struct file *file, struct poll_table_struct *table)
{
	struct hcamem_file *priv = file->private_data;
	__poll_t events = 0;

	poll_wait(file, &priv->wait, table);
	spin_lock(&hcamem_events_lock);
	if (priv->pressure.type || (priv->gone && !priv->gone_read))
		events |= EPOLLIN | EPOLLRDNORM;
	if (priv->gone)
		events |= EPOLLHUP;
	spin_unlock(&hcamem_events_lock);
	return events;
}

int __init hcamem_events_init(void)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;
	int ret;

	if (!hcamem_low_bytes)
		hcamem_low_bytes = ram / 8;
	if (!hcamem_critical_bytes)
		hcamem_critical_bytes = ram / 32;
	hcamem_shrinker = hcamem_shrinker_alloc();
	if (!hcamem_shrinker)
		return -ENOMEM;
	hcamem_shrinker->count_objects = hcamem_shrink_count;
	hcamem_shrinker->scan_objects = hcamem_shrink_scan;
	ret = hcamem_shrinker_register(hcamem_shrinker);
	if (ret)
		goto out_shrinker;
	ret = register_oom_notifier(&hcamem_oom_notifier);
	if (ret)
		goto out_shrinker;
	return 0;

out_shrinker:
	hcamem_shrinker_free(hcamem_shrinker);
	return ret;
}

void hcamem_events_exit(void)
{
	unregister_oom_notifier(&hcamem_oom_notifier);
	hcamem_shrinker_free(hcamem_shrinker);
	cancel_delayed_work_sync(&hcamem_pressure);
}
