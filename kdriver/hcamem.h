/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hcamem: pinned DMA memory owned by the kernel.
 *
 * Objects, and who holds whom:
 *
 *   node     one per HCA and character device. Lives until the HCA is gone and
 *            the last open file and region are gone.
 *   file     one per open(). Owns the regions created through it and not yet
 *            mapped.
 *   region   chunks of memory, charged to the user who obtained them. Its
 *            pages, their order and their node never change after it is
 *            published, so nothing locks to look a page up.
 *   mapping  one per mmap() call: which pages of a region, and whose mm. Each
 *            VMA with our vm_ops holds one reference on one mapping.
 *   export   one per dma-buf: which pages of a region.
 *
 * mappings and exports hold the region; the region holds its node and its
 * charge. When the last reference on a region goes, each page that nobody else
 * references goes back to the kernel and is uncharged; a page that somebody
 * still references (vmsplice, O_DIRECT in flight) waits, charged, until that
 * reference goes.
 *
 * Lock order: mmap_lock -> leftovers lock -> regions lock; node->lock, the charge
 * lock and the events lock are leaves. No lock is held while memory is obtained,
 * zeroed or copied, but for the mmap_lock that bare mmap() runs under.
 */
#ifndef HCAMEM_H
#define HCAMEM_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/uidgid.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <rdma/hcamem.h>
#include <rdma/ib_verbs.h>

#include "compat.h"

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

struct dma_buf;
struct poll_table_struct;
struct seq_file;
struct user_struct;

/* node.c */

struct hcamem_node {
	struct device dev;
	struct cdev cdev;
	int id;
	struct mutex lock;		/* ibdev, name */
	struct ib_device *ibdev;	/* NULL once the HCA is gone */
	char name[IB_DEVICE_NAME_MAX];	/* of the HCA */
	u32 driver_id;
	int numa_node;			/* or NUMA_NO_NODE */
	gfp_t zone;			/* what the HCA can address: 0 or GFP_DMA32 */
	atomic_long_t pages;		/* charged through this node */
	atomic_long_t regions;
};

/* A region's mmap() offset is its id << 21: congruent to the region modulo 2 MiB. */
#define HCAMEM_OFFSET_SHIFT 21

struct hcamem_file {
	struct hcamem_node *node;
	struct xarray regions;		/* created, not yet mapped; by id */

	/* events.c, under its lock */
	struct list_head entry;
	wait_queue_head_t wait;
	struct hcamem_event pressure;	/* type 0: none */
	bool gone, gone_read;
};

int hcamem_node_init(void);
void hcamem_node_exit(void);
struct hcamem_node *hcamem_node_add(struct ib_device *ibdev);
void hcamem_node_remove(struct hcamem_node *node);
void hcamem_node_rename(struct hcamem_node *node, struct ib_device *ibdev);

static inline bool hcamem_node_gone(struct hcamem_node *node)
{
	return !READ_ONCE(node->ibdev);
}

/* file.c */

extern const struct file_operations hcamem_fops;

/* events.c */

extern unsigned long long hcamem_low_bytes;
extern unsigned long long hcamem_critical_bytes;

int hcamem_events_init(void);
void hcamem_events_exit(void);
void hcamem_events_open(struct hcamem_file *file);
void hcamem_events_close(struct hcamem_file *file);
void hcamem_events_gone(struct hcamem_node *node);
void hcamem_events_look(void);
ssize_t hcamem_events_read(struct file *file, char __user *buffer, size_t size, loff_t *offset);
__poll_t hcamem_events_poll(struct file *file, struct poll_table_struct *table);

/* power.c */

int hcamem_power_init(void);
void hcamem_power_exit(void);
bool hcamem_power_refused(void);

/* debug.c */

void hcamem_debug_init(void);
void hcamem_debug_exit(void);
void hcamem_debug_fdinfo(struct seq_file *seq, struct file *file);

/* charge.c */

extern unsigned long long hcamem_max_bytes;
extern unsigned long long hcamem_max_bytes_per_user;
extern unsigned long long hcamem_reserve_bytes;

/* Who pays for a region: the user, and for a huge one also the mm. */
struct hcamem_charge {
	struct hcamem_node *node;
	struct hcamem_user *user;
	struct mm_struct *mm;		/* its pinned_vm is charged too; or NULL */
	unsigned long pages;		/* still charged */
};

void hcamem_charge_init(void);
int hcamem_charge(struct hcamem_charge *charge, struct hcamem_node *node, unsigned long pages,
		  bool pinned);
void hcamem_uncharge(struct hcamem_charge *charge, unsigned long pages);
void hcamem_charge_end(struct hcamem_charge *charge);
int hcamem_reserve_check(struct hcamem_node *node, unsigned long size, unsigned long wanted);
unsigned long hcamem_total_pages(void);
unsigned long hcamem_user_pages(void);
kuid_t hcamem_charge_uid(const struct hcamem_charge *charge);

/* region.c */

struct hcamem_chunk {
	struct page *page;
	unsigned long index;		/* of its first page in the region */
	unsigned long pages;
};

struct hcamem_region {
	struct kref ref;
	struct hcamem_charge charge;
	enum hcamem_mapping mapping;
	enum hcamem_fork fork;
	unsigned long pages;
	unsigned long nr_chunks;
	struct hcamem_chunk *chunks;	/* by index, orders never rising */
	struct list_head leftovers;	/* pages with foreign references, by page->lru */
	struct list_head entry;		/* in the list of regions with leftovers */

	/* For those who want to know */
	u64 id;
	u64 created;			/* ns since boot */
	struct list_head all;		/* every published region by id, hcamem_regions_lock */
	pid_t pid;			/* who obtained it */
	char comm[TASK_COMM_LEN];
	atomic_t mappings, exports;
};

extern struct mutex hcamem_regions_lock;
extern struct list_head hcamem_regions;

struct hcamem_region *hcamem_region_create(struct hcamem_node *node,
					   const struct hcamem_create *args);
void hcamem_region_get(struct hcamem_region *region);
void hcamem_region_put(struct hcamem_region *region);
const struct hcamem_chunk *hcamem_region_chunk(const struct hcamem_region *region,
					       unsigned long index);
struct page *hcamem_region_page(const struct hcamem_region *region, unsigned long index);
void hcamem_leftovers_reap(void);
void hcamem_region_exit(void);

/* mapping.c */

struct hcamem_mapping_object {
	struct kref ref;
	struct hcamem_region *region;
	struct mm_struct *mm;		/* grabbed, so that its address stays unique */
	unsigned long pgoff;		/* vm_pgoff that stands for @first */
	unsigned long first, pages;	/* of the region */
};

/* The page of the region at @address, which lies in @vma. */
static inline unsigned long hcamem_mapping_page(const struct hcamem_mapping_object *map,
						const struct vm_area_struct *vma,
						unsigned long address)
{
	return map->first + vma->vm_pgoff - map->pgoff +
	       ((address - vma->vm_start) >> PAGE_SHIFT);
}

int hcamem_mmap(struct file *file, struct vm_area_struct *vma);
int hcamem_map(struct hcamem_region *region, struct vm_area_struct *vma, unsigned long first,
	       unsigned long pages);
struct hcamem_mapping_object *hcamem_mapping_of(struct vm_area_struct *vma);

/* export.c */

int hcamem_export_range(struct hcamem_node *node, struct hcamem_export *args,
			struct dma_buf **dmabuf);

#include "trace.h"

#ifdef HCAMEM_INJECT
#include "inject.h"
#endif

#endif
