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

#define rxe_importer_for_each_page(umem, iter) \
	for_each_sgtable_dma_page(&(umem)->sgt_append.sgt, iter, 0)

/* NULL for device memory (peer to peer): the CPU has nothing to copy through. */
static inline struct page *rxe_importer_page(struct sg_dma_page_iter *iter)
{
	unsigned long pfn = PHYS_PFN(sg_page_iter_dma_address(iter));

	return pfn_valid(pfn) ? pfn_to_page(pfn) : NULL;
}

#endif
