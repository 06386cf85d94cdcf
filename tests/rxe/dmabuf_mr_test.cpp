// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Soft-RoCE with dma-buf import: its memory regions do all that ordinary ones do.
#include <gtest/gtest.h>
#include <rdma/ib_user_verbs.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <system_error>
#include <vector>

#include "exporter.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/rdma.hpp"

namespace {

using namespace rxe;
using namespace support;

constexpr std::size_t buffer_size = 8 * MiB;

/// An address as work requests name it.
const void* at(std::uint64_t iova) {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(iova));
}

std::uint64_t number(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
}

/// Bytes that differ from place to place, with no period that a page could hide.
void fill(std::span<unsigned char> bytes, unsigned seed) {
    std::uint32_t state = seed;
    for (unsigned char& byte : bytes) {
        state = state * 1664525 + 1013904223;
        byte = static_cast<unsigned char>(state >> 24);
    }
}

class DmaBufMr : public testing::TestWithParam<ExporterKind> {
  protected:
    DmaBufMr() { fill(exporter_.memory(), 1); }

    void SetUp() override {
        ASSERT_TRUE(eventually([] { return dma_bufs() == 1; }))
            << "of those before something is left";
    }

    Mr register_range(std::uint64_t offset, std::size_t length, std::uint64_t iova,
                      int access = remote_access) const {
        return Mr::dma_buf(pd_, exporter_.fd(), offset, length, iova, RDMA_DRIVER_RXE, access);
    }

    /// All of the buffer, under its own addresses.
    Mr register_all(int access = remote_access) const {
        return register_range(0, buffer_size, number(exporter_.memory().data()), access);
    }

    std::span<unsigned char> memory() const { return exporter_.memory(); }

    Exporter exporter_{GetParam(), buffer_size};
    const Context context_;
    const Pd pd_{context_};
    const Loopback pair_{context_, pd_};
};

INSTANTIATE_TEST_SUITE_P(From, DmaBufMr, testing::ValuesIn(exporters()),
                         testing::PrintToStringParamName());

TEST(Exporters, are_all_there_on_a_kernel_that_has_them) {
    EXPECT_EQ(exporters().size(), kernel() == "6.1" ? 1U : 3U);
}

TEST_P(DmaBufMr, write_and_read_at_odd_addresses_move_just_those_bytes) {
    const Mr mr = register_all();
    std::vector<unsigned char> expected(memory().begin(), memory().end());
    struct Move {
        std::size_t from, to, length;
    };
    for (const auto& [from, to, length] :
         {Move{3 * page_size + 5, 2 * MiB + 77, 100'000}, Move{0, buffer_size - 1, 1},
          Move{5 * MiB - 3, 1 * MiB - 1, 1 * MiB + 2}}) {
        ASSERT_EQ(pair_.write({&memory()[from], length, &mr}, {&memory()[to], length, &mr}),
                  IBV_WC_SUCCESS);
        std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(from), length,
                    expected.begin() + static_cast<std::ptrdiff_t>(to));
        ASSERT_TRUE(std::ranges::equal(memory(), expected));

        ASSERT_EQ(pair_.read({&memory()[from], length, &mr}, {&memory()[to / 2], length, &mr}),
                  IBV_WC_SUCCESS);
        std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(to / 2), length,
                    expected.begin() + static_cast<std::ptrdiff_t>(from));
        ASSERT_TRUE(std::ranges::equal(memory(), expected));
    }
}

TEST_P(DmaBufMr, send_and_receive) {
    const Mr mr = register_all();
    const std::size_t length = 70'001;
    pair_.post_receive({&memory()[4 * MiB + 1], length, &mr});
    ASSERT_EQ(pair_.send({&memory()[page_size - 1], length, &mr}), IBV_WC_SUCCESS);
    EXPECT_TRUE(std::ranges::equal(memory().subspan(page_size - 1, length),
                                   memory().subspan(4 * MiB + 1, length)));
}

