// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dma-buf memory regions for the soft-RoCE of 6.1.
 *
 * From registration on such an MR is an ordinary user MR of rxe_mr.c: a table
 * of tables of page addresses, and a umem, which rxe_mr_cleanup() releases,
 * with the tables, when the last reference on the MR is gone.
 */
#include "rxe.h"
#include "rxe_loc.h"
#include "rxe_importer.h"

static int fill_map(struct rxe_mr *mr)
{
	size_t num_pages = ib_umem_num_pages(mr->umem);
	struct scatterlist *sg;
	unsigned long i;
	size_t n = 0;
	int err, segment;

	err = rxe_mr_alloc(mr, num_pages);
	if (err)
		return err;

	rxe_importer_for_each_segment(mr->umem, sg, segment) {
		if (rxe_importer_pages(sg) > num_pages - n)
			return -EINVAL;
		for (i = 0; i < rxe_importer_pages(sg); i++) {
			struct page *page = rxe_importer_page(sg, i);
			struct rxe_phys_buf *buf;

			if (!page)
				return -EOPNOTSUPP;
			buf = &mr->map[n / RXE_BUF_PER_MAP]->buf[n % RXE_BUF_PER_MAP];
			buf->addr = (uintptr_t)page_address(page);
			buf->size = PAGE_SIZE;
			n++;
		}
	}

	return n == num_pages ? 0 : -EINVAL;
}

/*
 * What is acquired here goes straight into @mr, also on failure, where the
 * caller's rxe_cleanup() gives it back.
 */
static int mr_init_dmabuf(struct rxe_dev *rxe, u64 offset, u64 length, u64 iova,
			  int fd, int access, struct rxe_mr *mr)
{
	struct ib_umem *umem;
	int err;

	rxe_mr_init(access, mr);
	mr->type = IB_MR_TYPE_USER;
	mr->access = access;

	umem = rxe_importer_get(&rxe->ib_dev, offset, length, iova, fd, access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mr->umem = umem;
	mr->offset = ib_umem_offset(umem);
	mr->page_shift = PAGE_SHIFT;
	mr->page_mask = PAGE_SIZE - 1;

	err = fill_map(mr);
	if (err)
		return err;

	/* The core sets these for plain registrations only. */
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	mr->state = RXE_MR_STATE_VALID;
	return 0;
}

/* The core has checked that offset and iova are equal modulo PAGE_SIZE. */
struct ib_mr *rxe_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length,
				     u64 iova, int fd, int access,
				     struct ib_udata *udata)
{
	struct rxe_dev *rxe = to_rdev(ibpd->device);
	struct rxe_mr *mr;
	int err;

	mr = rxe_alloc(&rxe->mr_pool);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	rxe_get(to_rpd(ibpd));
	mr->ibmr.pd = ibpd;

	err = mr_init_dmabuf(rxe, offset, length, iova, fd, access, mr);
	if (err) {
		rxe_cleanup(mr);
		return ERR_PTR(err);
	}

	rxe_finalize(mr);
	return &mr->ibmr;
}
