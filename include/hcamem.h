/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * hcamem: DMA memory owned by the kernel, registered with the HCA, as buffers.
 *
 * A pool obtains slabs of memory from a device node /dev/infiniband/hcamemN (or
 * ordinary memory on a machine without the module), cuts them into blocks, and
 * registers every slab with every protection domain that was attached to it. A
 * pointer into the pool then has an lkey and an rkey, found in constant time.
 * No bookkeeping lies in that memory: a stray DMA spoils a buffer, never the pool.
 *
 * Conventions
 *   Results   int: 0 (or a value >= 0 where said) or -errno. Pointer: NULL with
 *             errno set. Nothing throws, nothing sets errno on success.
 *   Messages  after a failure hcamem_last_message() says what, the limit, its
 *             value and the remedy.
 *   Threads   every call may be made from any thread at any time, except that a
 *             handle must not be used while or after another thread ends its life
 *             (a pool: closed and drained, see hcamem_pool_close; a binding:
 *             hcamem_detach).
 *   Fork      a pool belongs to the process that made it. In a child (fork or
 *             clone) allocation fails with ESTALE, giving back and closing do
 *             nothing and return 0, keys are 0; a new pool works.
 *   Misuse    a double free, a pointer that is not a block of the pool, a wrong
 *             size or a dead handle aborts with a message; with HCAMEM_OPT_MISUSE_ERROR
 *             (environment HCAMEM_ON_MISUSE=error) it returns -EINVAL and changes nothing.
 *             Of two threads that free one block in the same instant both may be told 0;
 *             that is found when the block is to be handed out, which it is to one only.
 *   Sizes     in bytes.
 */
#ifndef HCAMEM_H
#define HCAMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HCAMEM_API __attribute__((visibility("default")))

typedef struct hcamem_pool hcamem_pool;
typedef struct hcamem_binding hcamem_binding;
typedef struct hcamem_fixed hcamem_fixed;
typedef struct hcamem_registration hcamem_registration;

struct ibv_pd; /* <infiniband/verbs.h> */
struct ibv_mr;

/* Where a pool's memory comes from: hcamem_options.source */
enum {
    HCAMEM_AUTO,   /* the device; without one ordinary memory, with one warning per process */
    HCAMEM_DEVICE, /* the device, or an error */
    HCAMEM_MEMORY, /* ordinary memory of this process */
};

/* How slabs are mapped: hcamem_options.mapping */
enum {
    /* Device: HUGE where the kernel can pin huge mappings or with HCAMEM_OPT_DMABUF_ONLY,
     * else PAGES. Ordinary memory: huge pages where the kernel has them to spare. */
    HCAMEM_MAP_AUTO,
    HCAMEM_MAP_HUGE,  /* 2 MiB page-table entries; the kernel may refuse to pin them */
    HCAMEM_MAP_PAGES, /* 4 KiB pages: O_DIRECT, MSG_ZEROCOPY and ibv_reg_mr() work on them */
};

/* What a forked child finds at the addresses of the slabs: hcamem_options.fork */
enum {
    HCAMEM_FORK_ZERO,     /* zero-filled memory of its own */
    HCAMEM_FORK_DONTCOPY, /* nothing: an access faults */
    HCAMEM_FORK_SHARE,    /* the same memory */
};

/* How a slab was registered: hcamem_key.path */
enum {
    HCAMEM_PATH_DMABUF,     /* as a dma-buf: no page was pinned by address */
    HCAMEM_PATH_USER_PAGES, /* by ibv_reg_mr(): get_user_pages() */
    HCAMEM_PATH_NONE,       /* not registered */
};

