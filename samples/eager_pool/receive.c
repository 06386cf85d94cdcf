/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What comes in: completions, and the matching of messages with receives. */
#include "layer.h"

#include <errno.h>
#include <string.h>

int post_receive(struct eager* layer, uint32_t number, void* buffer) {
    struct ibv_sge piece = {(uintptr_t)buffer,
                            (uint32_t)sizeof(struct message_header) + layer->options.threshold,
                            layer->buffers_key};
    struct ibv_recv_wr request = {
        .wr_id = WORK_ID(WORK_RECEIVE, number, hcamem_fixed_index(layer->buffers, buffer)),
        .sg_list = &piece,
        .num_sge = 1,
    };
    struct ibv_recv_wr* refused = NULL;
    const int error = ibv_post_recv(layer->peers[number].qp, &request, &refused);
    if (error != 0) {
        return eager_fail(layer, error, "cannot post a receive: %s", strerror(error));
    }
    return 0;
}

/* The buffer of a data message is free again. */
static int recycle(struct eager* layer, uint32_t number, void* buffer) {
    struct peer* peer = &layer->peers[number];
    ++peer->data_owed;
    return post_receive(layer, number, buffer);
}

/* Gives a message to its receive: copies it out, or has it fetched. Leaves the buffer alone. */
static int deliver(struct eager* layer, uint32_t number, const struct message_header* header) {
    struct peer* peer = &layer->peers[number];
    struct eager_request* request = pop_request(&peer->receives);
    if (header->bytes > request->bytes) {
        return eager_fail(layer, EMSGSIZE, "peer %u sent %llu bytes to a receive of %llu", number,
                          (unsigned long long)header->bytes, (unsigned long long)request->bytes);
    }
    request->bytes = header->bytes;
    if (header->kind == KIND_EAGER) {
        if (request->bytes != 0) {
            memcpy(request->buffer, header + 1, request->bytes);
        }
        request->done = true;
    } else {
        request->remote_address = header->address;
        request->remote_key = header->rkey;
        append_request(&peer->fetches, request);
    }
    return 0;
}

/*
 * Keeps a message for a receive that is to come. Another buffer takes its place, so that the
 * peer can go on; if there is none, its credit waits until the message is taken.
 */
static int park(struct eager* layer, uint32_t number, uint32_t index) {
    struct peer* peer = &layer->peers[number];
    ++layer->counts.parked;
    layer->next_parked[index] = NO_BUFFER;
    if (peer->parked.first == NO_BUFFER) {
        peer->parked.first = index;
    } else {
        layer->next_parked[peer->parked.last] = index;
    }
    peer->parked.last = index;

    void* other = NULL;
    if (layer->parked_extra < layer->options.park_buffers) {
        other = take_buffer(layer, 1); /* a receive: it may use the reserve */
    }
    if (other == NULL) {
        ++peer->unreplaced;
        ++layer->counts.unreplaced;
        return 0;
    }
    ++layer->parked_extra;
    return recycle(layer, number, other);
}

/* The buffer of a parked message: to the receive that is missing, or to all. */
static int release_parked(struct eager* layer, uint32_t number, void* buffer) {
    struct peer* peer = &layer->peers[number];
    if (peer->unreplaced > 0) {
        --peer->unreplaced;
        return recycle(layer, number, buffer);
    }
    --layer->parked_extra;
    put_buffer(layer, buffer);
    return 0;
}

int eager_receive(struct eager* layer, uint32_t number, void* buffer, uint64_t bytes,
                  struct eager_request* request) {
    if (number >= layer->options.peers || layer->peers[number].qp == NULL) {
        return eager_fail(layer, EINVAL, "cannot receive from peer %u", number);
    }
    struct peer* peer = &layer->peers[number];
    *request = (struct eager_request){.buffer = buffer, .bytes = bytes};
    append_request(&peer->receives, request);
    if (peer->parked.first == NO_BUFFER) {
        return 0;
    }
    void* parked = hcamem_fixed_at(layer->buffers, peer->parked.first);
    peer->parked.first = layer->next_parked[peer->parked.first];
    int result = deliver(layer, number, parked);
    if (result == 0) {
        result = release_parked(layer, number, parked);
    }
    return result == 0 ? push(layer, number) : result;
}

