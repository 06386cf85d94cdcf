// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Two CPUs meet at an edge of the driver, and one of them removes the HCA.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "../importer/importer.hpp"
#include "inject_module.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/node.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

class RaceWithRemoval : public OnInjectModule<testing::Test> {
  protected:
    void TearDown() override {
        EXPECT_TRUE(eventually([] { return Node().total() == 0; })) << Node().total();
    }

    /// Whether the file says that its HCA is gone: hung up, told once, and then no more.
    static void expect_told(const UniqueFd& file) {
        pollfd watch{file.get(), POLLIN, 0};
        ASSERT_EQ(poll(&watch, 1, 0), 1) << "poll() says nothing";
        EXPECT_EQ(watch.revents, POLLIN | POLLHUP);
        hcamem_event event{};
        ASSERT_EQ(read(file.get(), &event, sizeof event), static_cast<ssize_t>(sizeof event));
        EXPECT_EQ(event.type, static_cast<unsigned>(HCAMEM_EVENT_GONE));
        EXPECT_EQ(read(file.get(), &event, sizeof event), 0);
    }

    Hca hca_{"rxe1"};
};

} // namespace

// An open that began in time gets a file of the HCA that is gone, or none.
TEST_F(RaceWithRemoval, open) {
    for (const char* edge :
         {"hcamem_open:mutex_lock", "hcamem_open:mutex_unlock", "hcamem_open:get_device",
          "hcamem_events_open:spin_lock", "hcamem_events_open:spin_unlock"}) {
        const std::string path = Node::path_of("rxe1");
        UniqueFd file;
        int error = 0;
        collide(
            edge,
            [&] {
                file = UniqueFd(open(path.c_str(), O_RDWR | O_CLOEXEC));
                error = file.valid() ? 0 : errno;
            },
            Second::passes, [&] { hca_.remove(); });
        if (file.valid()) {
            expect_told(file);
            EXPECT_EQ(Region::attempt(Node(std::move(file)), page_size), ENODEV);
        } else {
            EXPECT_EQ(error, ENODEV) << edge;
        }
        hca_.add();
    }
}

TEST_F(RaceWithRemoval, close) {
    for (const char* edge : {"hcamem_events_close:spin_lock", "hcamem_events_close:spin_unlock",
                             "hcamem_release:put_device"}) {
        auto node = std::make_unique<Node>("rxe1");
        collide(
            edge, [&] { node.reset(); }, Second::passes, [&] { hca_.remove(); });
        hca_.add();
    }
}

// The last holder of the node lets go of it while its HCA lets go of it.
TEST_F(RaceWithRemoval, last_reference_on_the_node) {
    for (const char* edge :
         {"hcamem_node_remove:mutex_lock", "hcamem_events_gone:spin_lock",
          "hcamem_node_remove:cdev_device_del", "hcamem_node_remove:put_device"}) {
        auto node = std::make_unique<Node>("rxe1");
        auto region = std::make_unique<Region>(*node, page_size);
        collide(
            edge, [&] { hca_.remove(); }, Second::passes,
            [&] {
                node.reset();
                region.reset();
            });
        hca_.add();
    }
}

TEST_F(RaceWithRemoval, read_of_an_event) {
    for (const char* edge : {"hcamem_event_take:spin_lock", "hcamem_event_take:spin_unlock"}) {
        const Node node("rxe1");
        hcamem_event event{};
        collide(
            edge,
            [&] {
                EXPECT_EQ(read(node.fd(), &event, sizeof event),
                          static_cast<ssize_t>(sizeof event));
            },
            Second::passes, [&] { hca_.remove(); });
        EXPECT_EQ(event.type, static_cast<unsigned>(HCAMEM_EVENT_GONE)) << edge;
        EXPECT_EQ(read(node.fd(), &event, sizeof event), 0);
        hca_.add();
    }
}

