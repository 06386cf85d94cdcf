// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sizes, descriptors and messages that make no sense are refused, each with an errno of its
// own, and leave nothing behind.
#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/child.hpp"
#include "support/heaps.hpp"
#include "support/mapped.hpp"

namespace {

using namespace unit;
using hcamem::shared_heap;

constexpr std::size_t control_bytes = 4096;
constexpr std::uint64_t layout = hcamem::detail::shared_layout;

int create(std::uint64_t bytes, std::uint32_t flags = 0) {
    const hcamem::options options = heap_options();
    hcamem_shared* made = nullptr;
    const int result = hcamem_shared_create(&options, bytes, flags, 0, &made);
    if (result == 0) {
        EXPECT_EQ(hcamem_shared_close(made), 0);
    }
    return result;
}

/// In a child, which gives up what it inherited: nothing is joined twice then.
int join_in_child(const shared_heap& heap, int control, int memory, std::uint64_t wanted = layout) {
    return -run_in_child(birth::fork, [&] {
        hcamem_shared_close(heap.c_handle());
        hcamem_shared* made = nullptr;
        const std::size_t descriptors = open_descriptors();
        const int result = hcamem_shared_join(control, memory, wanted, &made);
        if (result != 0 &&
            (std::strlen(hcamem_last_message()) < 20 || open_descriptors() != descriptors)) {
            return 125;
        }
        return -result;
    });
}

int memfd(std::size_t bytes, int seals) {
    const int made = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_EQ(ftruncate(made, static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(fcntl(made, F_ADD_SEALS, seals), 0);
    return made;
}

constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;

/// A heap, and copies of its descriptors that outlive it.
class SharedHeapInput : public testing::Test {
  protected:
    SharedHeapInput() {
        const auto [control, memory] = heap.descriptors();
        control_ = dup(control);
        memory_ = dup(memory);
    }
    ~SharedHeapInput() override {
        close(control_);
        close(memory_);
    }

    /// A control segment with the same bytes but some.
    [[nodiscard]] int forged(off_t offset, const void* bytes, std::size_t count, int seals) const {
        char copy[control_bytes];
        EXPECT_EQ(pread(control_, copy, sizeof copy, 0), ssize_t{control_bytes});
        std::memcpy(copy + offset, bytes, count);
        const int made = memfd(control_bytes, 0);
        EXPECT_EQ(pwrite(made, copy, sizeof copy, 0), ssize_t{control_bytes});
        EXPECT_EQ(fcntl(made, F_ADD_SEALS, seals), 0);
        return made;
    }

    shared_heap heap = make_heap();
    int control_ = -1;
    int memory_ = -1;
};

TEST(SharedHeapSizes, are_rounded_up_or_refused) {
    EXPECT_EQ(create(1), 0);
    EXPECT_EQ(create(2 * MiB + 1), 0);
    EXPECT_EQ(make_heap(2 * MiB + 1).size(), 4 * MiB);
    EXPECT_EQ(create(0), -EINVAL);
    EXPECT_EQ(create(std::numeric_limits<std::uint64_t>::max()), -EINVAL);
    EXPECT_EQ(create(std::uint64_t{33} << 40), -EINVAL);
    EXPECT_EQ(create(2 * MiB, 0x80), -EINVAL);
    const std::size_t descriptors = open_descriptors();
    const int result = create(std::uint64_t{32} << 40);
    EXPECT_TRUE(result == -ENOMEM || result == -EDQUOT) << result;
    EXPECT_GE(std::strlen(hcamem_last_message()), 20U);
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(hcamem_shared_create(nullptr, 1, 0, 0, nullptr), -EINVAL);
    EXPECT_THROW(make_heap(std::size_t{32} << 40), hcamem::exhausted);
}

TEST(SharedHeapSizes, options_are_checked) {
    hcamem::options options = heap_options();
    options.mapping = 77;
    EXPECT_EQ(error_of([&] { shared_heap(1, options); }), EINVAL);
    options = heap_options();
    options.source = HCAMEM_DEVICE;
    options.hca = "no_such_hca";
    EXPECT_EQ(error_of([&] { shared_heap(1, options); }), ENODEV);
    options = heap_options();
    options.flags |= HCAMEM_OPT_PREFAULT;
    EXPECT_EQ(error_of([&] { shared_heap(1, options); }), 0);
}

TEST_F(SharedHeapInput, the_right_descriptors_do) {
    EXPECT_EQ(join_in_child(heap, control_, memory_), 0);
}

TEST_F(SharedHeapInput, what_is_no_control_segment_is_refused) {
    EXPECT_EQ(join_in_child(heap, -1, memory_), -EBADMSG);
    EXPECT_EQ(join_in_child(heap, 12345, memory_), -EBADMSG);
    EXPECT_EQ(join_in_child(heap, memory_, control_), -EBADMSG) << "swapped";
    const int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
    EXPECT_EQ(join_in_child(heap, zero, memory_), -EBADMSG);
    close(zero);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, 2 * control_bytes}) {
        const int other = memfd(bytes, size_seals);
        EXPECT_EQ(join_in_child(heap, other, memory_), -EBADMSG) << bytes;
        close(other);
    }
    const int blank = memfd(control_bytes, size_seals);
    EXPECT_EQ(join_in_child(heap, blank, memory_), -EBADMSG);
    close(blank);
    const int marked = forged(0, "XXXXXXXX", 8, size_seals);
    EXPECT_EQ(join_in_child(heap, marked, memory_), -EBADMSG);
    close(marked);
}

TEST_F(SharedHeapInput, a_control_segment_whose_size_could_change_is_refused) {
    for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_GROW}) {
        const int unsealed = forged(0, "", 0, seals);
        EXPECT_EQ(join_in_child(heap, unsealed, memory_), -EBADMSG) << seals;
        close(unsealed);
    }
}

