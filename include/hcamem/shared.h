/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared heaps: DMA memory that several processes map, with one lock for all of them.
 * This interface gives memory and lock; what lies in the memory is the program's
 * matter. <hcamem/shared_heap.hpp> lays a heap with named objects and containers into it.
 *
 * A process joins a heap by being forked from one that has it, or by its two
 * descriptors: hcamem_shared_send() and hcamem_shared_receive() over a UNIX socket,
 * or hcamem_shared_join(). The memory lies at another address in each process,
 * always aligned to 2 MiB.
 *
 * Trust     the processes of a heap trust one another: each can write all of it.
 * Death     a process that dies with the lock poisons the heap: from then on locking
 *           it fails with ENOTRECOVERABLE in every process, and who waits for the
 *           lock learns it within a second. Elsewhere a death harms nobody.
 * Fork      a child of fork() has the heap too. It has none of the parent's bindings,
 *           and not the lock that the parent's thread may have had. In a child of
 *           a raw clone(), which the C library does not know about, calls fail with ESTALE.
 * Lifetime  the memory goes when the last process has closed the heap or ended; until
 *           then it stays charged to the user who created it. An MR keeps it too.
 *
 * Results, messages, threads and misuse: as said in <hcamem.h>.
 */
#ifndef HCAMEM_SHARED_H
#define HCAMEM_SHARED_H

#include <hcamem.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hcamem_shared hcamem_shared;

/* hcamem_shared_create() flags */
enum {
    /* Registrations may allow remote access. A peer that has an rkey can then write
     * everything in the heap, what keeps it in order included. */
    HCAMEM_SHARED_REMOTE = 1 << 0,
};

/*
 * Makes a heap of bytes bytes, rounded up to 2 MiB, all zero. Of the options count source,
 * mapping, numa_node, hca and HCAMEM_OPT_DMABUF_ONLY, _PREFAULT and _MISUSE_ERROR; NULL
 * means the defaults and the environment. layout is any number that says how the
 * program lays out the memory: whoever joins must give the same.
 *
 * Device memory is obtained and charged here; ordinary memory as it is touched, by who touches it.
 *
 * Errors: -EINVAL bytes 0 or more than 32 TiB, an unknown flag; -EMFILE, -ENFILE; -EOPNOTSUPP
 * the module cannot export; those of hcamem_pool_create() and of obtaining memory.
 */
HCAMEM_API int hcamem_shared_create(const struct hcamem_options* options, uint64_t bytes,
                                    uint32_t flags, uint64_t layout, hcamem_shared** heap);

/*
 * Joins a heap by the descriptors of its control segment and its memory, which stay the
 * caller's: it may close them at once.
 *
 * Errors: -EBADMSG a descriptor is not one of a shared heap, or was tampered with; -EXDEV
 * they are of two heaps, or the heap is of another PID namespace; -EPROTO made by
 * another version of the library, or another layout; -EEXIST this process has the heap already;
 * -EMFILE; -ENOMEM no address space.
 */
HCAMEM_API int hcamem_shared_join(int control, int memory, uint64_t layout, hcamem_shared** heap);

/* The heap's own descriptors, to pass them in another way. Not to be closed. */
HCAMEM_API int hcamem_shared_descriptors(const hcamem_shared* heap, int* control, int* memory);

/*
 * Sends the heap's descriptors over a UNIX socket of any type, as one message; the other
 * side calls hcamem_shared_receive(). Nothing else is consumed or sent.
 *
 * Errors: those of sendmsg(2).
 */
HCAMEM_API int hcamem_shared_send(const hcamem_shared* heap, int socket);

/*
 * Waits for a heap to arrive on the socket and joins it.
 *
 * Errors: those of hcamem_shared_join(); -EBADMSG something else arrived, whose descriptors
 * were closed; -ECONNRESET the other side closed the socket; -ETIMEDOUT the socket does not wait,
 * or no longer (O_NONBLOCK, SO_RCVTIMEO); those of recvmsg(2).
 */
HCAMEM_API int hcamem_shared_receive(int socket, uint64_t layout, hcamem_shared** heap);

/*
 * Ends the heap in this process: deregisters and unmaps it. Bindings that are still
 * attached then have keys 0 and must still be detached.
 *
 * Errors: -EBUSY a thread of this process has the lock, or a memory window is bound;
 * that of a deregistration. The heap then stays.
 */
HCAMEM_API int hcamem_shared_close(hcamem_shared* heap);

/* Where the memory lies in this process, and its size; NULL and 0 if the heap is closed. */
HCAMEM_API void* hcamem_shared_address(const hcamem_shared* heap);
HCAMEM_API size_t hcamem_shared_size(const hcamem_shared* heap);

/* HCAMEM_DEVICE or HCAMEM_MEMORY. */
HCAMEM_API int hcamem_shared_source(const hcamem_shared* heap);

/* The heap of this process whose memory holds the address; NULL: there is none. Takes no lock. */
HCAMEM_API hcamem_shared* hcamem_shared_find(const void* address);

/*
 * Takes the lock, which excludes all other threads of all processes. A thread may take
 * it again, and then has to unlock as often. timeout_ms: 0 fails at once, > 0 waits at
 * most so many milliseconds, -1 without limit.
 *
 * Errors: -ENOTRECOVERABLE the heap is poisoned; -ETIMEDOUT; -EINVAL timeout_ms; -ESTALE.
 */
HCAMEM_API int hcamem_shared_lock(hcamem_shared* heap, int timeout_ms);

/* The calling thread has the lock; anything else is misuse. */
HCAMEM_API int hcamem_shared_unlock(hcamem_shared* heap);

/*
 * Registers all of the memory with pd in this process; every process that wants to send
 * or receive there does so itself. Keys and detaching as for hcamem_attach().
 *
 * Errors: those of hcamem_attach(); -EPERM remote access or a memory window, and the heap was made
 * without HCAMEM_SHARED_REMOTE.
 */
HCAMEM_API int hcamem_shared_attach(hcamem_shared* heap, struct ibv_pd* pd, int access,
                                    hcamem_binding** binding);

#ifdef __cplusplus
}
#endif

#endif /* HCAMEM_SHARED_H */
