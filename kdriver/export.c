// SPDX-License-Identifier: GPL-2.0-only
/* dma-bufs of just the pages that hold a range of a mapped region. */
#include <linux/anon_inodes.h>
#include <linux/dma-buf.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "hcamem.h"

struct hcamem_export_object {
	struct hcamem_region *region;
	unsigned long first, pages;	/* of the region */
};

/*
 * Neither side of an RDMA transfer synchronizes caches: the CPU reads and
 * writes through user mappings that the kernel does not see. So only coherent
 * devices are served.
 */
static int hcamem_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attachment)
{
	struct hcamem_export_object *export = dmabuf->priv;

	trace_hcamem_attach(export->region, attachment->dev);
	if (dev_is_dma_coherent(attachment->dev))
		return 0;
	dev_notice_ratelimited(attachment->dev, "hcamem serves cache-coherent devices only\n");
	return -EOPNOTSUPP;
}

/*
 * So there are no caches to synchronize when a map call is made either. Saying
 * so tells CONFIG_DMA_API_DEBUG that memory mapped twice at a time, as for two
 * registrations that overlap, is meant.
 */
#define HCAMEM_DMA_ATTRS DMA_ATTR_SKIP_CPU_SYNC

/* How much of the chunk that holds page @index belongs to [index, end). */
static unsigned long hcamem_run(const struct hcamem_region *region, unsigned long index,
				unsigned long end, struct page **page)
{
	const struct hcamem_chunk *chunk = hcamem_region_chunk(region, index);

	*page = nth_page(chunk->page, index - chunk->index);
	return min(end, chunk->index + chunk->pages) - index;
}

/* A table of its own for every caller, since importers edit it. */
static struct sg_table *hcamem_map_dma_buf(struct dma_buf_attachment *attachment,
					   enum dma_data_direction direction)
{
	struct hcamem_export_object *export = attachment->dmabuf->priv;
	unsigned long end = export->first + export->pages, index, run;
	unsigned long longest = dma_get_max_seg_size(attachment->dev) >> PAGE_SHIFT;
	unsigned int entries = 0;
	struct scatterlist *sg;
	struct sg_table *table;
	struct page *page;
	int ret;

	/* No segment is longer than what the importer's device takes. */
	longest = max(longest, 1UL);
	for (index = export->first; index < end; index += run) {
		run = hcamem_run(export->region, index, min(end, index + longest), &page);
		entries++;
	}
	table = kzalloc(sizeof(*table), GFP_KERNEL);
	if (!table)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table(table, entries, GFP_KERNEL);
	if (ret)
		goto out_table;
	sg = table->sgl;
	for (index = export->first; index < end; index += run) {
		run = hcamem_run(export->region, index, min(end, index + longest), &page);
		sg_set_page(sg, page, run << PAGE_SHIFT, 0);
		sg = sg_next(sg);
	}
	ret = dma_map_sgtable(attachment->dev, table, direction, HCAMEM_DMA_ATTRS);
	if (ret)
		goto out_entries;
	return table;

out_entries:
	sg_free_table(table);
out_table:
	kfree(table);
	return ERR_PTR(ret);
}

static void hcamem_unmap_dma_buf(struct dma_buf_attachment *attachment, struct sg_table *table,
				 enum dma_data_direction direction)
{
	dma_unmap_sgtable(attachment->dev, table, direction, HCAMEM_DMA_ATTRS);
	sg_free_table(table);
	kfree(table);
}

static const struct file_operations hcamem_vma_fops = {
	.owner = THIS_MODULE,
};

/*
 * The VMA holds an inert file instead of the dma-buf's: a forked child whose
 * VMA was made anonymous keeps the file, and would keep the memory with it.
 */
static int hcamem_dma_buf_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct hcamem_export_object *export = dmabuf->priv;
	struct file *inert;
	int ret;

	inert = anon_inode_getfile("[hcamem]", &hcamem_vma_fops, NULL, O_RDWR);
	if (IS_ERR(inert))
		return PTR_ERR(inert);
	ret = hcamem_map(export->region, vma, export->first, export->pages);
	if (!ret)
		vma_set_file(vma, inert);
	fput(inert);
	return ret;
}

