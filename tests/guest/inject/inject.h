/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Test builds only (HCAMEM_INJECT=1): every call of the driver that can fail is
 * wrapped, so that a test can make the n-th of them fail, and every one that
 * takes or drops a lock or a reference, so that a test can hold it there.
 * Included last by kdriver/hcamem.h, after all kernel headers, so that only the
 * driver's own calls are wrapped.
 */
#ifndef HCAMEM_INJECT_H
#define HCAMEM_INJECT_H

#include <linux/anon_inodes.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "edges.h"

/* Is this the call that has to fail? @what names it for the test's report. */
bool hcamem_inject(const char *what);

static inline void *inject_kzalloc(size_t size, gfp_t gfp)
{
	return hcamem_inject("kzalloc") ? NULL : kzalloc(size, gfp);
}

static inline void *inject_kvmalloc_array(size_t n, size_t size, gfp_t gfp)
{
	return hcamem_inject("kvmalloc_array") ? NULL : kvmalloc_array(n, size, gfp);
}

static inline struct page *inject_alloc_pages_node(int nid, gfp_t gfp, unsigned int order)
{
	return hcamem_inject("alloc_pages_node") ? NULL : alloc_pages_node(nid, gfp, order);
}

static inline int inject_xa_alloc(struct xarray *xa, u32 *id, void *entry,
				  struct xa_limit limit, gfp_t gfp)
{
	return hcamem_inject("xa_alloc") ? -ENOMEM : xa_alloc(xa, id, entry, limit, gfp);
}

static inline int inject_ida_alloc_max(struct ida *ida, unsigned int max, gfp_t gfp)
{
	return hcamem_inject("ida_alloc_max") ? -ENOSPC : ida_alloc_max(ida, max, gfp);
}

static inline int inject_cdev_device_add(struct cdev *cdev, struct device *dev)
{
	return hcamem_inject("cdev_device_add") ? -ENOMEM : cdev_device_add(cdev, dev);
}

static inline unsigned long inject_copy_to_user(void __user *to, const void *from,
						unsigned long n)
{
	return hcamem_inject("copy_to_user") ? n : copy_to_user(to, from, n);
}

static inline int inject_copy_struct_from_user(void *dst, size_t ksize, const void __user *src,
					       size_t usize)
{
	if (hcamem_inject("copy_struct_from_user"))
		return -EFAULT;
	return copy_struct_from_user(dst, ksize, src, usize);
}

static inline int inject_get_unused_fd_flags(unsigned int flags)
{
	return hcamem_inject("get_unused_fd_flags") ? -EMFILE : get_unused_fd_flags(flags);
}

static inline struct dma_buf *inject_dma_buf_export(const struct dma_buf_export_info *info)
{
	return hcamem_inject("dma_buf_export") ? ERR_PTR(-ENOMEM) : dma_buf_export(info);
}

static inline int inject_sg_alloc_table(struct sg_table *table, unsigned int nents, gfp_t gfp)
{
	return hcamem_inject("sg_alloc_table") ? -ENOMEM : sg_alloc_table(table, nents, gfp);
}

static inline int inject_dma_map_sgtable(struct device *dev, struct sg_table *table,
					 enum dma_data_direction dir, unsigned long attrs)
{
	return hcamem_inject("dma_map_sgtable") ? -EIO : dma_map_sgtable(dev, table, dir, attrs);
}

static inline void *inject_vmap(struct page **pages, unsigned int n, unsigned long flags,
				pgprot_t prot)
{
	return hcamem_inject("vmap") ? NULL : vmap(pages, n, flags, prot);
}

static inline struct file *
inject_anon_inode_getfile(const char *name, const struct file_operations *fops, void *priv,
			  int flags)
{
	if (hcamem_inject("anon_inode_getfile"))
		return ERR_PTR(-ENFILE);
	return anon_inode_getfile(name, fops, priv, flags);
}

static inline int inject_vm_insert_pages(struct vm_area_struct *vma, unsigned long addr,
					 struct page **pages, unsigned long *n)
{
	return hcamem_inject("vm_insert_pages") ? -ENOMEM : vm_insert_pages(vma, addr, pages, n);
}

static inline int inject_fatal_signal_pending(struct task_struct *task)
{
	return hcamem_inject("fatal_signal_pending") ? 1 : fatal_signal_pending(task);
}

