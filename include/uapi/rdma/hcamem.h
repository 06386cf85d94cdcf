/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR BSD-2-Clause) */
/*
 * hcamem: pinned DMA memory owned by the kernel, one device node per HCA.
 *
 * Every structure may grow at its end: the kernel takes the length from the
 * request number, treats what a shorter caller did not pass as zero, and
 * refuses a longer one with E2BIG unless the unknown tail is zero.
 *
 * Besides the errors listed at each call: EFAULT for a bad pointer, ENOTTY for
 * an unknown request, EINVAL for a structure shorter than the first version or
 * for a reserved field that is not zero.
 */
#ifndef _UAPI_RDMA_HCAMEM_H
#define _UAPI_RDMA_HCAMEM_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HCAMEM_ABI_VERSION	1
#define HCAMEM_IOC_MAGIC	0xE7
#define HCAMEM_IBDEV_NAME_MAX	64
#define HCAMEM_BARE_MMAP_MAX	(64UL << 20)	/* longest mmap() at offset 0, bytes */

/* hcamem_create.mapping */
enum hcamem_mapping {
	HCAMEM_MAPPING_HUGE = 1,	/* 2 MiB page-table entries; not for get_user_pages() */
	HCAMEM_MAPPING_PAGES = 2,	/* 4 KiB pages that O_DIRECT and ibv_reg_mr() can pin */
};

/* hcamem_create.fork: what a forked child finds at these addresses */
enum hcamem_fork {
	HCAMEM_FORK_POLICY_ZERO = 0,	/* zero-filled private memory of its own */
	HCAMEM_FORK_POLICY_DONTCOPY = 1,	/* nothing is mapped */
	HCAMEM_FORK_POLICY_SHARE = 2,	/* the same memory */
};

/* hcamem_info.capabilities */
#define HCAMEM_CAP_HUGE		(1ULL << 0)	/* 2 MiB mappings */
#define HCAMEM_CAP_PAGES	(1ULL << 1)	/* pinnable mappings */
#define HCAMEM_CAP_EXPORT	(1ULL << 2)	/* dma-buf export */
#define HCAMEM_CAP_HUGE_PINNABLE (1ULL << 3)	/* get_user_pages() takes huge mappings too */
#define HCAMEM_CAP_EVENTS	(1ULL << 4)	/* poll() and read() */

/**
 * struct hcamem_info - HCAMEM_IOC_INFO: interface version, limits and usage.
 * Works on any open node, also after its HCA is gone. All sizes in bytes.
 */
struct hcamem_info {
	__u32 abi_version;		/* out: HCAMEM_ABI_VERSION */
	__u32 driver_id;		/* out: enum rdma_driver_id of the HCA */
	__aligned_u64 capabilities;	/* out: HCAMEM_CAP_* */
	__s32 numa_node;		/* out: the HCA's, -1 if it has none */
	__u32 gone;			/* out: 1 once the HCA was removed */
	__aligned_u64 max_bytes;	/* out: module cap, all users together */
	__aligned_u64 max_bytes_per_user; /* out: module cap per user, 0 = none */
	__aligned_u64 reserve_bytes;	/* out: available memory that is never handed out */
	__aligned_u64 total_bytes;	/* out: held now, all nodes and users */
	__aligned_u64 user_bytes;	/* out: held now by the calling user, all nodes */
	__aligned_u64 node_bytes;	/* out: held now through this node */
	__u8 ibdev[HCAMEM_IBDEV_NAME_MAX]; /* out: name of the HCA, NUL-terminated */
};

/**
 * struct hcamem_create - HCAMEM_IOC_CREATE: obtain a region of zeroed memory.
 *
 * mmap() of exactly @size bytes at @offset maps the region, once; after that
 * the offset means nothing. The memory lives until its last mapping, dma-buf
 * and foreign page reference is gone; a region that was never mapped is given
 * back with the open file, when its last descriptor and the last mapping made
 * through it (in forked children too) are gone.
 *
 * mmap(MAP_SHARED) of up to HCAMEM_BARE_MMAP_MAX bytes at offset 0 obtains and
 * maps in one call, with mapping PAGES and fork policy ZERO.
 *
 * Errors: EINVAL size 0 or unknown mapping, fork policy or NUMA node.
 * EAGAIN over RLIMIT_MEMLOCK, summed over the user's processes, without
 * CAP_IPC_LOCK. EDQUOT over max_bytes or max_bytes_per_user. ENOMEM no memory,
 * the reserve, or the memory cgroup's limit. EINTR killed meanwhile. ENODEV
 * the HCA is gone. EBUSY the machine is about to hibernate. EOPNOTSUPP device
 * memory must be bounced (confidential guest). EBADF the node is not open for
 * reading and writing. ENOSPC too many regions created and not yet mapped.
 */
struct hcamem_create {
	__aligned_u64 size;	/* in: bytes; out: rounded up to whole pages */
	__u32 mapping;		/* in: enum hcamem_mapping */
	__u32 fork;		/* in: enum hcamem_fork */
	__s32 numa_node;	/* in: -1 = the HCA's */
	__u32 flags;		/* in: 0 */
	__aligned_u64 offset;	/* in: 0; out: for mmap() */
};

/**
 * struct hcamem_export - HCAMEM_IOC_EXPORT: a dma-buf of mapped memory.
 *
 * The dma-buf holds just the pages that [addr, addr + length) touches, and
 * keeps the whole region alive. The descriptor is close-on-exec.
 *
 * Errors: EINVAL length 0 or a range that is not wholly one mapped region of
 * this driver. EACCES the mapping may not be made writable. ENODEV the HCA is gone.
 * EBADF the node is not open for reading and writing. EMFILE, ENFILE, ENOMEM.
 */
struct hcamem_export {
	__aligned_u64 addr;	/* in: any address in the mapping */
	__aligned_u64 length;	/* in: bytes */
	__u32 flags;		/* in: 0 */
	__s32 fd;		/* out: the dma-buf */
	__aligned_u64 offset;	/* out: of addr in the dma-buf */
};

/* hcamem_event.type */
enum hcamem_event_type {
	HCAMEM_EVENT_LOW = 1,		/* memory is getting short: give back what is idle */
	HCAMEM_EVENT_CRITICAL = 2,	/* the OOM killer is near */
	HCAMEM_EVENT_GONE = 3,		/* the HCA was removed; told once */
};

/**
 * struct hcamem_event - what read() of the node returns, one at a time.
 *
 * poll() says POLLIN when there is one to read, and POLLHUP once the HCA is
 * gone. read() waits for one unless the file is O_NONBLOCK; it returns 0 once
 * the HCA is gone and that was told. An event that was not read yet is replaced
 * by a later one; while memory stays short it is repeated once a second.
 *
 * Errors: EINVAL buffer too short. EAGAIN none, and O_NONBLOCK. EINTR, EFAULT.
 */
struct hcamem_event {
	__u32 type;		/* enum hcamem_event_type */
	__u32 reserved;		/* 0 */
	__aligned_u64 wanted;	/* bytes, whole pages, that would end the shortage */
};

#define HCAMEM_IOC_INFO   _IOR(HCAMEM_IOC_MAGIC, 0, struct hcamem_info)
#define HCAMEM_IOC_CREATE _IOWR(HCAMEM_IOC_MAGIC, 1, struct hcamem_create)
#define HCAMEM_IOC_EXPORT _IOWR(HCAMEM_IOC_MAGIC, 2, struct hcamem_export)

#endif /* _UAPI_RDMA_HCAMEM_H */
