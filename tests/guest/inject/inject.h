/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Test builds only (HCAMEM_INJECT=1): every call of the driver that can fail is
 * wrapped, so that a test can make the n-th of them fail. Included last by
 * kdriver/hcamem.h, after all kernel headers, so that only the driver's own
 * calls are wrapped.
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
#include <linux/scatterlist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

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
#define cdev_device_add(...) inject_cdev_device_add(__VA_ARGS__)
#undef copy_to_user
#define copy_to_user(...) inject_copy_to_user(__VA_ARGS__)
#undef copy_struct_from_user
#define copy_struct_from_user(...) inject_copy_struct_from_user(__VA_ARGS__)
#undef get_unused_fd_flags
#define get_unused_fd_flags(...) inject_get_unused_fd_flags(__VA_ARGS__)
#undef dma_buf_export
#define dma_buf_export(...) inject_dma_buf_export(__VA_ARGS__)
#undef sg_alloc_table
#define sg_alloc_table(...) inject_sg_alloc_table(__VA_ARGS__)
#undef dma_map_sgtable
#define dma_map_sgtable(...) inject_dma_map_sgtable(__VA_ARGS__)
#undef vmap
#define vmap(...) inject_vmap(__VA_ARGS__)
#undef anon_inode_getfile
#define anon_inode_getfile(...) inject_anon_inode_getfile(__VA_ARGS__)
#undef vm_insert_pages
#define vm_insert_pages(...) inject_vm_insert_pages(__VA_ARGS__)
#undef fatal_signal_pending
#define fatal_signal_pending(...) inject_fatal_signal_pending(__VA_ARGS__)
#undef dev_set_name
#define dev_set_name(...) (hcamem_inject("dev_set_name") ? -ENOMEM : dev_set_name(__VA_ARGS__))

#endif
