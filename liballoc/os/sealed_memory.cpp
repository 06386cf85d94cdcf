// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "os/sealed_memory.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "error/message.h"

namespace hcamem::core {
namespace {

constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;

int failed(const char* what, std::size_t bytes) noexcept {
    const int error = errno;
    return fail(error, "%s for %s of shared memory: %s", what, size_text(bytes).c_str(),
                strerrordesc_np(error));
}

} // namespace

int make_sealed_memory(const char* name, std::size_t bytes, file& made) noexcept {
    file fresh(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fresh) {
        return failed("memfd_create", bytes);
    }
    if (ftruncate(fresh.descriptor(), static_cast<off_t>(bytes)) != 0) {
        return failed("ftruncate", bytes);
    }
    // No more seals either: one against writing would break all who map it later.
    if (fcntl(fresh.descriptor(), F_ADD_SEALS, size_seals | F_SEAL_SEAL) != 0) {
        return failed("F_ADD_SEALS", bytes);
    }
    made = std::move(fresh);
    return 0;
}

bool is_sealed_memory(int descriptor, std::size_t bytes) noexcept {
    // Only memfds have seals.
    const int seals = fcntl(descriptor, F_GET_SEALS);
    struct stat found {};
    return seals >= 0 && (seals & size_seals) == size_seals && fstat(descriptor, &found) == 0 &&
           static_cast<std::size_t>(found.st_size) == bytes;
}

} // namespace hcamem::core
