// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "page_pins.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "failure.hpp"
#include "unique_fd.hpp"

namespace support {

namespace {

constexpr const char* tracing = "/sys/kernel/tracing/";
constexpr std::uint64_t page_bytes = 4096;

/// Where a function has its arguments (mm/gup.c).
struct Signature {
    const char* name;
    int start_argument;       ///< counting from 1
    int pages_argument;       ///< counting from 1
    const char* pages_format; ///< an int leaves the upper half of its register undefined
    bool inner;               ///< does the work for several of the public ones
};

constexpr std::array<Signature, 16> signatures{{
    {"get_user_pages", 1, 2, "u64", false},
    {"get_user_pages_unlocked", 1, 2, "u64", false},
    {"get_user_pages_remote", 2, 3, "u64", false},
    {"get_user_pages_fast", 1, 2, "s32", false},
    {"get_user_pages_fast_only", 1, 2, "s32", false},
    {"pin_user_pages", 1, 2, "u64", false},
    {"pin_user_pages_unlocked", 1, 2, "u64", false},
    {"pin_user_pages_remote", 2, 3, "u64", false},
    {"pin_user_pages_fast", 1, 2, "s32", false},
    {"pin_user_pages_fast_only", 1, 2, "s32", false},
    {"__get_user_pages", 2, 3, "u64", true},
    {"__get_user_pages_locked", 2, 3, "u64", true},
    {"__get_user_pages_remote", 2, 3, "u64", true},
    {"__gup_longterm_locked", 2, 3, "u64", true},
    {"internal_get_user_pages_fast", 1, 2, "u64", true}, // until 6.9
    {"gup_fast_fallback", 1, 2, "u64", true},            // its name since
}};

/// The two ways that every pin takes: through the page tables without a lock, and through the
/// page-fault handler. At least one name of each must be there.
constexpr std::array<const char*, 2> lockless_ways{"internal_get_user_pages_fast",
                                                   "gup_fast_fallback"};
constexpr const char* locked_way = "__get_user_pages";

/// Whether a symbol is of the families, known to us or not. Includes the forms that a compiler
/// makes of a function (name.isra.0).
bool of_the_families(std::string_view symbol) {
    constexpr std::array<std::string_view, 7> beginnings{
        "get_user_pages",    "pin_user_pages",        "__get_user_pages",
        "__pin_user_pages",  "__gup_longterm_locked", "internal_get_user_pages_fast",
        "gup_fast_fallback",
    };
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view each) { return symbol.starts_with(each); });
}

const Signature* signature_of(const std::string& symbol) {
    const auto found = std::find_if(signatures.begin(), signatures.end(),
                                    [&](const Signature& each) { return symbol == each.name; });
    return found == signatures.end() ? nullptr : &*found;
}

/// The functions of the families in the running kernel.
std::vector<const Signature*> present_functions() {
    std::ifstream symbols("/proc/kallsyms");
    std::vector<const Signature*> found;
    std::string address;
    std::string type;
    std::string name;
    for (std::string line; std::getline(symbols, line);) {
        // There are some 200000 symbols, and taking each apart is slow in an emulated machine.
        if (line.find("user_pages") == std::string::npos &&
            line.find("gup_") == std::string::npos) {
            continue;
        }
        std::istringstream fields(line);
        fields >> address >> type >> name;
        // A part that the compiler moved out of line (.cold) is entered by a jump.
        if ((type != "t" && type != "T") || !of_the_families(name) || name.ends_with(".cold")) {
            continue;
        }
        const Signature* known = signature_of(name);
        if (known == nullptr) {
            throw std::runtime_error("this kernel pins pages by " + name +
                                     "(), whose arguments are not known here");
        }
        found.push_back(known);
    }
    return found;
}

/// One write(), as the files of tracefs want it.
void write_once(const std::string& path, const std::string& text, int flags = O_TRUNC) {
    const UniqueFd fd(must(open(path.c_str(), O_WRONLY | O_CLOEXEC | flags), path.c_str()));
    must(write(fd.get(), text.data(), text.size()), (path + ": " + text).c_str());
}

std::uint64_t number(std::string_view text, int base) {
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || stop != text.data() + text.size()) {
        throw std::runtime_error("not a number in the trace: " + std::string(text));
    }
    return value;
}

/// The text between two marks; throws if they are not there in this order.
std::string_view between(std::string_view line, std::string_view before, std::string_view after) {
    const auto start = line.find(before);
    const auto from = start + before.size();
    const auto end = start == std::string_view::npos ? start : line.find(after, from);
    if (end == std::string_view::npos) {
        throw std::runtime_error("cannot read this line of the trace: " + std::string(line));
    }
    return line.substr(from, end - from);
}

/// A line of the trace such as
/// "  ibv_x-91  [001] ..... 12.3: pin_user_pages_fast: (pin_user_pages_fast+0x0/0x60)
/// start=0x7f1200001000 pages=512".
PinCall parse_call(const std::string& line) {
    // The name of the task in front may hold anything; its number stands before the processor's.
    const auto processor = line.find(" [");
    const auto task = line.substr(0, line.find_last_not_of(' ', processor) + 1);
    const auto thread = task.substr(task.rfind('-') + 1);
    const auto call = processor == std::string::npos ? std::string_view()
                                                     : std::string_view(line).substr(processor);
    const auto start = number(between(call, " start=0x", " "), 16) / page_bytes * page_bytes;
    const auto pages = call.substr(call.find(" pages=") + std::string_view(" pages=").size());
    const auto count = pages.starts_with('-') ? 0 : number(pages, 10);
    return {std::string(between(call, ": (", "+")),
            static_cast<pid_t>(number(thread, 10)),
            {start, start + count * page_bytes}};
}

