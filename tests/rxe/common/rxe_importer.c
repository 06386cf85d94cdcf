// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Importing dma-bufs into soft-RoCE: what is the same for all kernels.
 *
 * A real HCA attaches to a dma-buf as the device that does the DMA. Soft-RoCE
 * is no such device (its ib_device has no dma_device), so a platform device
 * stands in: it can address all memory and sits behind no IOMMU, which makes
 * its DMA addresses physical ones. From those come the pages that the CPU,
 * being the HCA here, copies to and from. The dma-buf's own struct pages are
 * not looked at: importers may not, and CONFIG_DMABUF_DEBUG hides them.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/platform_device.h>

#include "rxe_importer.h"

static struct platform_device *importer;

/*
 * The core attaches as an ib_device's dma_device. Setting that of soft-RoCE's
 * own would turn all its other memory into DMA addresses, so this one, of
 * which nothing else is ever used, carries it.
 */
static struct ib_device *carrier;

int rxe_importer_init(void)
{
	static const struct platform_device_info info = {
		.name = "rxe-dmabuf",
		.id = PLATFORM_DEVID_NONE,
		.dma_mask = DMA_BIT_MASK(64),
	};
	int err;

	carrier = kzalloc(sizeof(*carrier), GFP_KERNEL);
	if (!carrier)
		return -ENOMEM;

	importer = platform_device_register_full(&info);
	if (IS_ERR(importer)) {
		err = PTR_ERR(importer);
		goto err_free;
	}

	if (device_iommu_mapped(&importer->dev)) {
		err = -EOPNOTSUPP;
		goto err_unregister;
	}

	/* The CPU copies page by page: a segment may be of any length. */
	dma_set_max_seg_size(&importer->dev, UINT_MAX);
	carrier->dma_device = &importer->dev;
	return 0;

err_unregister:
	platform_device_unregister(importer);
err_free:
	kfree(carrier);
	return err;
}

void rxe_importer_exit(void)
{
	platform_device_unregister(importer);
	kfree(carrier);
}

struct ib_umem *rxe_importer_get(struct ib_device *ibdev, u64 offset,
				 u64 length, u64 iova, int fd, int access)
{
	struct ib_umem_dmabuf *umem_dmabuf;

	umem_dmabuf = ib_umem_dmabuf_get_pinned(carrier, offset, length, fd,
						access);
	if (IS_ERR(umem_dmabuf))
		return ERR_CAST(umem_dmabuf);

	umem_dmabuf->umem.ibdev = ibdev;
	/* The core counts pages from here, and leaves it to the driver. */
	umem_dmabuf->umem.iova = iova;
	return &umem_dmabuf->umem;
}
