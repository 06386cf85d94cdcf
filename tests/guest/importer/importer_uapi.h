/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Test only: what /dev/hcamem_importer does on request. An open file holds at
 * most one attachment, one mapping of it and one vmap; closing it undoes all.
 */
#ifndef HCAMEM_IMPORTER_UAPI_H
#define HCAMEM_IMPORTER_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

enum importer_kind {
	IMPORTER_STATIC = 0,	/* dma_buf_attach() */
	IMPORTER_DYNAMIC = 1,	/* dma_buf_dynamic_attach() with move_notify, pinned while mapped */
};

struct importer_attach {
	__s32 fd;		/* of the dma-buf */
	__u32 kind;
};

struct importer_table {
	__u64 cpu_bytes;	/* sum of the entries' lengths */
	__u64 dma_bytes;	/* sum of the entries' DMA lengths */
	__u32 entries;
	__u32 moves;		/* move_notify calls so far */
};

enum importer_view {
	IMPORTER_TABLE = 0,	/* through the scatter list */
	IMPORTER_VMAP = 1,	/* through the kernel mapping */
};

struct importer_copy {
	__u64 offset;		/* in the dma-buf */
	__u64 addr;		/* of the caller's buffer */
	__u64 length;
	__u32 view;
	__u32 write;		/* 1: from the caller's buffer into the dma-buf */
};

#define IMPORTER_ATTACH		_IOW('I', 0, struct importer_attach)
#define IMPORTER_DETACH		_IO('I', 1)
#define IMPORTER_MAP		_IO('I', 2)
#define IMPORTER_UNMAP		_IO('I', 3)
#define IMPORTER_VMAP_ON	_IO('I', 4)
#define IMPORTER_VMAP_OFF	_IO('I', 5)
#define IMPORTER_DESCRIBE	_IOR('I', 6, struct importer_table)
#define IMPORTER_COPY		_IOW('I', 7, struct importer_copy)
/* Cut one page off the first entry, as ib_umem_dmabuf_map_pages() does, and back. */
#define IMPORTER_TRIM		_IO('I', 8)
#define IMPORTER_RESTORE	_IO('I', 9)
/* The exporter's own vmap and vunmap: the core warns when an exporter refuses. */
#define IMPORTER_VMAP_ASK	_IO('I', 10)

#endif
