// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Whatever the kernel allocates or copies on behalf of a call of the driver fails once: the call
// says so or does without, nothing stays behind, and the same call works right after.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "fail_nth.hpp"
#include "guest/importer/importer.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

constexpr int rw = PROT_READ | PROT_WRITE;

/// A large chunk, a middle one and single pages.
constexpr std::size_t huge_bytes = huge_size + 17 * page_size;
/// Few pages, each of which is an allocation.
constexpr std::size_t small_bytes = 5 * page_size;

/// Where the process has no page table yet, so that touching takes some.
void* empty_gib() {
    void* const room =
        mmap(nullptr, 2 * GiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(room != MAP_FAILED && munmap(room, 2 * GiB) == 0, "two GiB of addresses");
    const auto from = reinterpret_cast<std::uintptr_t>(room);
    return reinterpret_cast<void*>((from + GiB - 1) / GiB * GiB);
}

/// What a call needs and what it leaves, undone at the end with nothing made to fail.
struct Stage {
    std::string path; // of the node
    std::optional<Node> node;
    std::optional<Region> region;
    hcamem_create created{};
    UniqueFd dma_buf;
    void* mapped = MAP_FAILED;
    std::size_t mapped_bytes = 0;
    std::optional<Context> context;
    std::optional<Pd> pd;
    std::optional<Mr> mr; // kept, since its destructor allows no failure
    std::optional<Attachment> attachment;

    Stage() = default;
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    ~Stage() {
        if (mapped != MAP_FAILED) {
            munmap(mapped, mapped_bytes);
        }
    }

    int map(std::size_t bytes, int fd, std::uint64_t offset, void* at = nullptr) {
        const int flags = MAP_SHARED | (at != nullptr ? MAP_FIXED_NOREPLACE : 0);
        mapped = mmap(at, bytes, rw, flags, fd, static_cast<off_t>(offset));
        mapped_bytes = bytes;
        return mapped == MAP_FAILED ? errno : 0;
    }
};

/// One call under test. Both functions give 0 or an errno.
struct Case {
    std::string name;
    std::function<void(Stage&)> prepare;
    std::function<int(Stage&)> call;
};

void PrintTo(const Case& test, std::ostream* out) {
    *out << test.name;
}

int error_of(int result) {
    return result < 0 ? errno : 0;
}

void with_node(Stage& stage) {
    stage.node.emplace();
}

std::function<void(Stage&)> with_region(std::size_t bytes, RegionKind kind) {
    return [=](Stage& stage) {
        stage.node.emplace();
        stage.region.emplace(*stage.node, bytes, kind);
    };
}

std::function<void(Stage&)> with_touched_region(std::size_t bytes, RegionKind kind) {
    return [=](Stage& stage) {
        with_region(bytes, kind)(stage);
        fill(stage.region->bytes(), 1);
    };
}

std::function<void(Stage&)> with_dma_buf(std::size_t bytes, RegionKind kind) {
    return [=](Stage& stage) {
        with_region(bytes, kind)(stage);
        stage.dma_buf = stage.node->export_range(stage.region->data(), stage.region->size());
    };
}

int touch(std::span<unsigned char> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += page_size) {
        bytes[at] = 1;
    }
    return 0;
}

int create(Stage& stage, std::size_t bytes, RegionKind kind) {
    stage.created = create_request(bytes, kind);
    return stage.node->try_create(stage.created);
}

