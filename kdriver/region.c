// SPDX-License-Identifier: GPL-2.0-only
/* Regions: obtaining their memory, finding a page, giving the memory back. */
#include <linux/cc_platform.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "hcamem.h"

/*
 * Orders to try, largest first. The list is short so that a request for much
 * fragmented memory does not fail thousands of times on its way down.
 */
static const unsigned int hcamem_orders[] = {
	HCAMEM_MAX_ORDER, HPAGE_PMD_ORDER, 4, 0
};

/* Regions whose last pages still have foreign references, retried later. */
static void hcamem_leftovers_work(struct work_struct *work);
static DEFINE_MUTEX(hcamem_leftovers_lock);
static LIST_HEAD(hcamem_leftovers);
static DECLARE_DELAYED_WORK(hcamem_leftovers_retry, hcamem_leftovers_work);
#define HCAMEM_RETRY_MS 100

static gfp_t hcamem_gfp(const struct hcamem_region *region, unsigned int order)
{
	gfp_t gfp = GFP_USER | __GFP_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

	gfp |= region->charge.node->zone;
	/*
	 * A large chunk is worth one attempt on the HCA's own node. A small one
	 * is worth reclaim and another node, but neither the OOM killer of the
	 * machine nor that of the memory cgroup.
	 */
	if (order >= HPAGE_PMD_ORDER)
		gfp |= __GFP_NORETRY | __GFP_THISNODE;
	else
		gfp |= __GFP_RETRY_MAYFAIL;
	/*
	 * Only what nobody can pin a part of is left compound: one pinned byte
	 * of a compound chunk keeps all of it.
	 */
	if (region->mapping == HCAMEM_MAPPING_HUGE && order)
		gfp |= __GFP_COMP;
	return gfp;
}

static struct page *hcamem_obtain_chunk(struct hcamem_region *region, int nid,
					unsigned long left, unsigned int *level)
{
	struct page *page;

	for (; *level < ARRAY_SIZE(hcamem_orders); ++*level) {
		unsigned int order = hcamem_orders[*level];

		if (left < 1UL << order)
			continue;
		page = alloc_pages_node(nid, hcamem_gfp(region, order), order);
		if (!page)
			continue;
		if (region->mapping == HCAMEM_MAPPING_PAGES && order)
			split_page(page, order);
		set_page_private(page, order);
		return page;
	}
	return NULL;
}

/* Returns how many pages went back: 0 if somebody else holds a reference. */
static unsigned long hcamem_free_page(struct hcamem_region *region, struct page *page)
{
	unsigned long pages = compound_nr(page);

	/*
	 * With only our reference left and every mapping gone nobody can find
	 * the page any more; otherwise whoever drops the last reference would
	 * free it unseen, so ours is kept.
	 */
	if (page_ref_count(page) > 1) {
		list_add(&page->lru, &region->leftovers);
		return 0;
	}
	__free_pages(page, compound_order(page));
	return pages;
}

/* Failed memory must not come back: the page allocator looks only at single pages. */
static bool hcamem_pages_failed(const struct page *page, unsigned long pages)
{
#ifdef CONFIG_MEMORY_FAILURE
	unsigned long seen = 0, i;

	/* A chunk of the page allocator has its struct pages side by side, 16 or more. */
	for (i = 0; i < pages; i += 8) {
		const struct page *p = page + i;

		seen |= p[0].flags | p[1].flags | p[2].flags | p[3].flags |
			p[4].flags | p[5].flags | p[6].flags | p[7].flags;
	}
	return seen & (1UL << PG_hwpoison);
#else
	return false;
#endif
}

static void hcamem_free_chunk(struct hcamem_region *region, struct page *page, unsigned long pages)
{
	unsigned long freed = 0, i;

	if (!PageCompound(page)) {
		for (i = 0; i < pages; i++)
			freed += hcamem_free_page(region, nth_page(page, i));
	} else if (hcamem_pages_failed(page, pages)) {
		pr_warn("%lu pages at frame %#lx hold failed memory and are withdrawn\n",
			pages, page_to_pfn(page));
		freed = pages;
	} else {
		freed = hcamem_free_page(region, page);
	}
	if (freed)
		hcamem_uncharge(&region->charge, freed);
}

/* Every region that was handed out and is still charged. */
DEFINE_MUTEX(hcamem_regions_lock);
LIST_HEAD(hcamem_regions);
static u64 hcamem_last_id;	/* hcamem_regions_lock */

static void hcamem_region_publish(struct hcamem_region *region)
{
	region->pid = task_tgid_nr(current);
	get_task_comm(region->comm, current);
	region->created = ktime_get_boottime_ns();
	mutex_lock(&hcamem_regions_lock);
	region->id = ++hcamem_last_id;
	list_add_tail(&region->all, &hcamem_regions);
	mutex_unlock(&hcamem_regions_lock);
	trace_hcamem_region_create(region);
}

