// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "peers/malloc_library.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <dlfcn.h>
#include <malloc.h>

namespace bench {
namespace {

template <class Function>
Function* find(void* library, const char* name) {
    void* const found = dlsym(library, name);
    if (found == nullptr) {
        throw std::runtime_error(std::string(dlerror()));
    }
    return reinterpret_cast<Function*>(found);
}

std::string file_of(void* function) {
    Dl_info info{};
    if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) {
        return "?";
    }
    return info.dli_fname;
}

void must_be_in(void* function, const std::string& library) {
    const std::string file = file_of(function);
    if (file.find(library) == std::string::npos) {
        throw std::runtime_error("a function of " + library + " was found in " + file);
    }
}

} // namespace

malloc_functions load_malloc(const malloc_library& library) {
    // DEEPBIND: whatever it calls malloc inside is its own.
    void* const handle = dlopen(library.soname, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (handle == nullptr) {
        throw std::runtime_error(std::string(dlerror()) + "; apt-get install " + library.package);
    }
    const malloc_functions found{find<void*(std::size_t)>(handle, library.allocate),
                                 find<void(void*)>(handle, library.release)};
    must_be_in(reinterpret_cast<void*>(found.allocate), library.soname);
    must_be_in(reinterpret_cast<void*>(found.release), library.soname);
    must_be_in(reinterpret_cast<void*>(&std::malloc), "libc.so");
    const auto before = mallinfo2();
    void* const block = found.allocate(50'000);
    const auto after = mallinfo2();
    found.release(block);
    if (block == nullptr || after.uordblks + after.hblkhd != before.uordblks + before.hblkhd) {
        throw std::runtime_error(std::string(library.soname) + " takes its blocks from glibc");
    }
    return found;
}

} // namespace bench
