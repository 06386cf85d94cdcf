// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Obtaining regions and mapping them.
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "operations.hpp"

namespace fuzz {

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t most_areas = 40;
constexpr std::size_t most_created = 8; // not yet mapped, per open file

std::size_t pages_of(std::uint64_t bytes) {
    return (bytes + page_bytes - 1) / page_bytes;
}

std::uint64_t some_size(Random& random) {
    switch (random.below(8)) {
    case 0:
        return random.between(1, page_bytes);
    case 1:
        return 2 * MiB * random.between(1, 3);
    case 2:
        return 2 * MiB * random.between(1, 2) + random.between(1, 64 * KiB);
    case 3:
        return 4 * MiB + page_bytes * random.below(3);
    default:
        return random.between(1, 64 * page_bytes);
    }
}

hcamem_create some_request(Random& random) {
    hcamem_create request{};
    request.size = some_size(random);
    request.mapping = random.one_of({HCAMEM_MAPPING_HUGE, HCAMEM_MAPPING_PAGES});
    request.fork = random.one_of({HCAMEM_FORK_POLICY_ZERO, HCAMEM_FORK_POLICY_ZERO,
                                  HCAMEM_FORK_POLICY_DONTCOPY, HCAMEM_FORK_POLICY_SHARE});
    request.numa_node = random.one_in(4) ? 0 : -1;
    return request;
}

/// Makes room for one more area.
void limit_areas(Process& process, Random& random) {
    if (process.areas.size() >= most_areas) {
        const Area area = process.areas.pick(random);
        process.drop({area.start, area.pages});
    }
}

void release_oldest(Process& process, OpenFile& file, int fd) {
    // Mapping it and letting it go; this may be refused, and then it goes with the file.
    const Created created = file.created.front();
    file.created.erase(file.created.begin());
    process.note("mmap to release", {created.offset, created.pages});
    void* at = mmap(nullptr, created.pages * page_bytes, PROT_READ, MAP_SHARED, fd,
                    static_cast<off_t>(created.offset));
    if (at != MAP_FAILED) {
        munmap(at, created.pages * page_bytes);
    }
}

struct Placement {
    std::uintptr_t hint = 0;
    int flags = 0;
};

Placement some_placement(Process& process, std::size_t pages, Random& random) {
    switch (random.below(4)) {
    case 0:
        return {process.arena.somewhere(pages, random), MAP_FIXED};
    case 1:
        return {process.arena.somewhere(pages, random), 0}; // taken: a hint only
    default:
        return {};
    }
}

struct Mapping {
    Placement placement;
    int prot;
    int flags;
};

Mapping some_mapping(Process& process, std::size_t pages, Random& random) {
    Mapping mapping{some_placement(process, pages, random), 0, 0};
    mapping.prot = random.one_of({PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE,
                                  PROT_READ | PROT_WRITE, PROT_READ, PROT_WRITE, PROT_NONE});
    mapping.flags = random.one_of({MAP_SHARED, MAP_SHARED, MAP_SHARED_VALIDATE}) |
                    random.one_of({0, 0, 0, MAP_POPULATE, MAP_LOCKED, MAP_NORESERVE});
    return mapping;
}

/// mmap() with the address space kept whole. Returns the address, or 0 with errno set.
std::uintptr_t map(Process& process, const Mapping& mapping, std::size_t length, int fd,
                   std::uint64_t offset) {
    const Range target{mapping.placement.hint, pages_of(length)};
    const bool fixed = mapping.placement.flags == MAP_FIXED;
    process.note("mmap", {target.start, length,
                          static_cast<std::uint64_t>(mapping.prot) << 32 |
                              static_cast<unsigned>(mapping.flags | mapping.placement.flags),
                          offset});
    void* at = mmap(pointer(target.start), length, mapping.prot,
                    mapping.flags | mapping.placement.flags, fd, static_cast<off_t>(offset));
    const int error = errno;
    if (fixed) {
        // What was there is gone, even if mmap() failed in the end.
        process.areas.remove(target);
        if (at == MAP_FAILED) {
            process.arena.reserve(target);
        }
    }
    errno = error;
    return at == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(at);
}

void add_area(Process& process, std::uintptr_t start, std::size_t pages, int prot,
              hcamem_fork fork) {
    Area area;
    area.start = start;
    area.pages = pages;
    area.prot = prot;
    area.memory = std::make_shared<Memory>(process.fresh_key(), pages, Memory::Kind::device, fork);
    area.dontfork = fork == HCAMEM_FORK_POLICY_DONTCOPY;
    process.areas.add(area);
}

} // namespace