/* hcamem_options.flags */
enum {
    /* Register by dma-buf or not at all. Lets HCAMEM_MAP_AUTO take huge mappings. */
    HCAMEM_OPT_DMABUF_ONLY = 1 << 0,
    /* Have every page of a slab present before its first block is handed out. */
    HCAMEM_OPT_PREFAULT = 1 << 1,
    /* Misuse returns -EINVAL instead of aborting. */
    HCAMEM_OPT_MISUSE_ERROR = 1 << 2,
    /* A thread of the pool's gives idle slabs back when the kernel or a memory cgroup wants
     * memory, as hcamem_relieve() does. It takes no signals and ends with the pool. */
    HCAMEM_OPT_RELIEVE = 1 << 3,
    /* hcamem_pool_close() and hcamem_fixed_destroy() write to standard error what is live. */
    HCAMEM_OPT_LEAKS = 1 << 4,
    /* The same, and where it was allocated. Each allocation then takes microseconds. */
    HCAMEM_OPT_LEAK_STACKS = 1 << 5,
    /* Free blocks are full of the byte 0xdb, and what writes to one, such as a late DMA, is
     * found when it is handed out again: as misuse. Touches all memory of each slab. */
    HCAMEM_OPT_POISON = 1 << 6,
};

/*
 * Options of a pool. Initialise with hcamem_options_init(); fields added later
 * lie behind the present ones, and size tells which the caller knows.
 */
struct hcamem_options {
    uint32_t size;     /* sizeof(struct hcamem_options), set by hcamem_options_init() */
    uint32_t source;   /* HCAMEM_AUTO, _DEVICE, _MEMORY */
    uint32_t mapping;  /* HCAMEM_MAP_* */
    uint32_t fork;     /* HCAMEM_FORK_* */
    int32_t numa_node; /* -1: the HCA's, for ordinary memory the allocating thread's */
    uint32_t flags;    /* HCAMEM_OPT_* */
    uint64_t initial;  /* bytes obtained by hcamem_pool_create(), rounded up to 2 MiB; 0: none */
    uint64_t growth;   /* bytes per slab, rounded up to 2 MiB; 0: an eighth of the slabs there
                        * are, from 2 MiB to 64 MiB */
    uint64_t maximum;  /* bytes of all slabs together, rounded down to 2 MiB; address space of
                        * this size is reserved at once, memory is not */
    const char* hca;   /* name of the HCA, e.g. "mlx5_0"; NULL: the first one. Read during
                        * hcamem_pool_create() only */
};

/* Largest alignment a block can be asked for, and the unit slabs are made of. */
#define HCAMEM_SLAB_UNIT ((size_t)2 << 20)

/*
 * Sets *options to the defaults, then to what the environment says (not in
 * set-user-ID and other AT_SECURE programs). size is sizeof(struct hcamem_options).
 *
 *   variable           values                       default  field
 *   HCAMEM_SOURCE      auto | device | memory       auto     source
 *   HCAMEM_MAPPING     auto | huge | pages          auto     mapping
 *   HCAMEM_FORK        zero | dontcopy | share      zero     fork
 *   HCAMEM_NUMA_NODE   node number, -1              -1       numa_node
 *   HCAMEM_INITIAL     bytes, with K, M or G        2M       initial
 *   HCAMEM_GROWTH      bytes, with K, M or G; 0     0        growth
 *   HCAMEM_MAXIMUM     bytes, with K, M or G        64G      maximum
 *   HCAMEM_HCA         name of the HCA              first    hca
 *   HCAMEM_REGISTER    auto | dmabuf                auto     HCAMEM_OPT_DMABUF_ONLY
 *   HCAMEM_PREFAULT    0 | 1                        0        HCAMEM_OPT_PREFAULT
 *   HCAMEM_RELIEVE     0 | 1                        0        HCAMEM_OPT_RELIEVE
 *   HCAMEM_LEAKS       0 | 1                        0        HCAMEM_OPT_LEAKS
 *   HCAMEM_LEAK_STACKS 0 | 1                        0        HCAMEM_OPT_LEAK_STACKS
 *   HCAMEM_POISON      0 | 1                        0        HCAMEM_OPT_POISON
 *   HCAMEM_ON_MISUSE   abort | error                abort    HCAMEM_OPT_MISUSE_ERROR
 *   HCAMEM_QUIET       0 | 1                        0        (1: no warnings on standard error)
 *
 * A value that makes no sense is ignored with one warning on standard error.
 * options->hca then points into the environment.
 */
