// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "error/strerror.h"

#include <cerrno>
#include <cstring>

namespace hcamem::core {

const char* explain(int error) noexcept {
    switch (error < 0 ? -error : error) {
    case 0:
        return "success";
    case EINVAL:
        return "an argument makes no sense, or a block or handle was misused";
    case E2BIG:
        return "the options come from a newer header and set a field this library does not know";
    case ENODEV:
        return "the hcamem module is not loaded, has no node for this HCA, or the HCA is gone";
    case EACCES:
        return "the device node may not be opened by this user";
    case EPROTO:
        return "the hcamem module, or a shared heap's other programs, speak another version";
    case EOPNOTSUPP:
        return "the device, its driver or this kind of memory cannot do that";
    case ENOMEM:
        return "no memory: the pool is at its maximum, or the kernel has none to give";
    case EAGAIN:
        return "over the limit of locked memory (RLIMIT_MEMLOCK) of this user";
    case EDQUOT:
        return "over a cap of the hcamem module (max_bytes, max_bytes_per_user)";
    case ETIMEDOUT:
        return "no block was freed, or no lock to be had, in time";
    case EBADF:
        return "the pool was closed";
    case ESTALE:
        return "the pool belongs to the parent process; after a fork make a new one";
    case EBUSY:
        return "blocks are live, or a memory window is bound";
    case EFAULT:
        return "the address is in no slab of the pool, or the memory cannot be pinned";
    case EMSGSIZE:
        return "the range is too long";
    case ENOTRECOVERABLE:
        return "the shared heap is poisoned: a process died while it changed it";
    case EBADMSG:
        return "the descriptors are not those of a shared heap";
    case EXDEV:
        return "the descriptors are of two shared heaps, or from another PID namespace";
    case EEXIST:
        return "this process has the shared heap already, or the name is taken";
    case EPERM:
        return "the shared heap allows no remote access";
    case EMFILE:
        return "too many open files or shared heaps in this process";
    default:
        break;
    }
    const char* text = strerrordesc_np(error < 0 ? -error : error);
    return text != nullptr ? text : "unknown error";
}

} // namespace hcamem::core