int fork_and_exit() {
    const pid_t child = fork();
    if (child < 0) {
        return errno;
    }
    if (child == 0) {
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    return status == 0 ? 0 : ECHILD;
}

int read_fdinfo(const Stage& stage) {
    std::array<char, 512> content{};
    const UniqueFd file(open(("/proc/self/fdinfo/" + std::to_string(stage.node->fd())).c_str(),
                             O_RDONLY | O_CLOEXEC));
    return file.valid() ? error_of(static_cast<int>(read(file.get(), content.data(), 512))) : errno;
}

void add_cases_of(std::vector<Case>& cases, const std::string& name, std::size_t bytes,
                  hcamem_mapping mapping) {
    const RegionKind zero{mapping, HCAMEM_FORK_POLICY_ZERO};
    const RegionKind share{mapping, HCAMEM_FORK_POLICY_SHARE};
    const auto add = [&](const char* call, std::function<void(Stage&)> prepare,
                         std::function<int(Stage&)> body) {
        cases.push_back({name + "_" + call, std::move(prepare), std::move(body)});
    };

    add("create", with_node, [=](Stage& stage) { return create(stage, bytes, zero); });
    add(
        "mmap",
        [=](Stage& stage) {
            with_node(stage);
            ASSERT_EQ(create(stage, bytes, zero), 0);
        },
        [](Stage& stage) {
            return stage.map(stage.created.size, stage.node->fd(), stage.created.offset);
        });
    const auto touch_mapped = [](Stage& stage) {
        return touch({static_cast<unsigned char*>(stage.mapped), stage.mapped_bytes});
    };
    add(
        "touch",
        [=](Stage& stage) {
            with_node(stage);
            ASSERT_EQ(create(stage, bytes, zero), 0);
            ASSERT_EQ(stage.map(bytes, stage.node->fd(), stage.created.offset, empty_gib()), 0);
        },
        touch_mapped);
    add("fork", with_touched_region(bytes, zero), [](Stage&) { return fork_and_exit(); });
    add("fork_of_shared", with_touched_region(bytes, share),
        [](Stage&) { return fork_and_exit(); });
    add("munmap_of_a_part", with_touched_region(bytes, zero), [](Stage& stage) {
        return error_of(munmap(stage.region->data() + 2 * page_size, page_size));
    });
    add("mprotect_of_a_part", with_touched_region(bytes, zero), [](Stage& stage) {
        return error_of(mprotect(stage.region->data() + 2 * page_size, page_size, PROT_READ));
    });
    add("madvise_of_a_part", with_touched_region(bytes, zero), [](Stage& stage) {
        return error_of(madvise(stage.region->data() + 2 * page_size, page_size, MADV_DONTFORK));
    });
    add("mremap_of_a_part", with_touched_region(bytes, zero), [](Stage& stage) {
        void* room = mmap(nullptr, page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED) {
            return errno;
        }
        void* moved = mremap(stage.region->data() + 2 * page_size, page_size, page_size,
                             MREMAP_MAYMOVE | MREMAP_FIXED, room);
        stage.mapped = room;
        stage.mapped_bytes = page_size;
        return moved == MAP_FAILED ? errno : 0;
    });
    add("export", with_region(bytes, zero), [](Stage& stage) {
        hcamem_export request{};
        request.addr = reinterpret_cast<std::uintptr_t>(stage.region->data());
        request.length = stage.region->size();
        const int error = stage.node->try_export(request);
        if (error == 0) {
            stage.dma_buf = UniqueFd(request.fd);
        }
        return error;
    });
    add("dma_buf_mmap", with_dma_buf(bytes, zero),
        [=](Stage& stage) { return stage.map(bytes, stage.dma_buf.get(), 0); });
    add(
        "dma_buf_touch",
        [=](Stage& stage) {
            with_dma_buf(bytes, zero)(stage);
            ASSERT_EQ(stage.map(bytes, stage.dma_buf.get(), 0, empty_gib()), 0);
        },
        touch_mapped);
    add(
        "dma_buf_attach_and_map",
        [=](Stage& stage) {
            with_dma_buf(bytes, zero)(stage);
            stage.attachment.emplace();
        },
        [](Stage& stage) {
            const int error = stage.attachment->attach(stage.dma_buf.get(), IMPORTER_STATIC);
            return error != 0 ? error : stage.attachment->map();
        });
    add(
        "dma_buf_vmap",
        [=](Stage& stage) {
            with_dma_buf(bytes, zero)(stage);
            stage.attachment.emplace();
            ASSERT_EQ(stage.attachment->attach(stage.dma_buf.get(), IMPORTER_STATIC), 0);
            ASSERT_EQ(stage.attachment->map(), 0);
        },
        [](Stage& stage) { return stage.attachment->ask_vmap(); });
    add(
        "register",
        [=](Stage& stage) {
            with_dma_buf(bytes, zero)(stage);
            stage.context.emplace();
            stage.pd.emplace(*stage.context);
        },
        [](Stage& stage) {
            try {
                stage.mr.emplace(Mr::of_region(*stage.pd, *stage.node, stage.region->data(),
                                               stage.region->size()));
                return 0;
            } catch (const std::system_error& error) {
                return error.code().value();
            }
        });
}

std::vector<Case> all_cases() {
    std::vector<Case> cases{
        {"open", [](Stage& stage) { stage.path = Node::path_of("rxe0"); },
         [](Stage& stage) {
             UniqueFd file(open(stage.path.c_str(), O_RDWR | O_CLOEXEC));
             const int error = error_of(file.get());
             if (error == 0) {
                 stage.node.emplace(std::move(file));
             }
             return error;
         }},
        {"info", with_node,
         [](Stage& stage) {
             hcamem_info info{};
             return stage.node->try_info(info);
         }},
        {"fdinfo", with_node, [](Stage& stage) { return read_fdinfo(stage); }},
        {"bare_mmap", with_node,
         [](Stage& stage) { return stage.map(small_bytes, stage.node->fd(), 0); }},
        {"bare_mmap_touched", with_node,
         [](Stage& stage) {
             if (const int error = stage.map(small_bytes, stage.node->fd(), 0)) {
                 return error;
             }
             return touch({static_cast<unsigned char*>(stage.mapped), small_bytes});
         }},
        {"regions_in_debugfs", with_region(small_bytes, {}),
         [](Stage&) {
             try {
                 return read_text("/sys/kernel/debug/hcamem/regions").empty() ? ENODATA : 0;
             } catch (const std::system_error& error) {
                 return error.code().value();
             }
         }},
    };
    add_cases_of(cases, "huge", huge_bytes, HCAMEM_MAPPING_HUGE);
    add_cases_of(cases, "pages", small_bytes, HCAMEM_MAPPING_PAGES);
    return cases;
}

class EachAllocation : public testing::TestWithParam<Case> {
  protected:
    static void SetUpTestSuite() {
        fail_nth.emplace();
        importer.emplace();
    }
    static void TearDownTestSuite() {
        importer.reset();
        fail_nth.reset();
    }

    /// 0 or the errno; whether the n-th allocation of the call failed, with n 0 for none.
    struct Attempt {
        int error;
        bool failed;
    };
    static Attempt attempt(unsigned n) {
        Stage stage;
        GetParam().prepare(stage);
        if (HasFatalFailure()) {
            return {-1, false};
        }
        fail_nth->arm(n);
        const int error = GetParam().call(stage);
        return {error, n != 0 && fail_nth->disarm()};
    }

    static std::optional<sanitize::FailNth> fail_nth;
    static std::optional<Importer> importer;
};

std::optional<sanitize::FailNth> EachAllocation::fail_nth;
std::optional<Importer> EachAllocation::importer;

INSTANTIATE_TEST_SUITE_P(, EachAllocation, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

} // namespace

TEST_P(EachAllocation, fails_once_and_nothing_stays_behind) {
    constexpr unsigned endless = 20000;
    const Node watcher;
    ASSERT_EQ(attempt(0).error, 0) << "with nothing made to fail";
    ASSERT_TRUE(eventually([&] { return watcher.total() == 0; }));
    const std::size_t descriptors = open_descriptors();

    unsigned refused = 0;
    unsigned n = 1;
    for (; n < endless; ++n) {
        const Attempt attempted = attempt(n);
        if (!attempted.failed) {
            EXPECT_EQ(attempted.error, 0) << "nothing failed, but the call did";
            break;
        }
        refused += attempted.error != 0 ? 1 : 0;
        const std::set<int> documented{0, ENOMEM, EFAULT, EAGAIN, EIO, ENOSPC};
        EXPECT_TRUE(documented.contains(attempted.error))
            << attempted.error << ", allocation " << n;
        EXPECT_TRUE(eventually([&] { return watcher.total() == 0; }))
            << watcher.total() << " bytes left after allocation " << n;
        EXPECT_EQ(open_descriptors(), descriptors) << "after allocation " << n;
        EXPECT_EQ(attempt(0).error, 0) << "right after allocation " << n << " failed";
    }
    ASSERT_LT(n, endless);
    std::printf("%u allocations and copies failed, %u times the call with them\n", n - 1, refused);
    EXPECT_GT(n, 1U) << "the call allocates and copies nothing?";
}