HCAMEM_API void hcamem_options_init(struct hcamem_options* options, uint32_t size);

/*
 * Writes all options as text, one per line: variable, value, default, meaning.
 * options NULL describes what hcamem_options_init() gives. At most size bytes
 * with the terminating NUL are written (text may be NULL if size is 0).
 * Returns the length of the whole text without NUL, as snprintf() does, or -EINVAL.
 */
HCAMEM_API int hcamem_options_describe(const struct hcamem_options* options, char* text,
                                       size_t size);

/*
 * Makes a pool; options NULL means the defaults and the environment.
 *
 * Errors: -EINVAL an option makes no sense. -E2BIG options from a newer header
 * with an unknown field set. -ENODEV no module, no node for the HCA, or the HCA
 * is gone. -EACCES the node may not be opened. -EPROTO the module speaks another
 * ABI version. -EOPNOTSUPP the device has not what was asked for. -ENOMEM no
 * memory or address space. And those of obtaining memory, see hcamem_alloc().
 */
HCAMEM_API int hcamem_pool_create(const struct hcamem_options* options, hcamem_pool** pool);

/*
 * Closes the pool: from now on it gives no blocks (EBADF), and waiting calls of
 * hcamem_alloc() return.
 *
 * Returns 0 if no block was live: all memory went back, after being
 * deregistered; bindings that are still attached have keys 0 and must still be
 * detached. Returns -EBUSY if blocks are live: their pages and MRs stay, the
 * blocks stay usable, and all goes back when the last of them is freed
 * (hcamem_free() with this handle). Closing again then returns -EBUSY while
 * blocks are live, else 0. After a 0 the handle is dead.
 *
 * Blocks that are live when the process exits keep slab and MR to the end:
 * nothing is deregistered by exit handlers.
 */
HCAMEM_API int hcamem_pool_close(hcamem_pool* pool);

/*
 * A block of at least bytes bytes, aligned to align (a power of two up to
 * HCAMEM_SLAB_UNIT; 0 means 64). bytes 0 gives a block of the smallest size.
 * A block never lies in two slabs, so one key covers it. Its contents are not
 * defined: memory comes zeroed from the kernel, but blocks are used again.
 *
 * If the pool is exhausted: timeout_ms 0 fails at once, > 0 waits at most so
 * many milliseconds for a block to be freed, -1 waits without limit.
 *
 * errno: EINVAL align or timeout_ms. ENOMEM the pool is at its maximum, or the
 * kernel has no memory (also its reserve, the memory cgroup's limit). EAGAIN
 * over RLIMIT_MEMLOCK. EDQUOT over a cap of the module. ETIMEDOUT none of these
 * ended in time. ENODEV the HCA is gone and growth was needed. EBADF the pool
 * was closed. ESTALE the pool belongs to the parent process. A registration's
 * error, if a new slab could not be registered. A request that no freeing can
 * satisfy (larger than the pool's maximum) does not wait.
 */
HCAMEM_API void* hcamem_alloc(hcamem_pool* pool, size_t bytes, size_t align, int timeout_ms);

/*
 * Gives a block back, from any thread. NULL is fine. In a child of the process
 * that made the pool it does nothing.
 */
HCAMEM_API int hcamem_free(hcamem_pool* pool, void* block);

/* The same, checking that the block was got by hcamem_alloc(pool, bytes, align, ...). */
HCAMEM_API int hcamem_free_sized(hcamem_pool* pool, void* block, size_t bytes, size_t align);

/*
 * n blocks of bytes bytes aligned to 64, all or none: 0, or -errno as for
 * hcamem_alloc() with timeout_ms 0, and then each entry of blocks[] is unchanged or NULL.
 */
HCAMEM_API int hcamem_alloc_n(hcamem_pool* pool, size_t bytes, void** blocks, size_t n);

