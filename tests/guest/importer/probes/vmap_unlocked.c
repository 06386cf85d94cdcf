// SPDX-License-Identifier: GPL-2.0-only
/* dma_buf_vmap() wants the reservation held; another function takes it. */
#include <linux/dma-buf.h>
#include <linux/iosys-map.h>

int probe(struct dma_buf *dmabuf, struct iosys_map *map);
int probe(struct dma_buf *dmabuf, struct iosys_map *map)
{
	int ret = dma_buf_vmap_unlocked(dmabuf, map);

	dma_buf_vunmap_unlocked(dmabuf, map);
	return ret;
}
