// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may hold how much.
 *
 * A region is charged in full before its first page is obtained, to the user
 * who obtains it, and uncharged page by page as the pages go back. Three sums
 * are kept and checked together under one lock, so that two requests that fit
 * one after the other are never both refused:
 *
 *   all users			against max_bytes
 *   the user, all processes	against max_bytes_per_user
 *   user->locked_vm		against RLIMIT_MEMLOCK, unless CAP_IPC_LOCK
 *
 * Huge regions are added to mm->pinned_vm as well, where ib_umem_get() counts;
 * regions of single pages are not, since registering them with ibv_reg_mr()
 * charges pinned_vm against the same limit once more.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "hcamem.h"

unsigned long long hcamem_max_bytes;
unsigned long long hcamem_max_bytes_per_user;
unsigned long long hcamem_reserve_bytes;

struct hcamem_user {
	struct list_head entry;
	struct user_struct *user;	/* referenced; its locked_vm is charged */
	kuid_t uid;
	unsigned long references;	/* hcamem_charge_lock */
	unsigned long pages;		/* hcamem_charge_lock */
};

static DEFINE_SPINLOCK(hcamem_charge_lock);
static LIST_HEAD(hcamem_users);
static unsigned long hcamem_pages;	/* hcamem_charge_lock */

/* What refused a charge, to be said once the lock is dropped. */
struct hcamem_refusal {
	const char *limit;
	const char *remedy;
	u64 value, held;		/* bytes */
};

static struct hcamem_user *hcamem_user_find(kuid_t uid)
{
	struct hcamem_user *user;

	lockdep_assert_held(&hcamem_charge_lock);
	list_for_each_entry(user, &hcamem_users, entry)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

/* The record of the current user, made if there is none, with a reference. */
static struct hcamem_user *hcamem_user_get(void)
{
	struct hcamem_user *user, *fresh;

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return NULL;
	fresh->user = get_uid(current_user());
	fresh->uid = fresh->user->uid;

	spin_lock(&hcamem_charge_lock);
	user = hcamem_user_find(fresh->uid);
	if (!user) {
		list_add(&fresh->entry, &hcamem_users);
		swap(user, fresh);
	}
	user->references++;
	spin_unlock(&hcamem_charge_lock);

	if (fresh) {
		free_uid(fresh->user);
		kfree(fresh);
	}
	return user;
}

static void hcamem_user_put(struct hcamem_user *user)
{
	bool last;

	spin_lock(&hcamem_charge_lock);
	last = !--user->references;
	if (last)
		list_del(&user->entry);
	spin_unlock(&hcamem_charge_lock);

	if (last) {
		free_uid(user->user);
		kfree(user);
	}
}

static bool hcamem_over(unsigned long held, unsigned long pages, u64 limit)
{
	return held + pages > limit >> PAGE_SHIFT;
}

static int hcamem_refuse(struct hcamem_refusal *refusal, int err, const char *limit,
			 const char *remedy, u64 value, unsigned long held_pages)
{
	refusal->limit = limit;
	refusal->remedy = remedy;
	refusal->value = value;
	refusal->held = (u64)held_pages << PAGE_SHIFT;
	return err;
}

/* All or nothing. @unlimited: RLIMIT_MEMLOCK is charged, but not checked. */
static int hcamem_try_charge(struct hcamem_charge *charge, bool unlimited,
			     struct hcamem_refusal *refusal)
{
	u64 max_bytes = READ_ONCE(hcamem_max_bytes);
	u64 max_per_user = READ_ONCE(hcamem_max_bytes_per_user);
	u64 memlock = rlimit(RLIMIT_MEMLOCK);
	struct hcamem_user *user = charge->user;
	unsigned long pages = charge->pages;
	unsigned long locked, pinned = 0;
	int ret = 0;

	if (memlock == RLIM_INFINITY)
		unlimited = true;

	spin_lock(&hcamem_charge_lock);
	locked = atomic_long_add_return(pages, &user->user->locked_vm) - pages;
	if (charge->mm)
		pinned = atomic64_add_return(pages, &charge->mm->pinned_vm) - pages;

	if (hcamem_over(hcamem_pages, pages, max_bytes))
		ret = hcamem_refuse(refusal, -EDQUOT, "max_bytes of the module, for all users,",
				    "the administrator can raise it", max_bytes, hcamem_pages);
	else if (max_per_user && hcamem_over(user->pages, pages, max_per_user))
		ret = hcamem_refuse(refusal, -EDQUOT, "max_bytes_per_user of the module",
				    "the administrator can raise it", max_per_user, user->pages);
	else if (!unlimited && hcamem_over(locked, pages, memlock))
		ret = hcamem_refuse(refusal, -EAGAIN,
				    "RLIMIT_MEMLOCK, summed over the user's processes,",
				    "raise it (ulimit -l) or grant CAP_IPC_LOCK", memlock, locked);
	else if (!unlimited && hcamem_over(pinned, pages, memlock))
		ret = hcamem_refuse(refusal, -EAGAIN,
				    "RLIMIT_MEMLOCK, for what this process has pinned,",
				    "raise it (ulimit -l) or grant CAP_IPC_LOCK", memlock, pinned);

