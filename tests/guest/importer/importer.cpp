// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "importer.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "support/failure.hpp"
#include "support/guest.hpp"

namespace support {

namespace {

/// Lies beside the test programs, one for each kernel.
std::string module_path() {
    const auto programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    return programs / "importer" / kernel() / "hcamem_importer.ko";
}

} // namespace

Importer::Importer() {
    must_shell("insmod " + module_path());
}

Importer::~Importer() {
    // Refused while an attachment is left, which is a fault of the test.
    if (shell("rmmod hcamem_importer") != 0) {
        std::cerr << "the importer is still in use\n";
        std::abort();
    }
}

int Importer::try_attach_map_vmap_detach(int dma_buf, importer_kind kind) const {
    Attachment attachment;
    if (const int error = attachment.attach(dma_buf, kind)) {
        return error;
    }
    for (const auto step :
         {&Attachment::map, &Attachment::ask_vmap, &Attachment::unmap, &Attachment::detach}) {
        if (const int error = (attachment.*step)()) {
            return error;
        }
    }
    return 0;
}

Attachment::Attachment()
    : fd_(must(open("/dev/hcamem_importer", O_RDWR | O_CLOEXEC), "/dev/hcamem_importer")) {}

int Attachment::call(unsigned long request, void* argument) {
    return ioctl(fd_.get(), request, argument) < 0 ? errno : 0;
}

int Attachment::attach(int dma_buf, importer_kind kind) {
    importer_attach request{dma_buf, static_cast<__u32>(kind)};
    return call(IMPORTER_ATTACH, &request);
}

int Attachment::read(importer_view view, std::uint64_t offset, std::span<unsigned char> into) {
    importer_copy request{offset, reinterpret_cast<std::uintptr_t>(into.data()), into.size(),
                          static_cast<__u32>(view), 0};
    return call(IMPORTER_COPY, &request);
}

int Attachment::write(importer_view view, std::uint64_t offset,
                      std::span<const unsigned char> from) {
    importer_copy request{offset, reinterpret_cast<std::uintptr_t>(from.data()), from.size(),
                          static_cast<__u32>(view), 1};
    return call(IMPORTER_COPY, &request);
}

importer_table Attachment::table() {
    importer_table table{};
    if (const int error = call(IMPORTER_DESCRIBE, &table)) {
        fail("IMPORTER_DESCRIBE", error);
    }
    return table;
}

} // namespace support