TEST_F(RaceWithRemoval, poll_for_an_event) {
    for (const char* edge : {"hcamem_events_poll:spin_lock", "hcamem_events_poll:spin_unlock"}) {
        const Node node("rxe1");
        collide(
            edge,
            [&] {
                pollfd watch{node.fd(), POLLIN, 0};
                EXPECT_EQ(poll(&watch, 1, 60'000), 1);
                EXPECT_EQ(watch.revents, POLLIN | POLLHUP);
            },
            Second::passes, [&] { hca_.remove(); });
        hca_.add();
    }
}

// In a process of its own: mmap() holds its address space meanwhile.
TEST_F(RaceWithRemoval, create_and_mmap) {
    for (const char* edge : {"hcamem_try_charge:spin_lock", "hcamem_charge:get_device",
                             "hcamem_region_publish:mutex_lock", "hcamem_ioctl_create:xa_store",
                             "hcamem_mapping_install:mmgrab"}) {
        collide(
            edge,
            [&] {
                EXPECT_TRUE(succeeds_in_child({}, [](Channel&) {
                    const Node node("rxe1");
                    const Region region(node, huge_size);
                    fill(region.bytes(), 1);
                    require(holds(region.bytes(), 1), "what was obtained in time stays valid");
                    require(Region::attempt(node, page_size) == ENODEV, "and is the last");
                })) << edge;
            },
            Second::passes, [&] { hca_.remove(); });
        hca_.add();
    }
}

TEST_F(RaceWithRemoval, export_of_a_dma_buf) {
    for (const char* edge :
         {"hcamem_find_range:mmap_read_lock", "hcamem_ioctl_export:fd_install"}) {
        const Node node("rxe1");
        const Region region(node, huge_size);
        UniqueFd dma_buf;
        collide(
            edge, [&] { dma_buf = node.export_range(region.data(), region.size()); },
            Second::passes, [&] { hca_.remove(); });
        EXPECT_EQ(lseek(dma_buf.get(), 0, SEEK_END), static_cast<off_t>(region.size()));
        hca_.add();
    }
}

// Another device attaches to the memory of an HCA that goes.
TEST_F(RaceWithRemoval, attach_by_an_importer) {
    const Importer importer;
    for (const char* edge :
         {"hcamem_attach:dev_is_dma_coherent", "hcamem_map_dma_buf:dma_map_sgtable"}) {
        const Node node("rxe1");
        const Region region(node, huge_size);
        fill(region.bytes(), 2);
        const UniqueFd dma_buf = node.export_range(region.data(), region.size());
        Attachment device;
        collide(
            edge,
            [&] {
                EXPECT_EQ(device.attach(dma_buf.get(), IMPORTER_DYNAMIC), 0);
                EXPECT_EQ(device.map(), 0);
            },
            Second::passes, [&] { hca_.remove(); });
        std::vector<unsigned char> seen(region.size());
        ASSERT_EQ(device.read(IMPORTER_TABLE, 0, seen), 0);
        EXPECT_TRUE(holds(seen, 2));
        hca_.add();
    }
}

// The HCA itself registers memory while it is removed: soft-RoCE waits for its users.
TEST_F(RaceWithRemoval, registration_by_the_hca) {
    if (!rxe_imports_dma_bufs()) {
        GTEST_SKIP() << "stock soft-RoCE imports no dma-bufs";
    }
    const Node node("rxe1");
    const Region region(node, huge_size);
    fill(region.bytes(), 3);
    collide(
        "hcamem_map_dma_buf:dma_map_sgtable",
        [&] {
            const Context context("rxe1");
            const Pd pd(context);
            const Mr mr = Mr::of_region(pd, node, region.data(), region.size());
            EXPECT_NE(mr.lkey(), 0U);
        },
        Second::may_wait, [&] { hca_.remove(); });
    EXPECT_EQ(node.info().gone, 1U);
    EXPECT_TRUE(holds(region.bytes(), 3));
}

TEST_F(RaceWithRemoval, the_coming_of_the_hca) {
    for (const char* edge : {"hcamem_node_add:cdev_device_add"}) {
        hca_.remove();
        collide(
            edge, [&] { (void)shell("rdma link add rxe1 type rxe netdev v1"); }, Second::may_wait,
            [] { (void)shell("rdma link delete rxe1 2>/dev/null"); });
        // Whichever of the two was last.
        (void)shell("rdma link delete rxe1 2>/dev/null");
        EXPECT_FALSE(Node::name_of("rxe1").has_value());
        hca_.add();
    }
}

TEST_F(RaceWithRemoval, looking_at_sysfs) {
    const std::string name = *Node::name_of("rxe1");
    collide(
        "ibdev_show:mutex_lock",
        [&] {
            try {
                EXPECT_EQ(read_text("/sys/class/hcamem/" + name + "/ibdev"), "rxe1\n");
            } catch (const std::system_error& error) {
                EXPECT_EQ(error.code().value(), ENODEV) << "the removal came first";
            }
        },
        Second::may_wait, [&] { hca_.remove(); });
    hca_.add();
}