// Offset and iova need only be equal modulo the page size.
TEST_P(DmaBufMr, part_of_the_buffer_under_any_iova) {
    const std::uint64_t offset = 5 * page_size + 100;
    const std::size_t length = 3 * MiB + 11;
    const std::uint64_t iova = (1ULL << 40) + 100;
    const Mr part = register_range(offset, length, iova);
    std::vector<unsigned char> message(length);
    fill(message, 2);
    const Mr source = Mr::user_pages(pd_, message.data(), message.size());
    std::vector<unsigned char> expected(memory().begin(), memory().end());

    ASSERT_EQ(pair_.write({message.data(), length, &source}, {at(iova), length, &part}),
              IBV_WC_SUCCESS);
    std::ranges::copy(message, expected.begin() + offset);
    EXPECT_TRUE(std::ranges::equal(memory(), expected));
}

TEST_P(DmaBufMr, refuses_what_is_outside) {
    const std::uint64_t iova = 1ULL << 40;
    const Mr part = register_range(page_size, page_size, iova);
    const Mr all = register_all();
    const std::vector<unsigned char> before(memory().begin(), memory().end());
    for (const std::uint64_t outside : {iova - 1, iova + 1, iova + page_size}) {
        const Loopback pair(context_, pd_);
        EXPECT_EQ(pair.write({memory().data(), page_size, &all}, {at(outside), page_size, &part}),
                  IBV_WC_REM_ACCESS_ERR);
    }
    EXPECT_TRUE(std::ranges::equal(memory(), before));
}

