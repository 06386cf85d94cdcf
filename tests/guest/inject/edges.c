// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test builds only: stops the driver where it takes or drops a lock or a
 * reference, so that a test decides what happens on another CPU just then.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "edges.h"

/* However a test ends, nobody is held for ever. */
#define EDGE_HOLD (20 * HZ)

static DEFINE_SPINLOCK(edge_lock);
static DECLARE_WAIT_QUEUE_HEAD(edge_released);
static char edge_name[96];		/* "" holds nobody */
static unsigned int edge_generation;	/* another one lets go who is held */
static unsigned int edge_hits;		/* arrivals; the first is held */

static unsigned int edge_shake;
module_param(edge_shake, uint, 0600);
MODULE_PARM_DESC(edge_shake, "sleep up to so many microseconds at every edge");

void hcamem_edge(const char *function, const char *call)
{
	unsigned int shake = READ_ONCE(edge_shake), generation;
	size_t length = strlen(function);
	bool hold = false;

	if (shake)
		fsleep(get_random_u32() % shake);
	if (!READ_ONCE(edge_name[0]))
		return;
	spin_lock(&edge_lock);
	if (!strncmp(edge_name, function, length) && edge_name[length] == ':' &&
	    !strcmp(edge_name + length + 1, call))
		hold = !edge_hits++;
	generation = edge_generation;
	spin_unlock(&edge_lock);
	if (hold)
		wait_event_timeout(edge_released, READ_ONCE(edge_generation) != generation,
				   EDGE_HOLD);
}

static int edge_set(const char *value, const struct kernel_param *param)
{
	size_t length = strcspn(value, "\n");

	if (length >= sizeof(edge_name))
		return -EINVAL;
	spin_lock(&edge_lock);
	memcpy(edge_name, value, length);
	edge_name[length] = '\0';
	edge_hits = 0;
	edge_generation++;
	spin_unlock(&edge_lock);
	wake_up_all(&edge_released);
	return 0;
}

static const struct kernel_param_ops edge_ops = {
	.set = edge_set,
};
module_param_cb(edge, &edge_ops, NULL, 0200);
MODULE_PARM_DESC(edge, "FUNCTION:CALL: hold who comes there first, until this is written again");

module_param(edge_hits, uint, 0400);
MODULE_PARM_DESC(edge_hits, "how often the edge was come to since it was named");
