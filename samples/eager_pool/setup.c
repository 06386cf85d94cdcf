/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The pools, the eager buffers, and the peers: made and given back. */
#include "layer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* RDMA reads that may be on their way from one peer. */
#define FETCH_DEPTH 8U

int eager_fail(struct eager* layer, int error, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(layer->message, sizeof(layer->message), format, arguments);
    va_end(arguments);
    return -error;
}

/* The library's own line has the limit, its value and the remedy. */
static int pool_failure(struct eager* layer, int error) {
    return eager_fail(layer, error, "%s", hcamem_last_message());
}

uint32_t eager_send_depth(const struct eager_options* options) {
    return eager_receive_depth(options) + FETCH_DEPTH;
}

uint32_t eager_receive_depth(const struct eager_options* options) {
    return options->credits + EAGER_ANSWER_CREDITS + EAGER_CREDIT_MESSAGES;
}

static int make_pool(struct eager* layer, int access, hcamem_pool** pool,
                     hcamem_binding** binding) {
    struct hcamem_options how;
    hcamem_options_init(&how, sizeof(how));
    how.source = layer->options.source;
    how.hca = layer->options.hca;
    int result = hcamem_pool_create(&how, pool);
    if (result == 0) {
        result = hcamem_attach(*pool, layer->options.pd, access, binding);
    }
    return result == 0 ? 0 : pool_failure(layer, -result);
}

static int make_buffers(struct eager* layer) {
    const struct eager_options* options = &layer->options;
    const uint32_t parked = options->park_buffers;
    layer->buffer_count =
        options->peers * eager_receive_depth(options) + options->send_buffers + 2 * parked;
    layer->buffers =
        hcamem_fixed_create(layer->buffers_pool, sizeof(struct message_header) + options->threshold,
                            0, layer->buffer_count, parked);
    if (layer->buffers == NULL) {
        return pool_failure(layer, errno);
    }
    layer->buffers_key = hcamem_lkey(layer->buffers_binding, hcamem_fixed_at(layer->buffers, 0));
    layer->out = calloc(layer->buffer_count, sizeof(*layer->out));
    layer->next_parked = calloc(layer->buffer_count, sizeof(*layer->next_parked));
    layer->peers = calloc(options->peers, sizeof(*layer->peers));
    if (layer->out == NULL || layer->next_parked == NULL || layer->peers == NULL) {
        return eager_fail(layer, ENOMEM, "no memory for the tables of %u peers", options->peers);
    }
    return 0;
}

int eager_open(const struct eager_options* options, struct eager** layer) {
    struct eager* made = calloc(1, sizeof(*made));
    *layer = made;
    if (made == NULL) {
        return -ENOMEM;
    }
    made->options = *options;
    int result =
        make_pool(made, IBV_ACCESS_LOCAL_WRITE, &made->buffers_pool, &made->buffers_binding);
    if (result == 0) {
        result = make_pool(made, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
                           &made->messages_pool, &made->messages_binding);
    }
    return result == 0 ? make_buffers(made) : result;
}

static void unstage_all(struct eager* layer, struct request_queue* queue) {
    while (queue->first != NULL) {
        unstage(layer, pop_request(queue));
    }
}

void eager_close(struct eager* layer) {
    if (layer == NULL) {
        return;
    }
    for (uint32_t i = 0; layer->peers != NULL && i < layer->options.peers; ++i) {
        struct peer* peer = &layer->peers[i];
        if (peer->qp != NULL) {
            unstage_all(layer, &peer->offers);
            unstage_all(layer, &peer->fetches);
            unstage_all(layer, &peer->reads);
        }
    }
    /* What was posted, under way or parked when the queue pairs went. */
    for (uint32_t i = 0; layer->out != NULL && i < layer->buffer_count; ++i) {
        if (layer->out[i]) {
            hcamem_fixed_put(layer->buffers, hcamem_fixed_at(layer->buffers, i));
        }
    }
    (void)hcamem_fixed_destroy(layer->buffers);
    (void)hcamem_detach(layer->buffers_binding);
    (void)hcamem_detach(layer->messages_binding);
    if (layer->buffers_pool != NULL) {
        (void)hcamem_pool_close(layer->buffers_pool);
    }
    if (layer->messages_pool != NULL) {
        (void)hcamem_pool_close(layer->messages_pool);
    }
    free(layer->out);
    free(layer->next_parked);
    free(layer->peers);
    free(layer);
}

static void init_queue(struct request_queue* queue) {
    queue->first = NULL;
    queue->end = &queue->first;
}

int eager_add_peer(struct eager* layer, uint32_t number, struct ibv_qp* qp) {
    if (number >= layer->options.peers || layer->peers[number].qp != NULL) {
        return eager_fail(layer, EINVAL, "there can be no peer %u", number);
    }
    struct peer* peer = &layer->peers[number];
    peer->qp = qp;
    peer->send_slots = eager_send_depth(&layer->options);
    peer->data_credits = layer->options.credits;
    peer->answer_credits = EAGER_ANSWER_CREDITS;
    peer->parked.first = NO_BUFFER;
    init_queue(&peer->sends);
    init_queue(&peer->offers);
    init_queue(&peer->receives);
    init_queue(&peer->fetches);
    init_queue(&peer->reads);
    for (uint32_t i = 0; i < eager_receive_depth(&layer->options); ++i) {
        void* buffer = take_buffer(layer, 0);
        if (buffer == NULL) {
            return eager_fail(layer, ENOBUFS, "no eager buffers left for the receives of peer %u",
                              number);
        }
        const int result = post_receive(layer, number, buffer);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

void* take_buffer(struct eager* layer, int use_reserve) {
    void* buffer = hcamem_fixed_get(layer->buffers, use_reserve);
    if (buffer != NULL) {
        layer->out[hcamem_fixed_index(layer->buffers, buffer)] = true;
    }
    return buffer;
}

void put_buffer(struct eager* layer, void* buffer) {
    layer->out[hcamem_fixed_index(layer->buffers, buffer)] = false;
    hcamem_fixed_put(layer->buffers, buffer);
}

void* eager_alloc(struct eager* layer, size_t bytes) {
    void* block = hcamem_alloc(layer->messages_pool, bytes, 0, 0);
    if (block == NULL) {
        (void)pool_failure(layer, errno);
    }
    return block;
}

void eager_free(struct eager* layer, void* block) {
    (void)hcamem_free(layer->messages_pool, block);
}

int keys_of(struct eager* layer, struct eager_request* request, struct message_keys* keys) {
    keys->address = request->buffer;
    keys->lkey = hcamem_lkey(layer->messages_binding, request->buffer);
    if (keys->lkey == 0) {
        /* An MPI library would ask its cache of registrations; here the copy is enough. */
        request->staged = eager_alloc(layer, request->bytes);
        if (request->staged == NULL) {
            return -ENOMEM;
        }
        ++layer->counts.staged;
        keys->address = request->staged;
        keys->lkey = hcamem_lkey(layer->messages_binding, request->staged);
    }
    keys->rkey = hcamem_rkey(layer->messages_binding, keys->address);
    return 0;
}

void unstage(struct eager* layer, struct eager_request* request) {
    eager_free(layer, request->staged);
    request->staged = NULL;
}

const struct eager_counts* eager_get_counts(const struct eager* layer) {
    return &layer->counts;
}

uint32_t eager_registration(const struct eager* layer) {
    struct hcamem_key key;
    (void)hcamem_key_of(layer->buffers_binding, hcamem_fixed_at(layer->buffers, 0), &key);
    return key.path;
}

const char* eager_message(const struct eager* layer) {
    return layer->message;
}
