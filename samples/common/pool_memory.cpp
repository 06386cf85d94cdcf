// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "pool_memory.hpp"

#include "exit_codes.hpp"

#include <charconv>
#include <fstream>
#include <hcamem/binding.hpp>
#include <hcamem/buffer.hpp>

namespace samples {
namespace {

class pool_memory : public message_memory {
  public:
    pool_memory(const hca& device, int access)
        : pool_(open_pool(device)), binding_(translated_pool_call([&] {
              return pool_.attach(device.protection_domain(), access);
          })) {}

    message_buffer make_buffer(std::size_t bytes) override {
        return translated_pool_call([&]() -> message_buffer {
            buffers_.push_back(pool_.make_buffer(bytes));
            const hcamem::buffer& made = buffers_.back();
            const hcamem_key key = binding_.key(made.data());
            path_ = key.path;
            return {made.span(), key.lkey, key.rkey};
        });
    }

    [[nodiscard]] const char* registration() const override { return registration_name(path_); }

    [[nodiscard]] std::vector<address_range> ranges() const override { return mapped_nodes(); }

  private:
    // Destroyed from the last to the first: blocks, registration, memory.
    hcamem::pool pool_;
    hcamem::binding binding_;
    std::vector<hcamem::buffer> buffers_;
    std::uint32_t path_ = HCAMEM_PATH_NONE;
};

bool read_hex(std::string_view text, std::uint64_t& value) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return error == std::errc() && stop == text.data() + text.size();
}

} // namespace

hcamem::pool open_pool(const hca& device) {
    return translated_pool_call([&] {
        hcamem::options how;
        how.source = HCAMEM_DEVICE;
        how.hca = device.name().c_str();
        return hcamem::pool(how);
    });
}

const char* registration_name(std::uint32_t path) {
    switch (path) {
    case HCAMEM_PATH_DMABUF:
        return "dma_buf";
    case HCAMEM_PATH_USER_PAGES:
        return "user_pages";
    default:
        return "none";
    }
}

std::unique_ptr<message_memory> open_pool_memory(const hca& device, int access) {
    return std::make_unique<pool_memory>(device, access);
}

std::vector<address_range> mapped_nodes() {
    std::vector<address_range> result;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        // "begin-end permissions offset device inode path"
        if (line.find(" /dev/infiniband/hcamem") == std::string::npos) {
            continue;
        }
        const std::size_t dash = line.find('-');
        const std::size_t space = line.find(' ');
        address_range range{};
        if (dash < space && read_hex(std::string_view(line).substr(0, dash), range.begin) &&
            read_hex(std::string_view(line).substr(dash + 1, space - dash - 1), range.end)) {
            result.push_back(range);
        }
    }
    return result;
}

} // namespace samples