bool overlap(const AddressRange& a, const AddressRange& b) {
    return a.begin < b.end && b.begin < a.end;
}

} // namespace

PagePins::PagePins(unsigned buffer_kilobytes)
    : group_("page_pins_" + std::to_string(getpid())),
      instance_(std::string(tracing) + "instances/" + group_) {
    try {
        install(buffer_kilobytes);
    } catch (...) {
        remove();
        throw;
    }
}

PagePins::~PagePins() {
    remove();
}

void PagePins::install(unsigned buffer_kilobytes) {
    // An instance has ring buffers of its own: other users of tracing disturb nothing.
    must(mkdir(instance_.c_str(), 0700), instance_.c_str());
    write_once(in_instance("buffer_size_kb"), std::to_string(buffer_kilobytes));
    // A full buffer drops new events and counts them.
    write_once(in_instance("options/overwrite"), "0");
    for (const Signature* function : present_functions()) {
        const std::string name = function->name;
        write_once(std::string(tracing) + "kprobe_events",
                   "p:" + group_ + "/" + name + " " + name + " start=$arg" +
                       std::to_string(function->start_argument) + ":x64 pages=$arg" +
                       std::to_string(function->pages_argument) + ":" + function->pages_format +
                       "\n",
                   O_APPEND);
        functions_.push_back(name);
    }
    const auto probed = [this](const char* name) {
        return std::find(functions_.begin(), functions_.end(), name) != functions_.end();
    };
    if (std::none_of(lockless_ways.begin(), lockless_ways.end(), probed) || !probed(locked_way)) {
        throw std::runtime_error("this kernel has none of the functions that pin pages at the end");
    }
    write_once(in_instance("events/" + group_ + "/enable"), "1");
}

void PagePins::remove() noexcept {
    try {
        const std::string enable = in_instance("events/" + group_ + "/enable");
        if (access(enable.c_str(), F_OK) == 0) {
            write_once(enable, "0");
        }
        for (const auto& name : functions_) {
            write_once(std::string(tracing) + "kprobe_events", "-:" + group_ + "/" + name + "\n",
                       O_APPEND);
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "probes are left behind: %s\n", error.what());
    }
    rmdir(instance_.c_str());
}

void PagePins::clear() {
    write_once(in_instance("trace"), "\n");
}

std::vector<PinCall> PagePins::calls() const {
    check_nothing_lost();
    std::vector<PinCall> result;
    std::ifstream trace(in_instance("trace"));
    for (std::string line; std::getline(trace, line);) {
        if (!line.empty() && !line.starts_with('#')) {
            result.push_back(parse_call(line));
        }
    }
    if (trace.bad()) {
        throw std::runtime_error("cannot read " + in_instance("trace"));
    }
    return result;
}

void PagePins::check_nothing_lost() const {
    // Events that found no room: "overrun: 0", "commit overrun: 0", "dropped events: 0".
    for (const auto& entry : std::filesystem::directory_iterator(in_instance("per_cpu"))) {
        std::ifstream statistics(entry.path() / "stats");
        for (std::string line; std::getline(statistics, line);) {
            const bool counts_losses = line.starts_with("overrun:") ||
                                       line.starts_with("commit overrun:") ||
                                       line.starts_with("dropped events:");
            if (counts_losses && line.substr(line.find(':')) != ": 0") {
                throw std::runtime_error("the kernel lost trace events: " +
                                         entry.path().filename().string() + " " + line);
            }
        }
    }
    // Probes that could not run: "event hits misses".
    std::ifstream profile(std::string(tracing) + "kprobe_profile");
    for (std::string line; std::getline(profile, line);) {
        std::istringstream fields(line);
        std::string event;
        std::uint64_t hits = 0;
        std::uint64_t misses = 0;
        fields >> event >> hits >> misses;
        const bool ours =
            std::find(functions_.begin(), functions_.end(), event) != functions_.end();
        if (ours && misses != 0) {
            throw std::runtime_error("the probe on " + event + " missed " + std::to_string(misses) +
                                     " calls");
        }
    }
}

std::string PagePins::in_instance(const std::string& file) const {
    return instance_ + "/" + file;
}

std::vector<PinCall> touching(std::span<const PinCall> calls,
                              std::span<const AddressRange> ranges) {
    std::vector<PinCall> result;
    for (const PinCall& call : calls) {
        if (std::any_of(ranges.begin(), ranges.end(),
                        [&](const AddressRange& range) { return overlap(call.pages, range); })) {
            result.push_back(call);
        }
    }
    return result;
}

std::map<std::string, std::uint64_t> by_function(std::span<const PinCall> calls) {
    std::map<std::string, std::uint64_t> result;
    for (const PinCall& call : calls) {
        ++result[call.function];
    }
    return result;
}

} // namespace support