static void hcamem_region_end(struct hcamem_region *region)
{
	mutex_lock(&hcamem_regions_lock);
	list_del(&region->all);
	mutex_unlock(&hcamem_regions_lock);
	hcamem_charge_end(&region->charge);
	kvfree(region->chunks);
	kfree(region);
}

static void hcamem_region_release(struct kref *ref)
{
	struct hcamem_region *region = container_of(ref, struct hcamem_region, ref);
	unsigned long i, nr_chunks = region->nr_chunks;

	trace_hcamem_region_destroy(region);
	mutex_lock(&hcamem_regions_lock);
	region->nr_chunks = 0; /* what follows is nobody's to list */
	mutex_unlock(&hcamem_regions_lock);
	for (i = 0; i < nr_chunks; i++) {
		hcamem_free_chunk(region, region->chunks[i].page, region->chunks[i].pages);
		cond_resched();
	}
	if (list_empty(&region->leftovers)) {
		hcamem_region_end(region);
		return;
	}

	/* The module stays until the work below has seen the last page go. */
	__module_get(THIS_MODULE);
	mutex_lock(&hcamem_leftovers_lock);
	list_add_tail(&region->entry, &hcamem_leftovers);
	mutex_unlock(&hcamem_leftovers_lock);
	schedule_delayed_work(&hcamem_leftovers_retry, msecs_to_jiffies(HCAMEM_RETRY_MS));
}

void hcamem_region_get(struct hcamem_region *region)
{
	kref_get(&region->ref);
}

void hcamem_region_put(struct hcamem_region *region)
{
	kref_put(&region->ref, hcamem_region_release);
}

/* Give back the leftover pages whose foreign references are gone. */
void hcamem_leftovers_reap(void)
{
	struct hcamem_region *region, *next_region;
	struct page *page, *next_page;

	mutex_lock(&hcamem_leftovers_lock);
	list_for_each_entry_safe(region, next_region, &hcamem_leftovers, entry) {
		unsigned long freed = 0;
		LIST_HEAD(pages);

		list_splice_init(&region->leftovers, &pages);
		list_for_each_entry_safe(page, next_page, &pages, lru) {
			freed += hcamem_free_page(region, page);
			cond_resched();
		}
		if (freed)
			hcamem_uncharge(&region->charge, freed);
		if (list_empty(&region->leftovers)) {
			list_del(&region->entry);
			hcamem_region_end(region);
			module_put(THIS_MODULE);
		}
	}
	mutex_unlock(&hcamem_leftovers_lock);
}

static void hcamem_leftovers_work(struct work_struct *work)
{
	bool more;

	hcamem_leftovers_reap();
	mutex_lock(&hcamem_leftovers_lock);
	more = !list_empty(&hcamem_leftovers);
	mutex_unlock(&hcamem_leftovers_lock);
	if (more)
		schedule_delayed_work(&hcamem_leftovers_retry, msecs_to_jiffies(HCAMEM_RETRY_MS));
}

/* At module exit no region is left; the work may still be on its way out. */
void hcamem_region_exit(void)
{
	cancel_delayed_work_sync(&hcamem_leftovers_retry);
}

/*
 * Obtain all of a region's memory on @chunks, linked by page->lru with the
 * order in page->private. On failure the caller gives back what is there.
 */
static int hcamem_obtain(struct hcamem_region *region, int nid, struct list_head *chunks)
{
	unsigned long left = region->pages, unchecked = 0;
	unsigned int level = 0;

	while (left) {
		struct page *page;

		if (fatal_signal_pending(current))
			return -EINTR;
		if (!unchecked) {
			int ret = hcamem_reserve_check(region->charge.node, region->pages,
						       min_t(unsigned long, left,
							     MAX_ORDER_NR_PAGES));
			if (ret)
				return ret;
			unchecked = MAX_ORDER_NR_PAGES;
		}
		page = hcamem_obtain_chunk(region, nid, left, &level);
		if (!page) {
			trace_hcamem_charge_refused((u64)region->pages << PAGE_SHIFT, 0, -ENOMEM);
			pr_notice_ratelimited("%s: no memory, or the memory cgroup's limit, for %llu bytes to %s[%d] on node %d; ask for less or raise memory.max\n",
					      dev_name(&region->charge.node->dev),
					      (u64)region->pages << PAGE_SHIFT, current->comm,
					      task_pid_nr(current), nid);
			return -ENOMEM;
		}
		list_add_tail(&page->lru, chunks);
		region->nr_chunks++;
		left -= 1UL << page_private(page);
		unchecked -= min(unchecked, 1UL << page_private(page));
		cond_resched();
	}
	return 0;
}

