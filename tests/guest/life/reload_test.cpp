// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The module comes and goes a hundred times and leaves nothing behind.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

void load() {
    const std::string path = environment("HCAMEM_MODULE");
    const UniqueFd file(must(open(path.c_str(), O_RDONLY | O_CLOEXEC), path.c_str()));
    must(syscall(SYS_finit_module, file.get(), "", 0), "finit_module");
}

/// Living objects of the kernel's caches that a driver like this one allocates from.
std::map<std::string, std::uint64_t> slab_objects() {
    std::map<std::string, std::uint64_t> objects;
    for (const auto& cache : std::filesystem::directory_iterator("/sys/kernel/slab")) {
        const std::string name = cache.path().filename();
        if (name.starts_with("kmalloc-") || name == "kernfs_node_cache" ||
            name == "radix_tree_node") {
            // Empty slabs that a CPU keeps for itself count as full otherwise.
            write_text(cache.path() / "shrink", "1");
            objects[name] = read_number(cache.path() / "objects");
        }
    }
    return objects;
}

/// How many objects the cache that grew most has got more, and which one it is.
std::pair<std::int64_t, std::string> growth(const std::map<std::string, std::uint64_t>& before,
                                            const std::map<std::string, std::uint64_t>& after) {
    std::pair<std::int64_t, std::string> most{INT64_MIN, ""};
    for (const auto& [name, count] : after) {
        const auto more =
            static_cast<std::int64_t>(count) - static_cast<std::int64_t>(before.at(name));
        most = std::max(most, {more, name});
    }
    return most;
}

/// What of the driver can be seen from outside, without numbers that change.
std::string visible() {
    std::ostringstream text;
    for (const std::string& name : Node::names()) {
        text << name << '=' << Node::ibdev_of(name) << ' '
             << std::filesystem::exists("/dev/infiniband/" + name) << ' '
             << read_number("/sys/class/hcamem/" + name + "/bytes_in_use") << ' '
             << read_number("/sys/class/hcamem/" + name + "/regions") << '\n';
    }
    for (const char* directory : {"/sys/module/hcamem/parameters", "/sys/kernel/debug/hcamem"}) {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(directory)) {
            names.push_back(entry.path().filename());
        }
        std::sort(names.begin(), names.end());
        for (const std::string& name : names) {
            text << name << '\n';
        }
    }
    return text.str();
}

std::size_t chrdev_entries() {
    std::istringstream lines(read_text("/proc/devices"));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
        count += line.find("hcamem") != std::string::npos ? 1 : 0;
    }
    return count;
}

/// A bit of everything that allocates.
void use(const std::string& ibdev) {
    const Node node(ibdev);
    for (const hcamem_mapping mapping : {HCAMEM_MAPPING_PAGES, HCAMEM_MAPPING_HUGE}) {
        const Region region(node, huge_size + page_size, {mapping, HCAMEM_FORK_POLICY_ZERO});
        region.data()[huge_size] = 1;
        const UniqueFd dma_buf = node.export_range(region.data(), region.size());
    }
    hcamem_create unmapped = create_request(page_size);
    require(node.try_create(unmapped) == 0, "CREATE");
    require(Region::attempt(node, std::uint64_t{1} << 50) != 0, "a refusal");
}

/// Free memory and what can be freed. Not MemAvailable, which falls by a part of the page cache
/// when that fills up.
std::uint64_t unused() {
    return meminfo("MemFree") + meminfo("Buffers") + meminfo("Cached") + meminfo("SReclaimable");
}

void reload(int times) {
    for (int i = 0; i < times; ++i) {
        use("rxe0");
        use("rxe1");
        ASSERT_TRUE(eventually([] { return Node().total() == 0; }));
        unload_module();
        ASSERT_TRUE(Node::names().empty());
        ASSERT_EQ(chrdev_entries(), 0U);
        ASSERT_FALSE(std::filesystem::exists("/sys/kernel/debug/hcamem"));
        load();
        ASSERT_EQ(Node::names().size(), 2U);
    }
}

} // namespace

TEST(Reload, the_slab_count_sees_a_hundred_objects) {
    const std::string path = Node::path_of("rxe0");
    // Again if others freed as much meanwhile.
    EXPECT_TRUE(eventually([&] {
        const auto before = slab_objects();
        std::vector<Node> files;
        for (int i = 0; i < 100; ++i) {
            files.emplace_back(
                UniqueFd(must(open(path.c_str(), O_RDWR | O_CLOEXEC), path.c_str())));
        }
        return growth(before, slab_objects()).first >= 90;
    }));
}

TEST(Reload, a_hundred_times_leaves_no_object_node_or_number) {
    // What is set up once and kept, and what is freed late, shows in the first half.
    constexpr int half = 50;
    const std::string before = visible();
    reload(half);
    const auto at_half = slab_objects();
    const std::uint64_t unused_at_half = unused();
    reload(half);
    // A single object left by each time would be as many as there were times.
    EXPECT_TRUE(eventually([&] { return growth(at_half, slab_objects()).first < half; }))
        << growth(at_half, slab_objects()).second;
    EXPECT_TRUE(eventually([&] { return unused() + 32 * MiB > unused_at_half; }));
    EXPECT_EQ(visible(), before);
    EXPECT_EQ(chrdev_entries(), 1U);
}