/* A peer that is mad must not lead us astray: what it says is checked before it is used. */
static bool makes_sense(const struct eager* layer, const struct peer* peer,
                        const struct message_header* header, uint32_t arrived) {
    const uint32_t credits = layer->options.credits;
    if (arrived < sizeof(*header) || header->data_credits > credits - peer->data_credits ||
        header->answer_credits > EAGER_ANSWER_CREDITS - peer->answer_credits) {
        return false;
    }
    switch (header->kind) {
    case KIND_EAGER:
        return header->bytes == arrived - sizeof(*header);
    case KIND_OFFER:
        return header->bytes <= UINT32_MAX;
    case KIND_FETCHED:
        return peer->offers.first != NULL;
    default:
        return header->kind == KIND_CREDITS;
    }
}

static int complete_receive(struct eager* layer, uint32_t number, uint32_t index,
                            uint32_t arrived) {
    struct peer* peer = &layer->peers[number];
    void* buffer = hcamem_fixed_at(layer->buffers, index);
    const struct message_header* header = buffer;
    if (!makes_sense(layer, peer, header, arrived)) {
        return eager_fail(layer, EPROTO, "peer %u sent what is no message of this layer", number);
    }
    peer->data_credits += header->data_credits;
    peer->answer_credits += header->answer_credits;

    int result = 0;
    if (header->kind == KIND_EAGER || header->kind == KIND_OFFER) {
        if (peer->receives.first == NULL) {
            result = park(layer, number, index);
        } else {
            result = deliver(layer, number, header);
            if (result == 0) {
                result = recycle(layer, number, buffer);
            }
        }
    } else {
        if (header->kind == KIND_FETCHED) {
            struct eager_request* sent = pop_request(&peer->offers);
            unstage(layer, sent);
            sent->done = true;
            ++peer->answer_owed;
        }
        result = post_receive(layer, number, buffer);
    }
    return result == 0 ? push(layer, number) : result;
}

static int complete_send(struct eager* layer, uint32_t number, uint32_t index) {
    ++layer->peers[number].send_slots;
    put_buffer(layer, hcamem_fixed_at(layer->buffers, index));
    if (!layer->starved) {
        return push(layer, number);
    }
    /* Whoever waited for a buffer has been asked once this is through. */
    layer->starved = false;
    int result = 0;
    for (uint32_t i = 0; result == 0 && i < layer->options.peers; ++i) {
        if (layer->peers[i].qp != NULL) {
            result = push(layer, i);
        }
    }
    return result;
}

/* Reads of one connection complete in the order in which they were posted. */
static int complete_fetch(struct eager* layer, uint32_t number) {
    struct peer* peer = &layer->peers[number];
    struct eager_request* request = pop_request(&peer->reads);
    ++peer->send_slots;
    if (request->staged != NULL) {
        memcpy(request->buffer, request->staged, request->bytes);
        unstage(layer, request);
    }
    request->done = true;
    ++peer->fetched;
    return push(layer, number);
}

int eager_complete(struct eager* layer, const struct ibv_wc* completion) {
    const uint32_t number = WORK_ID_PEER(completion->wr_id);
    const uint32_t index = WORK_ID_INDEX(completion->wr_id);
    switch (WORK_ID_KIND(completion->wr_id)) {
    case WORK_RECEIVE:
        return complete_receive(layer, number, index, completion->byte_len);
    case WORK_SEND:
        return complete_send(layer, number, index);
    default:
        return complete_fetch(layer, number);
    }
}