/* Move the chunks from the list into the table that lookups use. */
static int hcamem_tabulate(struct hcamem_region *region, struct list_head *chunks)
{
	struct hcamem_chunk *chunk;
	unsigned long index = 0;
	struct page *page, *next;

	chunk = kvmalloc_array(region->nr_chunks, sizeof(*chunk), GFP_KERNEL_ACCOUNT);
	if (!chunk)
		return -ENOMEM;
	region->chunks = chunk;
	list_for_each_entry_safe(page, next, chunks, lru) {
		list_del(&page->lru);
		chunk->page = page;
		chunk->index = index;
		chunk->pages = 1UL << page_private(page);
		index += chunk->pages;
		chunk++;
	}
	return 0;
}

static void hcamem_discard(struct hcamem_region *region, struct list_head *chunks)
{
	struct page *page, *next;

	/* Nobody has seen these pages yet, so none can be left over. */
	list_for_each_entry_safe(page, next, chunks, lru) {
		list_del(&page->lru);
		hcamem_free_chunk(region, page, 1UL << page_private(page));
		cond_resched();
	}
	hcamem_region_end(region);
}

/**
 * hcamem_region_create() - obtain a region for the current user
 * @node: the HCA's node
 * @args: checked by the caller, but for the size
 *
 * May sleep for as long as zeroing the memory takes; a fatal signal ends it.
 * Returns a region with one reference, or an ERR_PTR of an errno that
 * include/uapi/rdma/hcamem.h lists.
 */
struct hcamem_region *hcamem_region_create(struct hcamem_node *node,
					   const struct hcamem_create *args)
{
	int nid = args->numa_node == NUMA_NO_NODE ? node->numa_node : args->numa_node;
	struct hcamem_region *region;
	LIST_HEAD(chunks);
	int ret;

	if (hcamem_node_gone(node))
		return ERR_PTR(-ENODEV);
	if (cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT)) {
		pr_notice_ratelimited("%s: a confidential guest bounces all device memory; register ordinary memory instead\n",
				      dev_name(&node->dev));
		return ERR_PTR(-EOPNOTSUPP);
	}
	/* Also keeps the page count far from every overflow below. */
	if (args->size > READ_ONCE(hcamem_max_bytes)) {
		trace_hcamem_charge_refused(args->size, READ_ONCE(hcamem_max_bytes), -EDQUOT);
		pr_notice_ratelimited("%s refused %llu bytes to %s[%d]: max_bytes of the module is %llu; the administrator can raise it\n",
				      dev_name(&node->dev), args->size, current->comm,
				      task_pid_nr(current), READ_ONCE(hcamem_max_bytes));
		return ERR_PTR(-EDQUOT);
	}

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return ERR_PTR(-ENOMEM);
	kref_init(&region->ref);
	INIT_LIST_HEAD(&region->leftovers);
	INIT_LIST_HEAD(&region->all);
	region->mapping = args->mapping;
	region->fork = args->fork;
	region->pages = (args->size >> PAGE_SHIFT) + !!offset_in_page(args->size);

	ret = hcamem_charge(&region->charge, node, region->pages,
			    region->mapping == HCAMEM_MAPPING_HUGE);
	if (ret) {
		kfree(region);
		return ERR_PTR(ret);
	}
	if (hcamem_power_refused()) {
		pr_notice_ratelimited("%s: the machine is about to hibernate\n",
				      dev_name(&node->dev));
		ret = -EBUSY;
	} else {
		ret = hcamem_reserve_check(node, region->pages, region->pages);
	}
	if (!ret)
		ret = hcamem_obtain(region, nid, &chunks);
	if (!ret)
		ret = hcamem_tabulate(region, &chunks);
	if (ret) {
		hcamem_discard(region, &chunks);
		return ERR_PTR(ret);
	}
	hcamem_region_publish(region);
	hcamem_events_look();
	return region;
}

/* The chunk that holds page @index, which must lie in the region. */
const struct hcamem_chunk *hcamem_region_chunk(const struct hcamem_region *region,
					       unsigned long index)
{
	unsigned long low = 0, high = region->nr_chunks;

	while (high - low > 1) {
		unsigned long middle = low + (high - low) / 2;

		if (region->chunks[middle].index <= index)
			low = middle;
		else
			high = middle;
	}
	return &region->chunks[low];
}

struct page *hcamem_region_page(const struct hcamem_region *region, unsigned long index)
{
	const struct hcamem_chunk *chunk = hcamem_region_chunk(region, index);

	return nth_page(chunk->page, index - chunk->index);
}
