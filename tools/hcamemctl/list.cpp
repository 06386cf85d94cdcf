// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl list: nodes, usage and limits. Needs no privilege.
#include <sys/resource.h>

#include <map>

#include "commands.hpp"
#include "driver.hpp"
#include "json.hpp"
#include "output.hpp"
#include "regions.hpp"
#include "table.hpp"
#include "text.hpp"
#include "users.hpp"

namespace ctl {

namespace {

struct user_share {
    uid_t uid = 0;
    std::uint64_t bytes = 0;
};

struct list_answer {
    std::vector<node_info> nodes;
    usage_info usage;
    limit_values limits{};
    memory_info memory;
    std::optional<std::uint64_t> memlock; ///< nothing: unlimited
    std::optional<user_share> largest;    ///< the user who holds most, if that may be known
    user_names users;

    [[nodiscard]] std::uint64_t limit(limit_kind which) const { return limits[index_of(which)]; }
};

std::optional<user_share> largest_user() {
    missing_parts not_needed;
    std::map<uid_t, std::uint64_t> users;
    for (const region_info& region : read_regions(not_needed).list) {
        users[region.uid] += region.charged;
    }
    std::optional<user_share> largest;
    for (const auto& [uid, bytes] : users) {
        if (!largest || bytes > largest->bytes) {
            largest = user_share{uid, bytes};
        }
    }
    return largest;
}

list_answer gather() {
    list_answer answer;
    answer.nodes = find_nodes();
    answer.usage = read_usage(answer.nodes);
    answer.limits = read_limits();
    answer.memory = read_memory();
    answer.largest = largest_user();
    rlimit memlock{};
    if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 && memlock.rlim_cur != RLIM_INFINITY) {
        answer.memlock = memlock.rlim_cur;
    }
    return answer;
}

std::string size_or_none(std::uint64_t bytes) {
    return bytes == 0 ? "none" : human_size(bytes);
}

std::string nodes_text(const list_answer& answer) {
    if (answer.nodes.empty() && answer.usage.gone.value_or(0) == 0) {
        return "No HCA has a node: there is none, or its driver is not loaded.\n";
    }
    using alignment = text_table::alignment;
    text_table table({{"NODE"},
                      {"HCA"},
                      {"NUMA", alignment::right},
                      {"IN USE", alignment::right},
                      {"REGIONS", alignment::right}});
    for (const node_info& node : answer.nodes) {
        table.row({node.name, printable(node.hca),
                   node.numa_node ? std::to_string(*node.numa_node) : "", human_size(node.bytes),
                   std::to_string(node.regions)});
    }
    if (answer.usage.gone.value_or(0) != 0) {
        table.row({"(gone)", "", "", human_size(*answer.usage.gone), ""});
    }
    return table.text();
}

/// How a user's share stands against a limit, "12M by alice (9.3%)".
std::string user_text(list_answer& answer, const user_share& user, std::uint64_t limit) {
    std::string text = human_size(user.bytes) + " by " + answer.users.label(user.uid);
    if (limit != 0) {
        text += " (" + human_share(user.bytes, limit) + ")";
    }
    return text;
}

std::string total_text(const list_answer& answer) {
    if (!answer.usage.total) {
        return "unknown: no node can be asked";
    }
    const std::uint64_t total = *answer.usage.total;
    const std::string share = human_share(total, answer.limit(limit_kind::max_bytes));
    return human_size(total) + " handed out" + (share.empty() ? "" : " (" + share + ")");
}

std::string per_user_text(list_answer& answer) {
    const std::uint64_t limit = answer.limit(limit_kind::max_bytes_per_user);
    std::string text = "unknown: no node can be asked";
    if (answer.usage.user) {
        text = user_text(answer, {getuid(), *answer.usage.user}, limit);
    }
    if (answer.largest && answer.largest->uid != getuid()) {
        text += ", at most " + user_text(answer, *answer.largest, limit);
    }
    return text;
}

std::string reserve_text(const list_answer& answer) {
    const std::uint64_t available = answer.memory.available;
    const std::uint64_t reserve = answer.limit(limit_kind::reserve_bytes);
    return human_size(available) + " available, " +
           (available > reserve ? human_size(available - reserve) + " above it"
                                : "nothing is handed out");
}

std::string pressure_text(const list_answer& answer, limit_kind which) {
    return answer.memory.available < answer.limit(which) ? "below: memory is asked back"
                                                         : "not reached";
}

std::string limits_text(list_answer& answer) {
    text_table table({{"LIMIT"}, {"VALUE", text_table::alignment::right}, {"NOW"}});
    const auto row = [&](limit_kind which, const std::string& value, const std::string& now) {
        table.row({limit_name(which), value, now});
    };
    row(limit_kind::max_bytes, human_size(answer.limit(limit_kind::max_bytes)), total_text(answer));
    row(limit_kind::max_bytes_per_user, size_or_none(answer.limit(limit_kind::max_bytes_per_user)),
        per_user_text(answer));
    row(limit_kind::reserve_bytes, human_size(answer.limit(limit_kind::reserve_bytes)),
        reserve_text(answer));
    for (const limit_kind which : {limit_kind::low_bytes, limit_kind::critical_bytes}) {
        row(which, human_size(answer.limit(which)), pressure_text(answer, which));
    }
    table.row({"RLIMIT_MEMLOCK", answer.memlock ? human_size(*answer.memlock) : "none",
               "of this shell; counts what all processes of the user lock"});
    return table.text();
}

void write_user(json_writer& json, user_names& users, const std::optional<user_share>& user) {
    if (!user) {
        json.null();
        return;
    }
    json.begin_object()
        .member("uid", user->uid)
        .member("user", users.name(user->uid))
        .member("bytes", user->bytes)
        .end_object();
}

std::string json_text(list_answer& answer) {
    json_writer json;
    json.begin_object().member("version", json_version).key("nodes").begin_array();
    for (const node_info& node : answer.nodes) {
        json.begin_object()
            .member("node", node.name)
            .member("hca", node.hca)
            .member("path", node.path())
            .member("numa_node", node.numa_node)
            .member("bytes_in_use", node.bytes)
            .member("regions", node.regions)
            .end_object();
    }
    json.end_array().key("usage").begin_object();
    json.member("total_bytes", answer.usage.total).member("gone_bytes", answer.usage.gone);
    json.key("user");
    write_user(json, answer.users,
               answer.usage.user ? std::optional(user_share{getuid(), *answer.usage.user})
                                 : std::nullopt);
    json.key("largest_user");
    write_user(json, answer.users, answer.largest);
    json.end_object().key("limits").begin_object();
    for (const limit_kind limit : all_limits) {
        json.member(limit_name(limit), answer.limit(limit));
    }
    json.member("memlock", answer.memlock).end_object();
    json.key("memory")
        .begin_object()
        .member("total_bytes", answer.memory.total)
        .member("available_bytes", answer.memory.available)
        .end_object();
    json.end_object();
    return json.text() + '\n';
}

} // namespace

exit_code list(const command_options& options) {
    require_module();
    list_answer answer = gather();
    print(options.json ? json_text(answer) : nodes_text(answer) + '\n' + limits_text(answer));
    return exit_code::success;
}

} // namespace ctl
