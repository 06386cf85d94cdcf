// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "source/node.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/ioctl.h>

#include "error/message.h"

namespace hcamem::core {
namespace {

constexpr const char* class_folder = "/sys/class/hcamem";

struct entry {
    unsigned number; // N of hcamemN
    std::string name;
    std::string ibdev;
};

std::vector<entry> list_nodes() {
    std::vector<entry> found;
    std::error_code failed;
    for (std::filesystem::directory_iterator each(class_folder, failed), end;
         !failed && each != end; each.increment(failed)) {
        const std::string name = each->path().filename().string();
        constexpr std::size_t prefix = 6; // "hcamem"
        unsigned number = 0;
        if (!name.starts_with("hcamem") ||
            std::from_chars(name.data() + prefix, name.data() + name.size(), number).ec !=
                std::errc{}) {
            continue;
        }
        std::string ibdev = read_attribute(each->path().string() + "/ibdev");
        if (!ibdev.empty()) { // an HCA that is just going has none
            found.push_back({number, name, std::move(ibdev)});
        }
    }
    std::sort(found.begin(), found.end(),
              [](const entry& a, const entry& b) { return a.number < b.number; });
    return found;
}

int no_node(const char* ibdev, const std::vector<entry>& nodes) {
    std::error_code ignored;
    if (!std::filesystem::exists(class_folder, ignored)) {
        return fail(ENODEV, "the hcamem module is not loaded: modprobe hcamem");
    }
    if (nodes.empty()) {
        return fail(ENODEV, "the hcamem module is loaded, but there is no HCA: see `rdma link`");
    }
    std::string names;
    for (const entry& each : nodes) {
        names += (names.empty() ? "" : ", ") + each.ibdev;
    }
    return fail(ENODEV, "no HCA \"%s\" with an hcamem node; there are: %s", ibdev, names.c_str());
}

int cannot_open(const std::string& path, int error) {
    if (error == EACCES || error == EPERM) {
        return fail(EACCES,
                    "%s may not be opened for reading and writing: its mode decides "
                    "(a udev rule gives 0666, as for uverbs)",
                    path.c_str());
    }
    if (error == ENOENT || error == ENXIO) {
        return fail(ENODEV, "%s does not exist although the module has it in %s: is udev running?",
                    path.c_str(), class_folder);
    }
    return fail(error, "%s cannot be opened: %s", path.c_str(), strerrordesc_np(error));
}

} // namespace

std::string read_attribute(const std::string& path) {
    const file attribute(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 256> text{};
    const ssize_t length =
        attribute ? read(attribute.descriptor(), text.data(), text.size()) : ssize_t{-1};
    std::string value(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    while (!value.empty() && value.back() == '\n') {
        value.pop_back();
    }
    return value;
}

int open_node(const char* ibdev, node& opened) {
    const std::vector<entry> nodes = list_nodes();
    const auto wanted = std::find_if(nodes.begin(), nodes.end(), [&](const entry& each) {
        return ibdev == nullptr || each.ibdev == ibdev;
    });
    if (wanted == nodes.end()) {
        return no_node(ibdev, nodes);
    }
    opened.path = "/dev/infiniband/" + wanted->name;
    opened.ibdev = wanted->ibdev;
    opened.device = file(open(opened.path.c_str(), O_RDWR | O_CLOEXEC));
    if (!opened.device) {
        return cannot_open(opened.path, errno);
    }
    if (ioctl(opened.device.descriptor(), HCAMEM_IOC_INFO, &opened.info) != 0) {
        return fail(EPROTO, "%s does not answer HCAMEM_IOC_INFO (%s): not a node of hcamem?",
                    opened.path.c_str(), strerrordesc_np(errno));
    }
    if (opened.info.abi_version != HCAMEM_ABI_VERSION) {
        return fail(EPROTO, "%s speaks ABI version %u, this library %u: install matching versions",
                    opened.path.c_str(), opened.info.abi_version, HCAMEM_ABI_VERSION);
    }
    if (opened.info.gone != 0) {
        return fail(ENODEV, "the HCA of %s (%s) was removed", opened.path.c_str(),
                    opened.ibdev.c_str());
    }
    return 0;
}

} // namespace hcamem::core
