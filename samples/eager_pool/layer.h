/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the parts of the layer share: what travels, and what is known of each peer. */
#ifndef SAMPLES_EAGER_POOL_LAYER_H
#define SAMPLES_EAGER_POOL_LAYER_H

#include "eager.h"

enum message_kind {
    KIND_EAGER = 1, /* data: the bytes follow the header */
    KIND_OFFER,     /* data: the bytes are to be fetched */
    KIND_FETCHED,   /* answer: the oldest offer was */
    KIND_CREDITS,   /* only what every header has; takes no credit */
};

/* Before each message. The machines of a job have one byte order. */
struct message_header {
    uint32_t kind;
    uint16_t data_credits; /* receives posted again since the last message to this peer */
    uint16_t answer_credits;
    uint64_t bytes; /* of the application's message */
    uint64_t address;
    uint32_t rkey;
    uint32_t reserved;
};

/* A work request's wr_id says what it was; only wr_id and status are sure in a failed one. */
enum work_kind { WORK_RECEIVE = 1, WORK_SEND, WORK_FETCH };
#define WORK_ID(kind, peer, index) ((uint64_t)(kind) << 56 | (uint64_t)(peer) << 32 | (index))
#define WORK_ID_KIND(id) ((uint32_t)((id) >> 56))
#define WORK_ID_PEER(id) ((uint32_t)((id) >> 32) & 0xffffffU)
#define WORK_ID_INDEX(id) ((uint32_t)(id))

struct request_queue {
    struct eager_request* first;
    struct eager_request** end;
};

/* Numbers of eager buffers, in order; linked by layer->next_parked. */
#define NO_BUFFER UINT32_MAX
struct parked_queue {
    uint32_t first, last;
};

struct peer {
    struct ibv_qp* qp;
    uint32_t send_slots;                   /* free entries of the send queue */
    uint32_t data_credits, answer_credits; /* what may be sent */
    uint32_t data_owed, answer_owed;       /* receives posted again, and not yet told */
    uint32_t unreplaced;                   /* parked messages whose receive is missing */
    uint32_t fetched;                      /* answers to offers that are to be sent */
    struct request_queue sends;            /* not begun: no credit, buffer or slot */
    struct request_queue offers;           /* sent, oldest first */
    struct request_queue receives;         /* no message yet */
    struct request_queue fetches;          /* RDMA reads to be posted */
    struct request_queue reads;            /* posted, oldest first */
    struct parked_queue parked;
};

struct eager {
    struct eager_options options;
    /* Apart from each other: a key covers a whole slab, so no peer gets one of eager buffers. */
    hcamem_pool* buffers_pool;
    hcamem_pool* messages_pool;
    hcamem_binding* buffers_binding;  /* local write */
    hcamem_binding* messages_binding; /* remote read too */
    hcamem_fixed* buffers;
    uint32_t buffer_count;
    uint32_t buffers_key;  /* of all: they are one block */
    bool* out;             /* per buffer, for eager_close() */
    uint32_t* next_parked; /* per buffer */
    uint32_t parked_extra; /* buffers out because of parked messages */
    bool starved;          /* a send waits for a buffer of any peer's */
    struct peer* peers;
    struct eager_counts counts;
    char message[256];
};

/* Keeps the line for eager_message(); returns -error. */
__attribute__((format(printf, 3, 4))) int eager_fail(struct eager* layer, int error,
                                                     const char* format, ...);

/* An eager buffer; NULL: all that this user may have are out. */
void* take_buffer(struct eager* layer, int use_reserve);
void put_buffer(struct eager* layer, void* buffer);

void append_request(struct request_queue* queue, struct eager_request* request);
struct eager_request* pop_request(struct request_queue* queue);

/* Posts a receive into this eager buffer. */
int post_receive(struct eager* layer, uint32_t number, void* buffer);

/* Sends to this peer whatever can be sent. To be called when anything of it has changed. */
int push(struct eager* layer, uint32_t number);

/* The lkey and rkey for a buffer of the application's, or a block that stands in for it. */
struct message_keys {
    void* address;
    uint32_t lkey, rkey;
};
int keys_of(struct eager* layer, struct eager_request* request, struct message_keys* keys);
void unstage(struct eager* layer, struct eager_request* request);

#endif
