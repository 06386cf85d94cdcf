// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The C interface of shared heaps.
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include <infiniband/verbs.h>

#include <hcamem/shared.h>

#include "api/attach_shared.h"
#include "api/check.h"
#include "options/options.h"
#include "os/fork_hook.h"
#include "shared/passing.h"
#include "shared/registry.h"
#include "shared/shared_heap.h"

using namespace hcamem::core;

namespace {

// The kinds of access that reach what keeps the heap in order from elsewhere.
constexpr unsigned remote_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

shared_heap* to_core(hcamem_shared* handle) noexcept {
    return reinterpret_cast<shared_heap*>(handle);
}
const shared_heap* to_core(const hcamem_shared* handle) noexcept {
    return reinterpret_cast<const shared_heap*>(handle);
}

int raw_clone_error() noexcept {
    return fail_static(ESTALE, "this process was made by a raw clone(), whose threads the C "
                               "library's locks do not know: use fork()");
}

/// 0, or why the heap cannot be used.
int check(const hcamem_shared* handle) noexcept {
    if (handle == nullptr) {
        return fail_static(EINVAL, "the shared heap is NULL");
    }
    const shared_heap* const core = to_core(handle);
    if (core->inherited()) {
        return raw_clone_error();
    }
    if (!core->is_open()) {
        return misuse(core->misuse_is_error(), "shared heap %p was closed before",
                      static_cast<const void*>(handle));
    }
    return 0;
}

bool is_usable(const hcamem_shared* handle) noexcept {
    return handle != nullptr && !to_core(handle)->inherited() && to_core(handle)->is_open();
}

/// A heap that open(heap) opens: 0 or its -errno.
template <class Open>
int make(hcamem_shared** made, const Open& open) noexcept {
    if (made == nullptr) {
        return fail_static(EINVAL, "there is nowhere to put the shared heap: it is NULL");
    }
    if (!made_by_libc()) {
        return raw_clone_error();
    }
    try {
        process_page* const process = enter_process();
        if (process == nullptr) {
            return fail(ENOMEM, "no memory that a fork child finds zeroed (MADV_WIPEONFORK)");
        }
        const auto guard = lock_registry();
        shared_heap* const core = shared_heap::take(process->shared_heaps);
        const int result = open(*core);
        if (result != 0) {
            shared_heap::retire(process->shared_heaps, core);
            return result;
        }
        *made = reinterpret_cast<hcamem_shared*>(core);
        return 0;
    } catch (const std::bad_alloc&) {
        return fail_static(ENOMEM, "no memory to make a shared heap");
    } catch (...) {
        return fail_static(EIO, "the shared heap could not be made");
    }
}

bool misuse_is_error_by_environment() noexcept {
    return (options_from_environment().flags & HCAMEM_OPT_MISUSE_ERROR) != 0;
}

} // namespace

namespace hcamem::core {

int attach_shared_with(hcamem_shared* handle, std::unique_ptr<registrar> with,
                       hcamem_binding** made) noexcept {
    try {
        binding* core = nullptr;
        const int result = ::to_core(handle)->attach(std::move(with), core);
        if (result == 0) {
            *made = to_handle(core);
        }
        return result;
    } catch (...) {
        return fail_static(ENOMEM, "no memory to attach a protection domain");
    }
}

} // namespace hcamem::core

int hcamem_shared_create(const hcamem_options* options, uint64_t bytes, uint32_t flags,
                         uint64_t layout, hcamem_shared** made) {
    return make(made, [&](shared_heap& core) {
        const hcamem_options preset = options_from_environment();
        hcamem_options checked{};
        const int result = read_options(options != nullptr ? *options : preset, checked);
        return result != 0 ? result : core.create(checked, bytes, flags, layout);
    });
}

int hcamem_shared_join(int control, int memory, uint64_t layout, hcamem_shared** made) {
    return make(made, [&](shared_heap& core) {
        return core.join(control, memory, layout, misuse_is_error_by_environment());
    });
}

int hcamem_shared_descriptors(const hcamem_shared* handle, int* control, int* memory) {
    const int result = check(handle);
    if (result != 0) {
        return result;
    }
    if (control == nullptr || memory == nullptr) {
        return fail_static(EINVAL, "there is nowhere to put the descriptors: a pointer is NULL");
    }
    *control = to_core(handle)->control().descriptor();
    *memory = to_core(handle)->memory().descriptor();
    return 0;
}

int hcamem_shared_send(const hcamem_shared* handle, int socket) {
    const int result = check(handle);
    if (result != 0) {
        return result;
    }
    const shared_heap* const core = to_core(handle);
    return send_files(socket, core->control().descriptor(), core->memory().descriptor());
}

int hcamem_shared_receive(int socket, uint64_t layout, hcamem_shared** made) {
    if (made == nullptr) { // before the message is taken
        return fail_static(EINVAL, "there is nowhere to put the shared heap: it is NULL");
    }
    heap_files files;
    const int result = receive_files(socket, files);
    return result != 0 ? result
                       : hcamem_shared_join(files.control.descriptor(), files.memory.descriptor(),
                                            layout, made);
}

int hcamem_shared_close(hcamem_shared* handle) {
    const int result = check(handle);
    if (result != 0) {
        return in_child_done(result);
    }
    const auto guard = lock_registry();
    return to_core(handle)->close();
}

void* hcamem_shared_address(const hcamem_shared* handle) {
    return is_usable(handle) ? to_core(handle)->data() : nullptr;
}

size_t hcamem_shared_size(const hcamem_shared* handle) {
    return is_usable(handle) ? to_core(handle)->traits().bytes : 0;
}

int hcamem_shared_source(const hcamem_shared* handle) {
    const int result = check(handle);
    return result != 0 ? result : static_cast<int>(to_core(handle)->traits().source);
}

hcamem_shared* hcamem_shared_find(const void* address) {
    return reinterpret_cast<hcamem_shared*>(find_heap(address));
}

int hcamem_shared_lock(hcamem_shared* handle, int timeout_ms) {
    const int result = check(handle);
    if (result != 0) {
        return result;
    }
    if (timeout_ms < -1) {
        return fail(EINVAL, "a timeout of %d ms: must be -1 (for ever) or more", timeout_ms);
    }
    return to_core(handle)->lock(timeout_ms);
}

int hcamem_shared_unlock(hcamem_shared* handle) {
    const int result = check(handle);
    return result != 0 ? in_child_done(result) : to_core(handle)->unlock();
}

int hcamem_shared_attach(hcamem_shared* handle, ibv_pd* pd, int access, hcamem_binding** made) {
    const int result = check(handle);
    if (result != 0) {
        return result;
    }
    if (pd == nullptr || made == nullptr) {
        return fail_static(EINVAL, "the protection domain or the result is NULL");
    }
    const heap_traits& traits = to_core(handle)->traits();
    if ((static_cast<unsigned>(access) & remote_access) != 0 &&
        !traits.has(heap_traits::remote_allowed)) {
        return fail(EPERM,
                    "access 0x%x: this shared heap allows no remote access, since what keeps it in "
                    "order lies in it too; make it with HCAMEM_SHARED_REMOTE if its peers are "
                    "trusted",
                    static_cast<unsigned>(access));
    }
    try {
        std::unique_ptr<registrar> with;
        const int found =
            make_verbs_registrar(pd, access, traits.has(heap_traits::dmabuf_only), with);
        return found != 0 ? found : attach_shared_with(handle, std::move(with), made);
    } catch (...) {
        return fail_static(ENOMEM, "no memory to attach a protection domain");
    }
}
