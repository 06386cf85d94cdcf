// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// io_uring pins pages for direct I/O, and registered buffers for as long as the ring lives.
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "pinning.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

/// A ring for one request at a time.
class Ring {
  public:
    Ring() {
        fd_ = UniqueFd(
            must(static_cast<int>(syscall(SYS_io_uring_setup, 1, &parameters_)), "io_uring_setup"));
        queues_ = map(queue_bytes, IORING_OFF_SQ_RING);
        entries_ = static_cast<io_uring_sqe*>(map(sizeof(io_uring_sqe), IORING_OFF_SQES));
    }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;
    ~Ring() {
        munmap(entries_, sizeof(io_uring_sqe));
        munmap(queues_, queue_bytes);
    }

    /// 0 or the errno.
    [[nodiscard]] int register_buffer(std::span<unsigned char> bytes) const {
        const iovec buffer{bytes.data(), bytes.size()};
        return syscall(SYS_io_uring_register, fd_.get(), IORING_REGISTER_BUFFERS, &buffer, 1) == 0
                   ? 0
                   : errno;
    }

    /// What a read() or write() would return, with errno set.
    ssize_t run(std::uint8_t operation, int fd, std::span<unsigned char> bytes,
                std::uint64_t offset) {
        *entries_ = {};
        entries_->opcode = operation;
        entries_->fd = fd;
        entries_->off = offset;
        entries_->addr = reinterpret_cast<std::uintptr_t>(bytes.data());
        entries_->len = static_cast<std::uint32_t>(bytes.size());
        *word(parameters_.sq_off.array) = 0;
        std::atomic_ref(*word(parameters_.sq_off.tail)).fetch_add(1);
        must(static_cast<int>(
                 syscall(SYS_io_uring_enter, fd_.get(), 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0)),
             "io_uring_enter");
        const std::uint32_t head = *word(parameters_.cq_off.head);
        const std::uint32_t mask = *word(parameters_.cq_off.ring_mask);
        io_uring_cqe done{};
        std::memcpy(&done, word(parameters_.cq_off.cqes) + (head & mask) * (sizeof done / 4),
                    sizeof done);
        std::atomic_ref(*word(parameters_.cq_off.head)).store(head + 1);
        if (done.res < 0) {
            errno = -done.res;
            return -1;
        }
        return done.res;
    }

  private:
    /// More than the queues of a ring for one need; both are in one mapping since 5.4.
    static constexpr std::size_t queue_bytes = page_size;

    [[nodiscard]] void* map(std::size_t bytes, std::uint64_t offset) const {
        void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(),
                            static_cast<off_t>(offset));
        if (mapped == MAP_FAILED) {
            fail("mmap of io_uring");
        }
        return mapped;
    }
    [[nodiscard]] std::uint32_t* word(std::uint32_t offset) const {
        return reinterpret_cast<std::uint32_t*>(static_cast<char*>(queues_) + offset);
    }

    io_uring_params parameters_{};
    UniqueFd fd_;
    void* queues_ = nullptr;
    io_uring_sqe* entries_ = nullptr;
};

class IoUring : public PinningModes {};
INSTANTIATE_TEST_SUITE_P(, IoUring, both_mappings, mapping_name);

} // namespace

TEST_P(IoUring, direct_io_writes_from_it_and_reads_into_it) {
    const BlockDevice device;
    const UniqueFd fd = device.open_direct();
    Ring ring;
    const Node node;
    const std::uint64_t before = node.total();
    Region region(node, huge_size, kind());
    fill(region.bytes(), 1);
    const auto source = region.bytes().subspan(page_size, 256 * KiB);
    const ssize_t written = ring.run(IORING_OP_WRITE, fd.get(), source, 4 * MiB);
    expect_moved(written, source.size());
    if (written == static_cast<ssize_t>(source.size())) {
        const auto target = region.bytes().subspan(MiB, source.size());
        ASSERT_EQ(ring.run(IORING_OP_READ, fd.get(), target, 4 * MiB), written);
        EXPECT_TRUE(holds(target, 1, page_size));
    }
    region.unmap();
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

// A registered buffer stays pinned, and so charged, until its ring is gone.
TEST_P(IoUring, R04_a_registered_buffer_carries_the_bytes_and_stays_charged) {
    std::array<int, 2> ends{};
    must(pipe2(ends.data(), O_CLOEXEC), "pipe2");
    const UniqueFd reader(ends[0]);
    const UniqueFd writer(ends[1]);
    const Node node;
    const std::uint64_t before = node.total();
    Region region(node, huge_size, kind());
    fill(region.bytes(), 1);
    const auto source = region.bytes().subspan(page_size, 32 * KiB);
    const auto target = region.bytes().subspan(MiB, source.size());
    {
        Ring ring;
        const int error = ring.register_buffer(region.bytes());
        // 6.1 takes no buffers that are mappings of a file, whatever the file.
        if (kernel() == "6.1") {
            EXPECT_TRUE(error == EOPNOTSUPP || (!must_work() && error == EFAULT)) << error;
        } else if (must_work()) {
            ASSERT_EQ(error, 0) << std::strerror(error);
        } else {
            EXPECT_EQ(error, EFAULT);
        }
        if (error == 0) {
            const auto bytes = static_cast<ssize_t>(source.size());
            ASSERT_EQ(ring.run(IORING_OP_WRITE_FIXED, writer.get(), source, 0), bytes);
            ASSERT_EQ(ring.run(IORING_OP_READ_FIXED, reader.get(), target, 0), bytes);
            EXPECT_TRUE(holds(target, 1, page_size));
            region.unmap();
            EXPECT_EQ(node.total(), before + huge_size);
        }
    }
    region.unmap();
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}