#undef kzalloc
#define kzalloc(...) inject_kzalloc(__VA_ARGS__)
#undef kvmalloc_array
#define kvmalloc_array(...) inject_kvmalloc_array(__VA_ARGS__)
#undef alloc_pages_node
#define alloc_pages_node(...) inject_alloc_pages_node(__VA_ARGS__)
#undef xa_alloc
#define xa_alloc(...) inject_xa_alloc(__VA_ARGS__)
#undef ida_alloc_max
#define ida_alloc_max(...) inject_ida_alloc_max(__VA_ARGS__)
#undef cdev_device_add
#define cdev_device_add(...) EDGE_BEFORE("cdev_device_add", inject_cdev_device_add(__VA_ARGS__))
#undef copy_to_user
#define copy_to_user(...) EDGE_BEFORE("copy_to_user", inject_copy_to_user(__VA_ARGS__))
#undef copy_struct_from_user
#define copy_struct_from_user(...) inject_copy_struct_from_user(__VA_ARGS__)
#undef get_unused_fd_flags
#define get_unused_fd_flags(...) inject_get_unused_fd_flags(__VA_ARGS__)
#undef dma_buf_export
#define dma_buf_export(...) EDGE_BEFORE("dma_buf_export", inject_dma_buf_export(__VA_ARGS__))
#undef sg_alloc_table
#define sg_alloc_table(...) inject_sg_alloc_table(__VA_ARGS__)
#undef dma_map_sgtable
#define dma_map_sgtable(...) EDGE_BEFORE("dma_map_sgtable", inject_dma_map_sgtable(__VA_ARGS__))
#undef vmap
#define vmap(...) inject_vmap(__VA_ARGS__)
#undef anon_inode_getfile
#define anon_inode_getfile(...) inject_anon_inode_getfile(__VA_ARGS__)
#undef vm_insert_pages
#define vm_insert_pages(...) EDGE_BEFORE("vm_insert_pages", inject_vm_insert_pages(__VA_ARGS__))
#undef fatal_signal_pending
#define fatal_signal_pending(...) inject_fatal_signal_pending(__VA_ARGS__)
#undef dev_set_name
#define dev_set_name(...) (hcamem_inject("dev_set_name") ? -ENOMEM : dev_set_name(__VA_ARGS__))

/* A macro where lockdep is on, so it needs a function to be wrapped. */
static inline void edge_mutex_lock(struct mutex *lock)
{
	mutex_lock(lock);
}

/* The name of the function is that of the driver's, in which this is expanded. */
#define EDGE_BEFORE(name, call) ({ hcamem_edge(__func__, name); call; })
#define EDGE_AFTER(name, call) ({ call; hcamem_edge(__func__, name); })

#undef mutex_lock
#define mutex_lock(...) EDGE_BEFORE("mutex_lock", edge_mutex_lock(__VA_ARGS__))
#define mutex_unlock(...) EDGE_AFTER("mutex_unlock", mutex_unlock(__VA_ARGS__))
/* xa_lock() and xa_unlock() come here too. */
#define spin_lock(...) EDGE_BEFORE("spin_lock", spin_lock(__VA_ARGS__))
#define spin_unlock(...) EDGE_AFTER("spin_unlock", spin_unlock(__VA_ARGS__))
#define mmap_read_lock(...) EDGE_BEFORE("mmap_read_lock", mmap_read_lock(__VA_ARGS__))
#define mmap_read_unlock(...) EDGE_AFTER("mmap_read_unlock", mmap_read_unlock(__VA_ARGS__))

#define kref_get(...) EDGE_BEFORE("kref_get", kref_get(__VA_ARGS__))
#define kref_put(...) EDGE_BEFORE("kref_put", kref_put(__VA_ARGS__))
#define get_device(...) EDGE_BEFORE("get_device", get_device(__VA_ARGS__))
#define put_device(...) EDGE_BEFORE("put_device", put_device(__VA_ARGS__))
#define mmgrab(...) EDGE_BEFORE("mmgrab", mmgrab(__VA_ARGS__))
#define mmdrop(...) EDGE_BEFORE("mmdrop", mmdrop(__VA_ARGS__))
#define get_uid(...) EDGE_BEFORE("get_uid", get_uid(__VA_ARGS__))
#define free_uid(...) EDGE_BEFORE("free_uid", free_uid(__VA_ARGS__))
#define fput(...) EDGE_BEFORE("fput", fput(__VA_ARGS__))
#define dma_buf_put(...) EDGE_BEFORE("dma_buf_put", dma_buf_put(__VA_ARGS__))
#undef __module_get
#define __module_get(...) EDGE_BEFORE("__module_get", __module_get(__VA_ARGS__))
#undef module_put
#define module_put(...) EDGE_BEFORE("module_put", module_put(__VA_ARGS__))

/* Where something becomes visible to others, or stops being so. */
#define fd_install(...) EDGE_BEFORE("fd_install", fd_install(__VA_ARGS__))
#undef xa_store
#define xa_store(...) EDGE_BEFORE("xa_store", xa_store(__VA_ARGS__))
#define cdev_device_del(...) EDGE_BEFORE("cdev_device_del", cdev_device_del(__VA_ARGS__))
#define schedule_delayed_work(...) \
	EDGE_BEFORE("schedule_delayed_work", schedule_delayed_work(__VA_ARGS__))
#define __free_pages(...) EDGE_BEFORE("__free_pages", __free_pages(__VA_ARGS__))
#define vma_set_anonymous(...) EDGE_BEFORE("vma_set_anonymous", vma_set_anonymous(__VA_ARGS__))
#define vma_set_file(...) EDGE_BEFORE("vma_set_file", vma_set_file(__VA_ARGS__))
#define vmf_insert_pfn(...) EDGE_BEFORE("vmf_insert_pfn", vmf_insert_pfn(__VA_ARGS__))
#define hcamem_insert_pmd(...) EDGE_BEFORE("hcamem_insert_pmd", hcamem_insert_pmd(__VA_ARGS__))
#define dev_is_dma_coherent(...) \
	EDGE_BEFORE("dev_is_dma_coherent", dev_is_dma_coherent(__VA_ARGS__))

#endif