static int hcamem_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct hcamem_export_object *export = dmabuf->priv;
	struct page **pages;
	unsigned long i;
	void *address;

	pages = kvmalloc_array(export->pages, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < export->pages; i++)
		pages[i] = hcamem_region_page(export->region, export->first + i);
	address = vmap(pages, export->pages, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	if (!address)
		return -ENOMEM;
	iosys_map_set_vaddr(map, address);
	return 0;
}

static void hcamem_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	vunmap(map->vaddr);
}

static void hcamem_dma_buf_release(struct dma_buf *dmabuf)
{
	struct hcamem_export_object *export = dmabuf->priv;

	atomic_dec(&export->region->exports);
	hcamem_region_put(export->region);
	kfree(export);
}

static const struct dma_buf_ops hcamem_dma_buf_ops = {
	.attach		= hcamem_attach,
	.map_dma_buf	= hcamem_map_dma_buf,
	.unmap_dma_buf	= hcamem_unmap_dma_buf,
	.mmap		= hcamem_dma_buf_mmap,
	.vmap		= hcamem_vmap,
	.vunmap		= hcamem_vunmap,
	.release	= hcamem_dma_buf_release,
};

/*
 * Find [start, end) in the address space of the caller and take a reference on
 * its region. The range may span VMAs that mprotect() or madvise() split, as
 * long as they show one stretch of one region.
 */
static int hcamem_find_range(unsigned long start, unsigned long end,
			     struct hcamem_export_object *export)
{
	struct hcamem_region *region = NULL;
	unsigned long at = start, index;
	int ret = 0;

	mmap_read_lock(current->mm);
	while (at < end) {
		struct vm_area_struct *vma = find_vma(current->mm, at);
		struct hcamem_mapping_object *map = NULL;

		if (vma && vma->vm_start <= at)
			map = hcamem_mapping_of(vma);
		if (!map) {
			ret = -EINVAL;
			break;
		}
		if (!(vma->vm_flags & VM_MAYWRITE)) {
			ret = -EACCES;
			break;
		}
		index = hcamem_mapping_page(map, vma, at);
		if (!region) {
			region = map->region;
			export->first = index;
		} else if (map->region != region ||
			   index != export->first + ((at - start) >> PAGE_SHIFT)) {
			ret = -EINVAL;
			break;
		}
		at = vma->vm_end;
	}
	if (!ret)
		hcamem_region_get(region);
	mmap_read_unlock(current->mm);
	if (ret)
		return ret;
	export->region = region;
	export->pages = (end - start) >> PAGE_SHIFT;
	return 0;
}

/**
 * hcamem_export_range() - a dma-buf of a range of the caller's address space
 * @node: where the caller asked
 * @args: range in, offset out
 * @dmabuf: out; one reference
 *
 * Returns 0 or a negative errno that include/uapi/rdma/hcamem.h lists.
 */
int hcamem_export_range(struct hcamem_node *node, struct hcamem_export *args,
			struct dma_buf **dmabuf)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct hcamem_export_object *export;
	u64 end;
	int ret;

	if (hcamem_node_gone(node))
		return -ENODEV;
	if (!args->length || check_add_overflow(args->addr, args->length, &end) || end > TASK_SIZE)
		return -EINVAL;
	export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);
	if (!export)
		return -ENOMEM;
	ret = hcamem_find_range(PAGE_ALIGN_DOWN(args->addr), PAGE_ALIGN(end), export);
	if (ret)
		goto out_free;

	info.ops = &hcamem_dma_buf_ops;
	info.size = (size_t)export->pages << PAGE_SHIFT;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = export;
	*dmabuf = dma_buf_export(&info);
	if (IS_ERR(*dmabuf)) {
		ret = PTR_ERR(*dmabuf);
		goto out_region;
	}
	/* From here on the dma-buf owns export and region. */
	atomic_inc(&export->region->exports);
	trace_hcamem_export(export->region, export->first, export->pages);
	args->offset = offset_in_page(args->addr);
	return 0;

out_region:
	hcamem_region_put(export->region);
out_free:
	kfree(export);
	return ret;
}