Outcome create_region(Process& process, Random& random) {
    Descriptor* node = process.writable_node(random);
    if (node == nullptr) {
        return Outcome::idle;
    }
    if (node->file->created.size() >= most_created) {
        release_oldest(process, *node->file, node->fd.get());
    }
    hcamem_create request = some_request(random);
    const std::uint64_t asked = request.size;
    process.note("CREATE", {asked, request.mapping, request.fork});
    if (ioctl(node->fd.get(), HCAMEM_IOC_CREATE, &request) != 0) {
        process.allow("CREATE", errno, {EAGAIN, EDQUOT, ENOMEM});
        return Outcome::refused;
    }
    if (request.size != pages_of(asked) * page_bytes) {
        process.wrong(text("CREATE of ", asked, " bytes says it is ", request.size));
    }
    node->file->created.push_back(
        {request.offset, pages_of(asked), static_cast<hcamem_fork>(request.fork)});
    return Outcome::done;
}

Outcome create_badly(Process& process, Random& random) {
    if (process.nodes.empty()) {
        return Outcome::idle;
    }
    const Descriptor& node = process.nodes[random.below(process.nodes.size())];
    hcamem_create request = some_request(random);
    switch (random.below(6)) {
    case 0:
        request.mapping =
            static_cast<std::uint32_t>(random.one_of<std::uint64_t>({0, 3, random.next()}));
        break;
    case 1:
        request.fork = static_cast<std::uint32_t>(random.between(3, ~std::uint32_t{0}));
        break;
    case 2:
        request.numa_node = static_cast<std::int32_t>(random.one_of({-2, 1 << 20, 1023}));
        break;
    case 3:
        request.flags = static_cast<std::uint32_t>(random.next() | 1);
        break;
    case 4:
        request.offset = random.next() | 1;
        break;
    default:
        request.size = random.one_of<std::uint64_t>(
            {0, process.setting().memlock + 1, std::uint64_t{1} << 40, std::uint64_t{1} << 63,
             ~std::uint64_t{0}, ~std::uint64_t{0} - page_bytes + 2});
        break;
    }
    process.note("CREATE badly", {request.size, request.mapping, request.fork, request.offset});
    if (ioctl(node.fd.get(), HCAMEM_IOC_CREATE, &request) == 0) {
        process.wrong(text("CREATE granted size ", request.size, " mapping ", request.mapping,
                           " fork ", request.fork, " node ", request.numa_node));
    }
    process.allow("CREATE badly", errno, {EINVAL, EBADF, EDQUOT, EAGAIN, ENOMEM});
    return Outcome::done;
}

Outcome map_region(Process& process, Random& random) {
    std::vector<Descriptor*> candidates;
    for (Descriptor& node : process.nodes) {
        if (!node.file->created.empty()) {
            candidates.push_back(&node);
        }
    }
    if (candidates.empty()) {
        return Outcome::idle;
    }
    limit_areas(process, random);
    Descriptor& node = *candidates[random.below(candidates.size())];
    std::vector<Created>& all = node.file->created;
    const auto chosen = all.begin() + static_cast<std::ptrdiff_t>(random.below(all.size()));
    const Created created = *chosen;
    // Whatever comes of it, the offset may mean nothing afterwards.
    all.erase(chosen);
    const Mapping mapping = some_mapping(process, created.pages, random);
    const std::uintptr_t at =
        map(process, mapping, created.pages * page_bytes, node.fd.get(), created.offset);
    if (at == 0) {
        process.allow("mmap", errno, {ENOMEM, EAGAIN, EPERM});
        return Outcome::refused;
    }
    add_area(process, at, created.pages, mapping.prot, created.fork);
    return Outcome::done;
}