/*
 * Gives n blocks back; NULL entries are skipped. Where misuse is an error, the
 * good ones among blocks[] are given back nevertheless.
 */
HCAMEM_API int hcamem_free_n(hcamem_pool* pool, void* const* blocks, size_t n);

/*
 * A buffer pool: max buffers of bytes bytes, aligned to align (a power of two up to
 * HCAMEM_SLAB_UNIT; 0 means 64), cut from one block of the pool, so that one key covers
 * them all. Getting and putting one is the fastest this library has. Buffers have dense
 * numbers 0 ... max - 1. Threads keep some that are free, yet all of max can be out: where
 * no other is left, those are taken.
 *
 * reserved of the max are given only to those who ask for them, such as receives, so that
 * who sends cannot use up all.
 *
 * NULL with errno: EINVAL max 0, reserved > max, align, bytes over 1 GiB; else as
 * hcamem_alloc() for max buffers at once. The block counts as a live block of the pool.
 */
HCAMEM_API hcamem_fixed* hcamem_fixed_create(hcamem_pool* pool, size_t bytes, size_t align,
                                             uint32_t max, uint32_t reserved);

/*
 * From now on no buffer is given (EBADF). Returns 0 if none was out: the memory went back
 * to the pool, and the handle is dead. Returns -EBUSY if some are out: they stay usable,
 * and all goes back when the last of them is put. NULL is fine; nothing in a fork child.
 */
HCAMEM_API int hcamem_fixed_destroy(hcamem_fixed* from);

/*
 * A buffer; its contents are not defined. use_reserve not 0: also one of the reserve, if
 * no other is free. NULL with errno: ENOBUFS all are out; EBADF destroyed; ESTALE it
 * belongs to the parent process.
 */
HCAMEM_API void* hcamem_fixed_get(hcamem_fixed* from, int use_reserve);

/*
 * Puts a buffer back, from any thread; NULL is fine. One that is not out aborts, or sets
 * errno to EINVAL where misuse is an error: as long as no other thread has it again, or will
 * have it among the next 31 that it gets. In a fork child it does nothing.
 */
HCAMEM_API void hcamem_fixed_put(hcamem_fixed* from, void* buffer);

/* n buffers, all or none: 0, or -errno as hcamem_fixed_get(); buffers[] is then undefined. */
HCAMEM_API int hcamem_fixed_get_n(hcamem_fixed* from, void** buffers, size_t n, int use_reserve);

/*
 * Puts n buffers back; NULL entries are skipped. -EINVAL: one was not out, and misuse is
 * an error; the others are back.
 */
HCAMEM_API int hcamem_fixed_put_n(hcamem_fixed* from, void* const* buffers, size_t n);

/* The buffer's number, e.g. for wr_id; UINT32_MAX: it is not a buffer of this pool. */
HCAMEM_API uint32_t hcamem_fixed_index(const hcamem_fixed* from, const void* buffer);

/* The buffer of that number; NULL: index >= max. */
HCAMEM_API void* hcamem_fixed_at(const hcamem_fixed* from, uint32_t index);

/* Bytes that may be used of the live block at this address; 0: not a live block. */
HCAMEM_API size_t hcamem_usable(const hcamem_pool* pool, const void* block);

/* 1 if the address lies in a slab of the pool (of a live block or not), else 0. */
HCAMEM_API int hcamem_owns(const hcamem_pool* pool, const void* address);

/* HCAMEM_DEVICE or HCAMEM_MEMORY: where the pool's memory comes from. */
HCAMEM_API int hcamem_source(const hcamem_pool* pool);

/* 1 if the pool gives no more blocks: it was closed, or belongs to the parent process. */
HCAMEM_API int hcamem_closed(const hcamem_pool* pool);

