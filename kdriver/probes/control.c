// SPDX-License-Identifier: GPL-2.0-only
/* Compiles on every kernel. */
#include <linux/device.h>
#include <linux/dma-buf.h>
#include <linux/mm.h>
#include <linux/huge_mm.h>
#include <linux/mmzone.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>

struct dma_buf *probe(struct dma_buf_export_info *info);
struct dma_buf *probe(struct dma_buf_export_info *info)
{
	return dma_buf_export(info);
}
