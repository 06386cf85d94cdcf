// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dma-buf memory regions for the soft-RoCE of 6.12.
 *
 * From registration on such an MR is an ordinary user MR of rxe_mr.c: a
 * page_info array indexed from the page of ibmr.iova, and a umem, which
 * rxe_mr_cleanup() releases when the last reference on the MR is gone.
 */
#include "rxe.h"
#include "rxe_loc.h"
#include "rxe_importer.h"

static int fill_page_info(struct rxe_mr *mr)
{
	size_t num_pages = ib_umem_num_pages(mr->umem);
	struct scatterlist *sg;
	unsigned long i;
	int segment;

	/* The caller chooses the length: a refusal needs no stack dump. */
	mr->page_info = kcalloc(num_pages, sizeof(*mr->page_info),
				GFP_KERNEL | __GFP_NOWARN);
	if (!mr->page_info)
		return -ENOMEM;
	mr->num_buf = num_pages;
	mr->max_allowed_buf = num_pages;

	rxe_importer_for_each_segment(mr->umem, sg, segment) {
		if (rxe_importer_pages(sg) > num_pages - mr->nbuf)
			return -EINVAL;
		for (i = 0; i < rxe_importer_pages(sg); i++) {
			struct page *page = rxe_importer_page(sg, i);

			if (!page)
				return -EOPNOTSUPP;
			mr->page_info[mr->nbuf++].page = page;
		}
	}

	return mr->nbuf == num_pages ? 0 : -EINVAL;
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
	mr->ibmr.type = IB_MR_TYPE_USER;

	umem = rxe_importer_get(&rxe->ib_dev, offset, length, iova, fd, access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mr->umem = umem;

	err = fill_page_info(mr);
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
				     struct uverbs_attr_bundle *attrs)
{
	struct rxe_dev *rxe = to_rdev(ibpd->device);
	struct rxe_pd *pd = to_rpd(ibpd);
	struct rxe_mr *mr;
	int err, cleanup_err;

	/* No dma-buf says that it is persistent memory. */
	if (access & (~RXE_ACCESS_SUPPORTED_MR | IB_ACCESS_FLUSH_PERSISTENT))
		return ERR_PTR(-EOPNOTSUPP);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	err = rxe_add_to_pool(&rxe->mr_pool, mr);
	if (err)
		goto err_free;

	rxe_get(pd);
	mr->ibmr.pd = ibpd;
	mr->ibmr.device = ibpd->device;

	err = mr_init_dmabuf(rxe, offset, length, iova, fd, access, mr);
	if (err) {
		rxe_dbg_mr(mr, "reg_user_mr_dmabuf failed, err = %d\n", err);
		goto err_cleanup;
	}

	rxe_finalize(mr);
	return &mr->ibmr;

err_cleanup:
	cleanup_err = rxe_cleanup(mr);
	if (cleanup_err)
		rxe_err_mr(mr, "cleanup failed, err = %d\n", cleanup_err);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}