/* Usage of a pool at one moment. Fields added later lie behind the present ones. */
struct hcamem_stats {
    uint32_t size;        /* sizeof(struct hcamem_stats), set by the caller */
    uint32_t source;      /* HCAMEM_DEVICE, HCAMEM_MEMORY */
    uint32_t mapping;     /* HCAMEM_MAP_HUGE, HCAMEM_MAP_PAGES */
    uint32_t slabs;       /* slabs mapped */
    uint32_t bindings;    /* bindings attached */
    uint32_t mrs;         /* memory regions registered: slabs x bindings */
    uint64_t slab_bytes;  /* in those slabs */
    uint64_t live_blocks; /* blocks handed out */
    uint64_t live_bytes;  /* usable bytes of those blocks */
    uint64_t maximum;     /* limit of slab_bytes */
};

/* Fills *stats. Errors: -EINVAL stats->size is shorter than the first version. */
HCAMEM_API int hcamem_get_stats(const hcamem_pool* pool, struct hcamem_stats* stats);

/*
 * Binds the pool to a protection domain: every slab, those to come too, is
 * registered with pd for access (IBV_ACCESS_*; of the flags, remote write and
 * remote atomic need IBV_ACCESS_LOCAL_WRITE). A binding is protection domain x
 * access: several may exist, also on several HCAs. An rkey of a slab covers all
 * blocks in that slab, so ask for remote access only where it is wanted.
 *
 * Registration takes the first path that can work, and hcamem_key.path tells
 * which did: a dma-buf of the slab (ibv_reg_dmabuf_mr(), or the kernel's call
 * where the HCA's provider library lacks that verb), else ibv_reg_mr(). A
 * dma-buf can carry local write, remote read, write and atomic, and relaxed
 * ordering; other access goes by ibv_reg_mr(), which needs HCAMEM_MAP_PAGES.
 *
 * Errors: -EINVAL access; -EFAULT the slab's huge mapping cannot be pinned and
 * the HCA takes no dma-buf; -EOPNOTSUPP HCAMEM_OPT_DMABUF_ONLY and no dma-buf
 * registration; -EBADF the pool was closed; -ESTALE; -ENOMEM; those of the
 * registration. After an error nothing is left registered.
 */
HCAMEM_API int hcamem_attach(hcamem_pool* pool, struct ibv_pd* pd, int access,
                             hcamem_binding** binding);

/*
 * Deregisters all slabs from the binding's protection domain and ends the
 * binding. Call it before ibv_dealloc_pd(); it is also allowed after
 * hcamem_pool_close(). NULL is fine. Error: that of the deregistration (-EBUSY:
 * a memory window is bound); the binding then stays, and can be detached again.
 */
HCAMEM_API int hcamem_detach(hcamem_binding* binding);

/*
 * Keys of the slab that holds this address, in constant time and without a
 * lock. 0: the address is in no slab of the pool.
 */
HCAMEM_API uint32_t hcamem_lkey(const hcamem_binding* binding, const void* address);
HCAMEM_API uint32_t hcamem_rkey(const hcamem_binding* binding, const void* address);

/* All that is known about the registration that covers an address. */
struct hcamem_key {
    uint32_t lkey, rkey;
    uint32_t path;     /* HCAMEM_PATH_* */
    uint32_t access;   /* IBV_ACCESS_* of the binding */
    struct ibv_mr* mr; /* the slab's; read-only, and not to be deregistered */
};

/*
 * Fills *key. Error: -EFAULT the address is in no slab; *key then has path
 * HCAMEM_PATH_NONE and zeros.
 */
HCAMEM_API int hcamem_key_of(const hcamem_binding* binding, const void* address,
                             struct hcamem_key* key);

/*
 * Registers [address, address + length) alone, for code that brings its own registration
 * calls, such as a message layer that registers what it is given: nobody who has the rkey
 * reaches the neighbours in the same pages' slab, and the pool's growth is not concerned.
 * The range must lie in live blocks of one slab, which must not be freed before
 * hcamem_unregister(). Path, access and errors are those of hcamem_attach(); further
 * -EINVAL: length 0, or not a range in one slab of the pool.
 */
