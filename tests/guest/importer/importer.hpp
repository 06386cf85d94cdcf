// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The test-only importer module, from user space.
#ifndef TESTS_GUEST_IMPORTER_IMPORTER_HPP
#define TESTS_GUEST_IMPORTER_IMPORTER_HPP

#include <cstddef>
#include <cstdint>
#include <span>

#include "importer_uapi.h"
#include "support/unique_fd.hpp"

namespace support {

/// The module, loaded while this lives.
class Importer {
  public:
    Importer();
    Importer(const Importer&) = delete;
    Importer& operator=(const Importer&) = delete;
    ~Importer();

    /// Attaches, maps, asks for a vmap and undoes all of it. 0 or the errno of the step that
    /// failed.
    [[nodiscard]] int try_attach_map_vmap_detach(int dma_buf,
                                                 importer_kind kind = IMPORTER_STATIC) const;
};

/// One open file of the importer: at most one attachment. Each call gives 0 or an errno.
class Attachment {
  public:
    Attachment();
    int attach(int dma_buf, importer_kind kind);
    int detach() { return call(IMPORTER_DETACH); }
    int map() { return call(IMPORTER_MAP); }
    int unmap() { return call(IMPORTER_UNMAP); }
    int vmap() { return call(IMPORTER_VMAP_ON); }
    int vunmap() { return call(IMPORTER_VMAP_OFF); }
    /// vmap() and vunmap() by the exporter alone; for refusals, which the core warns about.
    int ask_vmap() { return call(IMPORTER_VMAP_ASK); }
    int trim() { return call(IMPORTER_TRIM); }
    int restore() { return call(IMPORTER_RESTORE); }
    int read(importer_view view, std::uint64_t offset, std::span<unsigned char> into);
    int write(importer_view view, std::uint64_t offset, std::span<const unsigned char> from);
    /// Throws if nothing is mapped.
    importer_table table();
    /// Closes the file with whatever is attached and mapped.
    void close() { fd_.reset(); }

  private:
    int call(unsigned long request, void* argument = nullptr);

    UniqueFd fd_;
};

} // namespace support

#endif
