// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The JSON of `show`.
#include "commands.hpp"
#include "holdings_format.hpp"
#include "json.hpp"

namespace ctl {

namespace {

void write_user(json_writer& json, user_names& users, uid_t uid) {
    json.member("uid", uid).member("user", users.name(uid));
}

void write_creator(json_writer& json, creator_state creator) {
    json.member("creator", to_string(creator))
        .member("pid_reused", creator == creator_state::reused);
}

void write_sum(json_writer& json, const region_sum& sum) {
    json.member("regions", sum.regions)
        .member("bytes", sum.bytes)
        .member("charged_bytes", sum.charged);
}

void write_region(json_writer& json, user_names& users, const obtained_region& obtained) {
    const region_info& region = obtained.region;
    json.begin_object().member("region", region.id).member("node", region.node);
    json.member("hca", obtained.hca.empty() ? std::nullopt : std::optional(obtained.hca));
    write_user(json, users, region.uid);
    json.member("pid", region.pid).member("command", region.command);
    write_creator(json, obtained.creator);
    json.member("age_seconds", region.age_seconds())
        .member("bytes", region.bytes)
        .member("charged_bytes", region.charged)
        .member("state", region.state())
        .member("mapping", region.mapping)
        .member("fork", region.fork)
        .member("mappings", region.mappings)
        .member("dma_bufs", region.dma_bufs);
    json.key("chunks").begin_array();
    for (const chunk_run& some : region.chunks) {
        json.begin_object().member("bytes", some.bytes).member("count", some.count).end_object();
    }
    json.end_array().end_object();
}

void write_holder(json_writer& json, user_names& users, const holder_info& holder) {
    json.begin_object().member("pid", holder.pid).member("command", holder.command);
    write_user(json, users, holder.uid);
    json.key("nodes").begin_array();
    for (const node_file& file : holder.nodes) {
        json.begin_object()
            .member("fd", file.fd)
            .member("node", file.node)
            .member("gone", file.gone)
            .member("unmapped_regions", file.unmapped_regions)
            .member("unmapped_bytes", file.unmapped_bytes)
            .end_object();
    }
    json.end_array().key("mapped").begin_array();
    for (const auto& [node, mapped] : holder.mapped) {
        json.begin_object();
        json.member("node", node.empty() ? std::nullopt : std::optional(node));
        json.member("areas", mapped.areas).member("bytes", mapped.bytes).end_object();
    }
    json.end_array().key("dma_bufs").begin_array();
    for (const dma_buf_file& file : holder.dma_bufs) {
        json.begin_object()
            .member("fd", file.fd)
            .member("inode", file.inode)
            .member("bytes", file.bytes)
            .end_object();
    }
    json.end_array().member("wiped_bytes", holder.wiped_bytes).end_object();
}

} // namespace

std::string json_of(const holding_report& holdings, user_names& users) {
    json_writer json;
    json.begin_object().member("version", json_version);
    write_json(json, holdings.missing);
    json.key("usage")
        .begin_object()
        .member("total_bytes", holdings.usage.total)
        .member("user_bytes", holdings.usage.user)
        .end_object();
    json.key("regions");
    if (!holdings.regions_known) {
        json.null();
        json.key("users").null().key("creators").null();
    } else {
        json.begin_array();
        for (const obtained_region& obtained : holdings.regions) {
            write_region(json, users, obtained);
        }
        json.end_array().key("users").begin_array();
        for (const auto& [uid, sum] : holdings.users) {
            json.begin_object();
            write_user(json, users, uid);
            write_sum(json, sum);
            json.end_object();
        }
        json.end_array().key("creators").begin_array();
        for (const auto& [creator, sum] : holdings.creators) {
            json.begin_object().member("pid", creator.pid).member("command", creator.command);
            write_user(json, users, creator.uid);
            write_creator(json, creator.creator);
            write_sum(json, sum);
            json.end_object();
        }
        json.end_array();
    }
    json.key("processes").begin_array();
    for (const holder_info& holder : holdings.holders) {
        write_holder(json, users, holder);
    }
    json.end_array().key("dma_bufs");
    if (holdings.dma_bufs) {
        json.begin_object()
            .member("total", holdings.dma_bufs->total)
            .member("with_descriptor", holdings.dma_bufs->with_descriptor)
            .end_object();
    } else {
        json.null();
    }
    json.end_object();
    return json.text() + '\n';
}

} // namespace ctl