TEST_P(DmaBufMr, access_flags_are_kept) {
    const Mr all = register_all();
    const Mr read_only = register_all(IBV_ACCESS_REMOTE_READ);
    const std::vector<unsigned char> before(memory().begin(), memory().end());
    const Place mine(memory().data(), 8, &all);
    const Place theirs(&memory()[MiB], 8, &read_only);
    EXPECT_EQ(pair_.read(mine, theirs), IBV_WC_SUCCESS);
    EXPECT_TRUE(std::ranges::equal(memory().first(8), memory().subspan(MiB, 8)));
    EXPECT_EQ(pair_.write(mine, theirs), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(Loopback(context_, pd_).fetch_add(mine, theirs, 1), IBV_WC_REM_ACCESS_ERR);
    EXPECT_TRUE(std::ranges::equal(memory().subspan(MiB), std::span(before).subspan(MiB)));
}

TEST_P(DmaBufMr, atomics) {
    const Mr mr = register_all();
    auto* old = reinterpret_cast<std::uint64_t*>(&memory()[0]);
    auto* counter = reinterpret_cast<std::uint64_t*>(&memory()[3 * page_size - 8]);
    const Place result(old, 8, &mr);
    const Place target(counter, 8, &mr);
    *counter = 40;
    EXPECT_EQ(pair_.fetch_add(result, target, 2), IBV_WC_SUCCESS);
    EXPECT_EQ(*old, 40U);
    EXPECT_EQ(*counter, 42U);
    EXPECT_EQ(pair_.compare_swap(result, target, 42, 7), IBV_WC_SUCCESS);
    EXPECT_EQ(*old, 42U);
    EXPECT_EQ(*counter, 7U);
    EXPECT_EQ(pair_.compare_swap(result, target, 1, 2), IBV_WC_SUCCESS);
    EXPECT_EQ(*old, 7U);
    EXPECT_EQ(*counter, 7U);
}

TEST_P(DmaBufMr, keeps_the_memory_until_it_is_deregistered) {
    const std::size_t others = dma_bufs() - 1;
    const std::uint64_t iova = number(memory().data());
    std::vector<unsigned char> expected(memory().begin(), memory().end());
    std::vector<unsigned char> message(buffer_size);
    const Mr local = Mr::user_pages(pd_, message.data(), message.size());
    Mr first = register_all();
    Mr second = register_all();
    exporter_.drop();
    first.reset();
    EXPECT_EQ(dma_bufs(), others + 1);
    ASSERT_EQ(pair_.read({message.data(), buffer_size, &local}, {at(iova), buffer_size, &second}),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(message == expected);
    second.reset();
    EXPECT_TRUE(eventually([&] { return dma_bufs() == others; }));
}

TEST_P(DmaBufMr, is_gone_with_its_process) {
    const std::size_t before = dma_bufs();
    const pid_t child = must(fork(), "fork");
    if (child == 0) {
        const Context context;
        const Pd pd(context);
        const Exporter exporter(GetParam(), buffer_size);
        const Mr mr = Mr::dma_buf(pd, exporter.fd(), 0, buffer_size, 0, RDMA_DRIVER_RXE);
        raise(SIGKILL);
    }
    int status = 0;
    must(waitpid(child, &status, 0), "waitpid");
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_TRUE(eventually([&] { return dma_bufs() == before; }));
}

TEST_P(DmaBufMr, bad_requests_get_their_errno_and_leave_nothing) {
    const UniqueFd no_dma_buf(must(dup(0), "dup"));
    struct Request {
        int fd;
        std::uint64_t offset, length, iova;
        int error;
    };
    const std::uint64_t top = ~0ULL - page_size + 1;
    for (const auto& [fd, offset, length, iova, error] : {
             Request{-1, 0, page_size, 0, EBADF},
             Request{no_dma_buf.get(), 0, page_size, 0, EINVAL},
             Request{exporter_.fd(), 0, 0, 0, EINVAL},
             Request{exporter_.fd(), 0, buffer_size + 1, 0, EINVAL},
             Request{exporter_.fd(), buffer_size, 1, 0, EINVAL},
             Request{exporter_.fd(), top, 2 * page_size, 0, EINVAL},
             Request{exporter_.fd(), 8, page_size, 16, EINVAL},
         }) {
        try {
            const Mr mr = Mr::dma_buf(pd_, fd, offset, length, iova, RDMA_DRIVER_RXE);
            ADD_FAILURE() << "registered " << length << " bytes at " << offset;
        } catch (const std::system_error& refusal) {
            EXPECT_EQ(refusal.code().value(), error) << length << " bytes at " << offset;
        }
    }
    const std::size_t others = dma_bufs() - 1;
    exporter_.drop();
    EXPECT_TRUE(eventually([&] { return dma_bufs() == others; }));
}

TEST_P(DmaBufMr, comes_and_goes_many_times) {
    const std::uint64_t before = meminfo("MemAvailable");
    for (int i = 0; i < 1000; ++i) {
        const Mr mr = register_all();
    }
    // One of them leaked each time would be 32 KiB of page_info each, the memory itself aside.
    EXPECT_TRUE(eventually([&] { return before < meminfo("MemAvailable") + 1000 * 32 * KiB / 2; }));
}

/// Changes the access of an MR by the kernel's own call, which providers lack. Gives 0 or
/// the errno.
int reregister_access(ibv_context* context, std::uint32_t mr_handle, std::uint32_t pd_handle) {
    ib_uverbs_rereg_mr_resp response{};
    ib_uverbs_rereg_mr request{};
    request.response = number(&response);
    request.mr_handle = mr_handle;
    request.flags = IBV_REREG_MR_CHANGE_ACCESS;
    request.pd_handle = pd_handle;
    request.access_flags = IBV_ACCESS_LOCAL_WRITE;
    std::array<unsigned char, sizeof(ib_uverbs_cmd_hdr) + sizeof request> command{};
    ib_uverbs_cmd_hdr header{};
    header.command = IB_USER_VERBS_CMD_REREG_MR;
    header.in_words = command.size() / 4;
    header.out_words = sizeof response / 4;
    std::memcpy(command.data(), &header, sizeof header);
    std::memcpy(command.data() + sizeof header, &request, sizeof request);
    return write(context->cmd_fd, command.data(), command.size()) < 0 ? errno : 0;
}

TEST_P(DmaBufMr, is_not_reregistered) {
    std::vector<unsigned char> bytes(page_size);
    ibv_mr* ordinary = ibv_reg_mr(pd_.get(), bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(ordinary, nullptr);
    const std::uint32_t probe = ordinary->handle;
    // The soft-RoCE of 6.1 has no such call for any MR.
    EXPECT_EQ(reregister_access(context_.get(), probe, pd_.get()->handle),
              kernel() == "6.1" ? EOPNOTSUPP : 0);
    ASSERT_EQ(ibv_dereg_mr(ordinary), 0);

    // The kernel gives the lowest free handle: this MR gets the one just given back.
    const Mr mr = register_all();
    EXPECT_EQ(reregister_access(context_.get(), probe, pd_.get()->handle), EOPNOTSUPP);
}

} // namespace