TEST_F(SharedHeapInput, nobody_can_change_the_sizes_afterwards) {
    EXPECT_EQ(ftruncate(control_, 0), -1);
    EXPECT_EQ(ftruncate(control_, 8192), -1);
    EXPECT_EQ(fcntl(control_, F_ADD_SEALS, F_SEAL_WRITE), -1);
    EXPECT_EQ(ftruncate(memory_, 0), -1);
    heap.deallocate(heap.allocate(MiB));
}

TEST_F(SharedHeapInput, another_version_is_refused) {
    const std::uint32_t version = 999;
    const int newer = forged(8, &version, sizeof version, size_seals);
    EXPECT_EQ(join_in_child(heap, newer, memory_), -EPROTO);
    close(newer);
    const std::uint32_t mutex_bytes = 24; // a 32-bit program's
    const int narrow = forged(12, &mutex_bytes, sizeof mutex_bytes, size_seals);
    EXPECT_EQ(join_in_child(heap, narrow, memory_), -EPROTO);
    close(narrow);
    EXPECT_EQ(join_in_child(heap, control_, memory_, layout + 1), -EPROTO) << "another layout";
}

// The lock holds thread numbers, which are others there.
TEST_F(SharedHeapInput, a_heap_of_another_PID_namespace_is_refused) {
    const std::uint64_t elsewhere = 1;
    const int other = forged(56, &elsewhere, sizeof elsewhere, size_seals);
    EXPECT_EQ(join_in_child(heap, other, memory_), -EXDEV);
    close(other);
}

TEST_F(SharedHeapInput, the_memory_of_another_heap_is_refused) {
    const shared_heap second = make_heap();
    EXPECT_EQ(join_in_child(heap, control_, second.descriptors().memory), -EXDEV);
    EXPECT_EQ(join_in_child(heap, control_, -1), -EBADMSG);
    const int like = memfd(4 * MiB, size_seals);
    EXPECT_EQ(join_in_child(heap, control_, like), -EXDEV);
    close(like);
}

// A forged control segment that names memory of another size, or whose size can change.
TEST_F(SharedHeapInput, memory_that_is_not_what_the_control_segment_says_is_refused) {
    const std::uint64_t sizes[] = {0, 1, 2 * MiB, 6 * MiB, std::uint64_t{1} << 60, UINT64_MAX};
    for (const std::uint64_t bytes : sizes) {
        const int other = forged(16, &bytes, sizeof bytes, size_seals);
        EXPECT_EQ(join_in_child(heap, other, memory_), -EBADMSG) << bytes;
        close(other);
    }
}

TEST(SharedHeapSocket, what_is_no_heap_is_refused_and_its_descriptors_closed) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    const std::size_t descriptors = open_descriptors();
    const auto receive = [&] { static_cast<void>(shared_heap::receive(ends[1])); };
    ASSERT_EQ(write(ends[0], "hello", 5), 5);
    EXPECT_EQ(error_of(receive), EBADMSG);
    ASSERT_EQ(write(ends[0], "hcamheap", 8), 8);
    EXPECT_EQ(error_of(receive), EBADMSG) << "no descriptors";
    for (const std::size_t count : {std::size_t{1}, std::size_t{3}, std::size_t{20}}) {
        char text[] = "hcamheap";
        iovec payload{text, 8};
        alignas(cmsghdr) char rights[CMSG_SPACE(20 * sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &payload;
        message.msg_iovlen = 1;
        message.msg_control = rights;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        for (std::size_t index = 0; index < count; ++index) {
            std::memcpy(CMSG_DATA(header) + index * sizeof(int), &ends[0], sizeof(int));
        }
        ASSERT_EQ(sendmsg(ends[0], &message, 0), 8);
        EXPECT_EQ(error_of(receive), EBADMSG) << count;
        EXPECT_EQ(open_descriptors(), descriptors);
    }
    ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(error_of(receive), ETIMEDOUT);
    close(ends[0]);
    EXPECT_EQ(error_of(receive), ECONNRESET);
    close(ends[1]);
    EXPECT_EQ(error_of(receive), EBADF);
}

TEST(SharedHeapSocket, only_a_socket_can_carry_it) {
    const shared_heap heap = make_heap();
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(error_of([&] { heap.send(ends[1]); }), ENOTSOCK);
    EXPECT_NE(std::strstr(hcamem_last_message(), "UNIX"), nullptr) << hcamem_last_message();
    close(ends[0]);
    close(ends[1]);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    close(ends[0]);
    EXPECT_EQ(error_of([&] { heap.send(ends[1]); }), EPIPE) << "and no signal";
    close(ends[1]);
}

TEST(SharedHeapMisuse, calls_on_a_closed_heap_are_refused) {
    const hcamem::options options = heap_options();
    hcamem_shared* heap = nullptr;
    ASSERT_EQ(hcamem_shared_create(&options, 1, 0, 0, &heap), 0);
    EXPECT_EQ(hcamem_shared_close(heap), 0);
    EXPECT_EQ(hcamem_shared_close(heap), -EINVAL);
    EXPECT_EQ(hcamem_shared_lock(heap, 0), -EINVAL);
    EXPECT_EQ(hcamem_shared_send(heap, 0), -EINVAL);
    EXPECT_EQ(hcamem_shared_address(heap), nullptr);
    EXPECT_EQ(hcamem_shared_size(heap), 0U);
    EXPECT_EQ(hcamem_shared_close(nullptr), -EINVAL);
    EXPECT_EQ(hcamem_shared_lock(nullptr, 0), -EINVAL);
}

} // namespace
