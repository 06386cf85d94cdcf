// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl limits: what may be held, and changing it.
#include <cerrno>
#include <cstring>

#include "commands.hpp"
#include "driver.hpp"
#include "json.hpp"
#include "output.hpp"
#include "table.hpp"
#include "text.hpp"

namespace ctl {

namespace {

const char* meaning(limit_kind limit) {
    switch (limit) {
    case limit_kind::max_bytes:
        return "most that all users together get";
    case limit_kind::max_bytes_per_user:
        return "most that one user gets; 0 is no limit";
    case limit_kind::reserve_bytes:
        return "available memory that is never handed out";
    case limit_kind::low_bytes:
        return "available memory below which idle memory is asked back";
    case limit_kind::critical_bytes:
        break;
    }
    return "available memory below which it is asked back urgently";
}

struct limit_setting {
    limit_kind limit;
    std::uint64_t value;
};

limit_kind limit_named(const std::string& name) {
    std::string names;
    for (const limit_kind limit : all_limits) {
        if (name == limit_name(limit)) {
            return limit;
        }
        names += std::string(" ") + limit_name(limit);
    }
    throw failure(exit_code::usage, "there is no limit '" + name + "'; there are" + names);
}

limit_setting parse_setting(const std::string& text, const memory_info& memory) {
    const auto equals = text.find('=');
    const limit_kind limit = limit_named(text.substr(0, equals));
    const std::string value = text.substr(equals + 1);
    const auto bytes = parse_size(value, memory.total);
    if (!bytes) {
        throw failure(exit_code::usage, std::string(limit_name(limit)) + ": '" + value +
                                            "' is no size; write 4096, 512M, 1.5G or 50%");
    }
    return {limit, *bytes};
}

/// Throws for what cannot be meant.
void check(const limit_values& wanted, const std::vector<limit_setting>& settings,
           const memory_info& memory) {
    for (const limit_setting& setting : settings) {
        if (setting.value > memory.total) {
            throw failure(exit_code::failed, std::string(limit_name(setting.limit)) + ": " +
                                                 human_size(setting.value) +
                                                 " is more than this machine's memory, " +
                                                 human_size(memory.total) + "; --force sets it");
        }
    }
    if (wanted[index_of(limit_kind::critical_bytes)] > wanted[index_of(limit_kind::low_bytes)]) {
        throw failure(exit_code::failed,
                      "critical_bytes would be above low_bytes, " +
                          human_size(wanted[index_of(limit_kind::critical_bytes)]) + " and " +
                          human_size(wanted[index_of(limit_kind::low_bytes)]) +
                          ", so that nobody were warned first; --force sets it");
    }
}

/// Says what is allowed and still may surprise.
void warn(const limit_values& wanted, const memory_info& memory) {
    const std::uint64_t max = wanted[index_of(limit_kind::max_bytes)];
    const std::uint64_t per_user = wanted[index_of(limit_kind::max_bytes_per_user)];
    const std::uint64_t reserve = wanted[index_of(limit_kind::reserve_bytes)];
    std::vector<node_info> nodes = find_nodes();
    const std::uint64_t total = read_usage(nodes).total.value_or(0);
    if (max == 0) {
        say("note: with max_bytes=0 nothing is handed out");
    } else if (total > max) {
        say("note: " + human_size(total) +
            " are handed out, more than max_bytes; they stay with "
            "their holders, and nobody gets more until they are below it");
    }
    if (per_user > max) {
        say("note: max_bytes_per_user has no effect above max_bytes");
    }
    if (reserve >= memory.available) {
        say("note: " + human_size(memory.available) +
            " of memory are available, not more than "
            "reserve_bytes: nothing is handed out now");
    }
}

/// Writes all or, as far as the kernel lets us, none.
void write_all(const std::vector<limit_setting>& settings, const limit_values& before) {
    for (std::size_t i = 0; i < settings.size(); ++i) {
        const limit_setting& setting = settings[i];
        const int error = write_file(limit_path(setting.limit), std::to_string(setting.value));
        if (error == 0) {
            continue;
        }
        for (std::size_t done = 0; done < i; ++done) {
            const limit_kind limit = settings[done].limit;
            write_file(limit_path(limit), std::to_string(before[index_of(limit)]));
        }
        const std::string reason = error == EACCES || error == EPERM
                                       ? "only root may change limits"
                                       : limit_path(setting.limit) + ": " + std::strerror(error);
        throw failure(exit_code::failed, std::string("cannot set ") + limit_name(setting.limit) +
                                             ": " + reason + "; nothing was changed");
    }
}

void set(const command_options& options, const memory_info& memory) {
    std::vector<limit_setting> settings;
    for (const std::string& text : options.settings) {
        settings.push_back(parse_setting(text, memory));
    }
    const limit_values before = read_limits();
    limit_values wanted = before;
    for (const limit_setting& setting : settings) {
        wanted[index_of(setting.limit)] = setting.value;
    }
    if (!options.force) {
        check(wanted, settings, memory);
    }
    write_all(settings, before);
    if (read_limits() != wanted) {
        throw failure(exit_code::failed,
                      "the limits are not what was set: somebody else sets them too");
    }
    warn(wanted, memory);
}

std::string table_text(const limit_values& limits, const memory_info& memory) {
    using alignment = text_table::alignment;
    text_table table({{"LIMIT"},
                      {"VALUE", alignment::right},
                      {"BYTES", alignment::right},
                      {"OF MEMORY", alignment::right},
                      {"MEANING"}});
    for (const limit_kind limit : all_limits) {
        const std::uint64_t value = limits[index_of(limit)];
        table.row({limit_name(limit), human_size(value), std::to_string(value),
                   human_share(value, memory.total), meaning(limit)});
    }
    return table.text();
}

std::string json_text(const limit_values& limits, const memory_info& memory) {
    json_writer json;
    json.begin_object().member("version", json_version).key("limits").begin_object();
    for (const limit_kind limit : all_limits) {
        json.member(limit_name(limit), limits[index_of(limit)]);
    }
    json.end_object().member("memory_bytes", memory.total).end_object();
    return json.text() + '\n';
}

} // namespace

exit_code limits(const command_options& options) {
    require_module();
    const memory_info memory = read_memory();
    if (!options.settings.empty()) {
        set(options, memory);
    }
    const limit_values now = read_limits();
    print(options.json ? json_text(now, memory) : table_text(now, memory));
    return exit_code::success;
}

} // namespace ctl