HCAMEM_API int hcamem_register(hcamem_pool* pool, struct ibv_pd* pd, void* address, size_t length,
                               int access, hcamem_registration** made);

/* Fills *key. key->mr is for its fields and for posting, not for ibv_dereg_mr(). */
HCAMEM_API int hcamem_registration_key(const hcamem_registration* registration,
                                       struct hcamem_key* key);

/*
 * Ends the registration, also after hcamem_pool_close(). NULL is fine. Does nothing to the
 * parent's registration in a child. Error: that of the deregistration; the registration
 * then stays, and this can be called again.
 */
HCAMEM_API int hcamem_unregister(hcamem_registration* registration);

/*
 * A dma-buf of just the pages that [address, address + length) touches, e.g. to
 * pass them to another process or device. Returns its descriptor, which the
 * caller closes and which is close-on-exec, and sets *offset to where address
 * lies in it. The dma-buf keeps the slab's memory alive.
 *
 * Errors: -EINVAL length 0 or a range that is not in one slab; -EOPNOTSUPP
 * ordinary memory, or the module cannot export; -ESTALE; -EMFILE, -ENFILE, -ENOMEM.
 */
HCAMEM_API int hcamem_export(hcamem_pool* pool, const void* address, size_t length,
                             uint64_t* offset);

/*
 * Deregisters and gives back slabs without a live block until at most keep
 * bytes of such slabs are left. Returns the bytes given back.
 */
HCAMEM_API uint64_t hcamem_trim(hcamem_pool* pool, uint64_t keep);

/* hcamem_pressure.level */
enum {
    HCAMEM_PRESSURE_NONE,
    HCAMEM_PRESSURE_LOW,      /* memory is getting short */
    HCAMEM_PRESSURE_CRITICAL, /* the OOM killer is near: give back all that is idle */
    HCAMEM_PRESSURE_HCA_GONE, /* the HCA was removed; told once, wanted is 0 */
};

struct hcamem_pressure {
    uint32_t size;   /* sizeof(struct hcamem_pressure), set by the caller */
    uint32_t level;  /* HCAMEM_PRESSURE_* */
    uint64_t wanted; /* bytes that would end the shortage */
};

/*
 * A descriptor for the caller's poll() or epoll: readable when the module wants
 * memory back, for the machine or because the HCA is gone, or when a memory cgroup
 * (version 2) of this process met its limit. Then call hcamem_relieve(), or
 * hcamem_next_pressure() until -EAGAIN. The pool owns the descriptor and closes it
 * in hcamem_pool_close(). The cgroups are those at the first call.
 *
 * Errors: -EOPNOTSUPP ordinary memory and no memory cgroup, so nothing tells;
 * -EBUSY the pool relieves itself (HCAMEM_OPT_RELIEVE); -ESTALE; -ENODEV; -EMFILE,
 * -ENFILE, -ENOMEM.
 */
HCAMEM_API int hcamem_event_fd(hcamem_pool* pool);

/*
 * Takes one event of hcamem_event_fd() and fills *pressure. Errors: -EAGAIN there is
 * none, or hcamem_event_fd() was not called; -EINVAL pressure->size; -ESTALE.
 */
HCAMEM_API int hcamem_next_pressure(hcamem_pool* pool, struct hcamem_pressure* pressure);

/*
 * Takes all events of hcamem_event_fd() and gives back idle slabs: as much as is
 * wanted, all of them if it is critical. Blocks in use stay as they are. Returns the
 * bytes given back.
 */
HCAMEM_API uint64_t hcamem_relieve(hcamem_pool* pool);

/* What an error of this library means; takes errno and -errno. Never NULL, static. */
HCAMEM_API const char* hcamem_strerror(int error);

/*
 * The calling thread's last failure in full: what was refused, the limit, its
 * value and the remedy. Never NULL; valid until the thread's next failure.
 */
HCAMEM_API const char* hcamem_last_message(void);

#ifdef __cplusplus
}
#endif

#endif /* HCAMEM_H */
