/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What goes out: messages as far as there are credits, buffers and room in the send queue. */
#include "layer.h"

#include <errno.h>
#include <string.h>

void append_request(struct request_queue* queue, struct eager_request* request) {
    request->next = NULL;
    *queue->end = request;
    queue->end = &request->next;
}

struct eager_request* pop_request(struct request_queue* queue) {
    struct eager_request* request = queue->first;
    queue->first = request->next;
    if (queue->first == NULL) {
        queue->end = &queue->first;
    }
    return request;
}

static int post(struct eager* layer, struct peer* peer, struct ibv_send_wr* request) {
    struct ibv_send_wr* refused = NULL;
    const int error = ibv_post_send(peer->qp, request, &refused);
    if (error != 0) {
        return eager_fail(layer, error, "cannot post a send request: %s", strerror(error));
    }
    --peer->send_slots;
    return 0;
}

/* Sends a header, which takes along all credits that are owed, and bytes behind it. */
static int send_buffer(struct eager* layer, uint32_t number, void* buffer,
                       const struct message_header* what, size_t payload) {
    struct peer* peer = &layer->peers[number];
    struct message_header* header = buffer;
    *header = *what;
    header->data_credits = (uint16_t)peer->data_owed;
    header->answer_credits = (uint16_t)peer->answer_owed;
    peer->data_owed = 0;
    peer->answer_owed = 0;

    struct ibv_sge piece = {(uintptr_t)buffer, (uint32_t)(sizeof(*header) + payload),
                            layer->buffers_key};
    struct ibv_send_wr request = {
        .wr_id = WORK_ID(WORK_SEND, number, hcamem_fixed_index(layer->buffers, buffer)),
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
    };
    return post(layer, peer, &request);
}

/* NULL: not now. A completed send of any peer's then pushes all of them. */
static void* take_send_buffer(struct eager* layer) {
    void* buffer = take_buffer(layer, 0);
    if (buffer == NULL) {
        layer->starved = true;
    }
    return buffer;
}

/* Sends the first of the waiting messages; the caller has seen to credit and slot. */
static int send_message(struct eager* layer, uint32_t number, void* buffer) {
    struct peer* peer = &layer->peers[number];
    struct eager_request* request = pop_request(&peer->sends);
    struct message_header header = {.kind = KIND_EAGER, .bytes = request->bytes};
    size_t payload = 0;
    --peer->data_credits;
    if (request->bytes <= layer->options.threshold) {
        payload = request->bytes;
        if (payload != 0) {
            memcpy((struct message_header*)buffer + 1, request->buffer, payload);
        }
        /* The application may have its memory back: that is what eager means. */
        request->done = true;
        ++layer->counts.eager_sends;
    } else {
        struct message_keys keys;
        const int result = keys_of(layer, request, &keys);
        append_request(&peer->offers, request);
        if (result != 0) {
            put_buffer(layer, buffer);
            return result;
        }
        if (request->staged != NULL) {
            memcpy(request->staged, request->buffer, request->bytes);
        }
        header.kind = KIND_OFFER;
        header.address = (uintptr_t)keys.address;
        header.rkey = keys.rkey;
        ++layer->counts.rendezvous_sends;
    }
    return send_buffer(layer, number, buffer, &header, payload);
}

static int post_fetch(struct eager* layer, uint32_t number) {
    struct peer* peer = &layer->peers[number];
    struct eager_request* request = pop_request(&peer->fetches);
    struct message_keys keys;
    const int result = keys_of(layer, request, &keys);
    append_request(&peer->reads, request);
    if (result != 0) {
        return result;
    }
    struct ibv_sge piece = {(uintptr_t)keys.address, (uint32_t)request->bytes, keys.lkey};
    struct ibv_send_wr read = {
        .wr_id = WORK_ID(WORK_FETCH, number, 0),
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_READ,
        .wr.rdma = {request->remote_address, request->remote_key},
    };
    return post(layer, peer, &read);
}

/* What was fetched, as far as the peer has receives for it. */
static int push_answers(struct eager* layer, uint32_t number) {
    static const struct message_header fetched = {.kind = KIND_FETCHED};
    struct peer* peer = &layer->peers[number];
    int result = 0;
    while (result == 0 && peer->fetched > 0 && peer->answer_credits > 0 && peer->send_slots > 0) {
        void* buffer = take_send_buffer(layer);
        if (buffer == NULL) {
            break;
        }
        --peer->answer_credits;
        --peer->fetched;
        result = send_buffer(layer, number, buffer, &fetched, 0);
    }
    return result;
}

/* Half of what the peer has at once: one message for many, and before it has to wait. */
static int push_credits(struct eager* layer, uint32_t number) {
    static const struct message_header credits = {.kind = KIND_CREDITS};
    struct peer* peer = &layer->peers[number];
    const bool many = peer->data_owed * 2 >= layer->options.credits ||
                      peer->answer_owed * 2 >= EAGER_ANSWER_CREDITS;
    if (!many || peer->send_slots == 0) {
        return 0;
    }
    void* buffer = take_send_buffer(layer);
    if (buffer == NULL) {
        return 0;
    }
    ++layer->counts.credit_messages;
    return send_buffer(layer, number, buffer, &credits, 0);
}

int push(struct eager* layer, uint32_t number) {
    struct peer* peer = &layer->peers[number];
    int result = 0;
    while (result == 0 && peer->fetches.first != NULL && peer->send_slots > 0) {
        result = post_fetch(layer, number);
    }
    while (result == 0 && peer->sends.first != NULL && peer->send_slots > 0) {
        if (peer->data_credits == 0) {
            ++layer->counts.credit_waits;
            break;
        }
        void* buffer = take_send_buffer(layer);
        if (buffer == NULL) {
            ++layer->counts.buffer_waits;
            break;
        }
        result = send_message(layer, number, buffer);
    }
    if (result == 0) {
        result = push_answers(layer, number);
    }
    /* Last, since all others take the credits along. */
    return result == 0 ? push_credits(layer, number) : result;
}

int eager_send(struct eager* layer, uint32_t number, const void* buffer, uint64_t bytes,
               struct eager_request* request) {
    if (number >= layer->options.peers || layer->peers[number].qp == NULL || bytes > UINT32_MAX) {
        return eager_fail(layer, EINVAL, "cannot send %llu bytes to peer %u",
                          (unsigned long long)bytes, number);
    }
    /* It is only read. */
    *request = (struct eager_request){.buffer = (void*)buffer, .bytes = bytes};
    append_request(&layer->peers[number].sends, request);
    return push(layer, number);
}