	if (ret) {
		atomic_long_sub(pages, &user->user->locked_vm);
		if (charge->mm)
			atomic64_sub(pages, &charge->mm->pinned_vm);
	} else {
		hcamem_pages += pages;
		user->pages += pages;
	}
	spin_unlock(&hcamem_charge_lock);
	return ret;
}

/**
 * hcamem_charge() - charge the current user for a region
 * @charge: filled in; to be ended by hcamem_charge_end()
 * @node: the node it is obtained through; a reference is held until the end
 * @pages: its size
 * @pinned: charge the pinned_vm of the current mm too
 *
 * Returns 0, or a negative errno (EAGAIN, EDQUOT, ENOMEM) with nothing charged.
 */
int hcamem_charge(struct hcamem_charge *charge, struct hcamem_node *node, unsigned long pages,
		  bool pinned)
{
	struct hcamem_refusal refusal;
	int ret;

	charge->node = node;
	charge->pages = pages;
	charge->mm = pinned ? current->mm : NULL;
	charge->user = hcamem_user_get();
	if (!charge->user)
		return -ENOMEM;

	ret = hcamem_try_charge(charge, false, &refusal);
	if (ret) {
		/* What is only waiting for a foreign reference may have been let go. */
		hcamem_leftovers_reap();
		ret = hcamem_try_charge(charge, false, &refusal);
	}
	if (ret == -EAGAIN && capable(CAP_IPC_LOCK))
		ret = hcamem_try_charge(charge, true, &refusal);
	if (ret) {
		pr_notice_ratelimited("%s refused %llu bytes to %s[%d], uid %u: %s is %llu bytes, %llu are in use; %s\n",
				      dev_name(&node->dev), (u64)pages << PAGE_SHIFT, current->comm,
				      task_pid_nr(current),
				      from_kuid(&init_user_ns, charge->user->uid), refusal.limit,
				      refusal.value, refusal.held, refusal.remedy);
		trace_hcamem_charge_refused((u64)pages << PAGE_SHIFT, refusal.value, ret);
		hcamem_user_put(charge->user);
		return ret;
	}

	if (charge->mm)
		mmgrab(charge->mm);
	get_device(&node->dev);
	atomic_long_add(pages, &node->pages);
	atomic_long_inc(&node->regions);
	return 0;
}

/* @pages went back to the kernel. */
void hcamem_uncharge(struct hcamem_charge *charge, unsigned long pages)
{
	spin_lock(&hcamem_charge_lock);
	hcamem_pages -= pages;
	charge->user->pages -= pages;
	charge->pages -= pages;
	spin_unlock(&hcamem_charge_lock);

	atomic_long_sub(pages, &charge->user->user->locked_vm);
	if (charge->mm)
		atomic64_sub(pages, &charge->mm->pinned_vm);
	atomic_long_sub(pages, &charge->node->pages);
}

/* Uncharge what is left and let go of the user, the mm and the node. */
void hcamem_charge_end(struct hcamem_charge *charge)
{
	if (charge->pages)
		hcamem_uncharge(charge, charge->pages);
	atomic_long_dec(&charge->node->regions);
	if (charge->mm)
		mmdrop(charge->mm);
	hcamem_user_put(charge->user);
	put_device(&charge->node->dev);
}

/**
 * hcamem_reserve_check() - is there memory to spare?
 * @node: for the message
 * @size: what the region being obtained takes in all, for the message
 * @wanted: pages about to be obtained
 *
 * The OOM killer cannot see who holds our memory, so we stop before it has to
 * act. Returns 0 or -ENOMEM.
 */
int hcamem_reserve_check(struct hcamem_node *node, unsigned long size, unsigned long wanted)
{
	u64 reserve = READ_ONCE(hcamem_reserve_bytes);
	unsigned long available = max(si_mem_available(), 0L);

	if (available >= wanted && available - wanted >= reserve >> PAGE_SHIFT)
		return 0;
	trace_hcamem_charge_refused((u64)size << PAGE_SHIFT, reserve, -ENOMEM);
	pr_notice_ratelimited("%s refused %llu bytes to %s[%d]: %llu bytes of memory are available and reserve_bytes of the module keeps %llu; free memory, or the administrator can lower it\n",
			      dev_name(&node->dev), (u64)size << PAGE_SHIFT, current->comm,
			      task_pid_nr(current), (u64)available << PAGE_SHIFT, reserve);
	return -ENOMEM;
}

/* Who pays. */
kuid_t hcamem_charge_uid(const struct hcamem_charge *charge)
{
	return charge->user->uid;
}

unsigned long hcamem_total_pages(void)
{
	return READ_ONCE(hcamem_pages);
}

unsigned long hcamem_user_pages(void)
{
	struct hcamem_user *user;
	unsigned long pages;

	spin_lock(&hcamem_charge_lock);
	user = hcamem_user_find(current_user()->uid);
	pages = user ? user->pages : 0;
	spin_unlock(&hcamem_charge_lock);
	return pages;
}

/* Defaults for what was not given when the module was loaded. */
void __init hcamem_charge_init(void)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;

	if (!hcamem_max_bytes)
		hcamem_max_bytes = ram / 2;
	if (!hcamem_reserve_bytes)
		hcamem_reserve_bytes = ram / 16;
}
