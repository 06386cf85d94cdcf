/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A message layer over reliable connections (RC), as an MPI library has one below its
 * matching: messages to a peer arrive in the order in which they were sent, and the
 * receives of a peer take them in the order in which they were posted.
 *
 *   eager        A short message is copied into a registered buffer, sent, received into
 *                a registered buffer of the peer, and copied out. The sender is done at
 *                once. All these buffers are one hcamem_fixed.
 *   rendezvous   Of a long message only an offer is sent: where it lies, and the rkey.
 *                The receiver fetches it by RDMA read to where it is wanted, without a
 *                copy, and says so. Both ends lie in memory of eager_alloc().
 *
 * Flow control. A reliable connection stalls when a message finds no receive, so nothing
 * is sent without a credit: a receive that the peer has posted. Credits come back with
 * every message, or with one of their own when nothing else is to be sent. There are two
 * kinds of them:
 *
 *   data         eager messages and offers. If the application has not asked for one yet it
 *                is parked: it keeps its buffer, another one is posted instead, and its
 *                credit goes back, as long as there are buffers to park.
 *   answer       that an offer was fetched. These receives are posted again as they come.
 *
 * A message that only returns credits needs none, so credits always come back, however long the
 * application leaves messages parked. It goes out when half of a kind are owed; so at most two
 * for each kind are on their way before the peer can spend what they bring, and for these four
 * there are receives too.
 *
 * Buffers. Of the hcamem_fixed the posted receives are held all the time. The rest is
 * shared by sends, which give theirs back when the HCA is done, and by parked messages,
 * which keep theirs as long as the application likes. Neither may starve the other:
 *
 *   from senders  a reserve is kept (hcamem_fixed_get(..., use_reserve)), as many buffers
 *                 as may be parked;
 *   from parked   the layer counts them, and there are as many buffers more.
 *
 * Not thread safe: one thread calls all of it. Results are 0 or -errno; eager_message()
 * then says in one line what happened.
 */
#ifndef SAMPLES_EAGER_POOL_EAGER_H
#define SAMPLES_EAGER_POOL_EAGER_H

#include <hcamem.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct eager;

struct eager_options {
    struct ibv_pd* pd;
    const char* hca;       /* its name, for the pools */
    uint32_t source;       /* HCAMEM_DEVICE, or HCAMEM_MEMORY to compare with */
    uint32_t peers;        /* at most; numbered 0 ... peers - 1 */
    uint32_t threshold;    /* bytes of the longest eager message */
    uint32_t credits;      /* data messages that each peer may have under way to this side */
    uint32_t send_buffers; /* eager buffers that sends have in any case */
    uint32_t park_buffers; /* parked messages that have their credit returned */
};

/* Both sides of a connection must have the same threshold and credits. */
#define EAGER_ANSWER_CREDITS 8U
#define EAGER_CREDIT_MESSAGES 4U

/* What the queues of a connection and their completion queue must have room for. */
uint32_t eager_send_depth(const struct eager_options* options);
uint32_t eager_receive_depth(const struct eager_options* options);

/* A send or receive. The caller's memory, to be left alone until done or the layer is closed. */
struct eager_request {
    bool done;
    uint64_t bytes; /* of the message: of a receive what came */
    /* The layer's. */
    struct eager_request* next;
    void* buffer;
    void* staged; /* block that stands in for a buffer which is not of eager_alloc() */
    uint64_t remote_address;
    uint32_t remote_key;
};

/* What happened so far. */
struct eager_counts {
    uint64_t eager_sends, rendezvous_sends;
    uint64_t credit_messages; /* sent since nothing else was to be */
    uint64_t credit_waits;    /* sends that found no credit */
    uint64_t buffer_waits;    /* sends that found no buffer */
    uint64_t parked;          /* messages that came before their receive */
    uint64_t unreplaced;      /* of those, whose credit had to wait */
    uint64_t staged;          /* buffers of rendezvous that were not of eager_alloc() */
};

/*
 * Makes the pools. options->pd must stay until eager_close(). On failure *layer is a layer
 * that serves for eager_message() and eager_close() only, or NULL with -ENOMEM.
 */
int eager_open(const struct eager_options* options, struct eager** layer);

/* Gives all memory back. Every queue pair must be gone: the HCA could still write. NULL is fine. */
void eager_close(struct eager* layer);

/*
 * Adds a peer and posts all its receives. qp is initialised, with the depths above, but not
 * yet connected: once it is, messages may come. It signals every work request.
 */
int eager_add_peer(struct eager* layer, uint32_t number, struct ibv_qp* qp);

/* Memory for messages, which rendezvous moves without a copy, as MPI_Alloc_mem() would give it. */
void* eager_alloc(struct eager* layer, size_t bytes);
void eager_free(struct eager* layer, void* block);

/*
 * Begin a send or receive of up to 4 GiB. Any memory will do for it. A message that is longer
 * than the receive is an error (-EMSGSIZE) of the call that finds it.
 */
int eager_send(struct eager* layer, uint32_t number, const void* buffer, uint64_t bytes,
               struct eager_request* request);
int eager_receive(struct eager* layer, uint32_t number, void* buffer, uint64_t bytes,
                  struct eager_request* request);

/*
 * Takes one successful completion of any of the queue pairs, from whoever polls. That a peer is
 * gone shows in a failed completion only if something was being sent to it: who waits must look
 * after its life by other means, as an MPI library's launcher does.
 */
int eager_complete(struct eager* layer, const struct ibv_wc* completion);

const struct eager_counts* eager_get_counts(const struct eager* layer);
/* HCAMEM_PATH_*: how the eager buffers are registered. */
uint32_t eager_registration(const struct eager* layer);
const char* eager_message(const struct eager* layer);

#ifdef __cplusplus
}
#endif

#endif