Outcome map_bare(Process& process, Random& random) {
    if (process.nodes.empty()) {
        return Outcome::idle;
    }
    limit_areas(process, random);
    const Descriptor& node = process.nodes[random.below(process.nodes.size())];
    const bool usable = node.file->readable && node.file->writable;
    const std::size_t length = some_size(random);
    const Mapping mapping = some_mapping(process, pages_of(length), random);
    const std::uintptr_t at = map(process, mapping, length, node.fd.get(), 0);
    if (at == 0) {
        process.allow("bare mmap", errno,
                      {EAGAIN, EDQUOT, ENOMEM, EPERM, usable ? ENOMEM : EACCES});
        return Outcome::refused;
    }
    if (!usable) {
        process.wrong("a node that is not open for reading and writing was mapped");
    }
    add_area(process, at, pages_of(length), mapping.prot, HCAMEM_FORK_POLICY_ZERO);
    return Outcome::done;
}

Outcome map_badly(Process& process, Random& random) {
    if (process.nodes.empty()) {
        return Outcome::idle;
    }
    const Descriptor& node = process.nodes[random.below(process.nodes.size())];
    const std::vector<Created>& created = node.file->created;
    constexpr int rw = PROT_READ | PROT_WRITE;
    constexpr std::uint64_t nobodys = std::uint64_t{1} << 43; // an id that is never reached
    std::size_t length = page_bytes * random.between(1, 16);
    std::uint64_t offset = created.empty() ? 0 : created[random.below(created.size())].offset;
    int prot = rw;
    int flags = MAP_SHARED;
    std::uintptr_t hint = 0;
    switch (random.below(10)) {
    case 0:
        flags = MAP_PRIVATE;
        break;
    case 1:
        prot |= PROT_EXEC;
        break;
    case 2:
        offset = nobodys + random.below(1024) * 2 * MiB;
        break;
    case 3:
        offset += page_bytes * random.between(1, 511);
        break;
    case 4:
        offset = random.next() | 1;
        break;
    case 5:
        length = 0;
        break;
    case 6:
        length = random.one_of<std::size_t>({std::size_t{1} << 63, ~std::size_t{0},
                                             std::size_t{1} << 46, HCAMEM_BARE_MMAP_MAX + 1});
        break;
    case 7:
        flags |= random.one_of({MAP_GROWSDOWN, MAP_HUGETLB});
        break;
    case 8:
        flags = MAP_SHARED_VALIDATE | MAP_SYNC;
        break;
    default:
        flags |= MAP_FIXED;
        hint = process.arena.somewhere(16, random) + random.between(1, page_bytes - 1);
        break;
    }
    process.note("mmap badly", {hint, length, static_cast<std::uint64_t>(flags), offset});
    if (mmap(pointer(hint), length, prot, flags, node.fd.get(), static_cast<off_t>(offset)) !=
        MAP_FAILED) {
        process.wrong(text("mmap() of ", length, " bytes at offset ", hex(offset), " with prot ",
                           prot, " and flags ", hex(static_cast<unsigned>(flags)), " worked"));
    }
    process.allow("mmap badly", errno,
                  {EINVAL, EPERM, EACCES, ENXIO, ENOMEM, EFBIG, EOPNOTSUPP, EOVERFLOW, EAGAIN});
    return Outcome::done;
}

} // namespace fuzz
