/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Importing dma-bufs into soft-RoCE: what is the same for all kernels.
 */
#ifndef RXE_IMPORTER_H
#define RXE_IMPORTER_H

#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <rdma/ib_umem.h>

/* Registers the device that attaches to dma-bufs. */
int rxe_importer_init(void);

/* To be called when no umem is left: attachments hold no reference on it. */
void rxe_importer_exit(void);

/*
 * Attaches to the dma-buf @fd and maps [@offset, @offset + @length) of it, for
 * good: the memory is pinned until ib_umem_release(). The umem's iova is @iova.
 * Returns an ERR_PTR() on failure.
 */
struct ib_umem *rxe_importer_get(struct ib_device *ibdev, u64 offset,
				 u64 length, u64 iova, int fd, int access);

#define rxe_importer_for_each_segment(umem, sg, i) \
	for_each_sgtable_dma_sg(&(umem)->sgt_append.sgt, sg, i)

static inline unsigned long rxe_importer_pages(const struct scatterlist *sg)
{
	return sg_dma_len(sg) >> PAGE_SHIFT;
}

/*
 * Page @i of the segment, for which all before it were asked. NULL for device
 * memory (peer to peer): the CPU has nothing to copy through.
 */
static inline struct page *rxe_importer_page(const struct scatterlist *sg,
					     unsigned long i)
{
	unsigned long pfn = PHYS_PFN(sg_dma_address(sg)) + i;

	/* Memory is there or not in units of subsections. */
	if ((i && pfn % PAGES_PER_SUBSECTION) || pfn_valid(pfn))
		return pfn_to_page(pfn);
	return NULL;
}

#endif
