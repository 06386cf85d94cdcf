// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The malloc family under libhcamem-malloc.so, with a threshold of 4 KiB. usage: malloc_family
// SCENE; status 1 and a line on standard error if something is wrong.
#include <dlfcn.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t large = 100000;
constexpr std::size_t small = 100;

void require(bool condition, const char* what) {
    if (!condition) {
        std::fprintf(stderr, "malloc_family: %s\n", what);
        std::_Exit(EXIT_FAILURE);
    }
}

/// Whether the block lies in a mapping that is the pool's: no file, and not the heap.
bool is_from_pool(const void* block) {
    static void* const handle = std::malloc(1 << 20); // there is one slab at least
    // Not bit by bit: the kernel may lay the pool across any round address.
    const auto distance =
        reinterpret_cast<std::intptr_t>(block) - reinterpret_cast<std::intptr_t>(handle);
    return std::abs(distance) < (std::intptr_t{1} << 31);
}

void check(void* block, std::size_t bytes, std::size_t align, const char* name) {
    require(block != nullptr, name);
    require(reinterpret_cast<std::uintptr_t>(block) % align == 0, name);
    require(malloc_usable_size(block) >= bytes, name);
    std::memset(block, 0x5a, bytes);
}

void every_entry() {
    for (const std::size_t bytes : {small, large}) {
        void* block = std::malloc(bytes);
        check(block, bytes, 16, "malloc");
        block = std::realloc(block, bytes * 3);
        check(block, bytes * 3, 16, "realloc");
        block = reallocarray(block, 7, bytes);
        check(block, bytes * 7, 16, "reallocarray");
        std::free(block);

        auto* zeros = static_cast<unsigned char*>(std::calloc(bytes, 2));
        for (std::size_t i = 0; i < bytes * 2; ++i) {
            require(zeros[i] == 0, "calloc of memory that was used before");
        }
        check(zeros, bytes * 2, 16, "calloc");
        std::free(zeros);

        require(posix_memalign(&block, 4096, bytes) == 0, "posix_memalign");
        check(block, bytes, 4096, "posix_memalign");
        std::free(block);
        block = std::aligned_alloc(256, bytes / 256 * 256 + 256);
        check(block, bytes, 256, "aligned_alloc");
        std::free(block);
        block = memalign(8192, bytes);
        check(block, bytes, 8192, "memalign");
        std::free(block);
        block = valloc(bytes);
        check(block, bytes, 4096, "valloc");
        std::free(block);
        block = pvalloc(bytes);
        check(block, (bytes + 4095) / 4096 * 4096, 4096, "pvalloc");
        std::free(block);

        struct alignas(512) wide {
            char bytes[512];
        };
        delete[] new char[bytes];
        delete[] new (std::nothrow) char[bytes];
        auto* wides = new wide[bytes / 50];
        check(wides, bytes / 50 * sizeof(wide), 512, "new of an aligned type");
        delete[] wides;
        ::operator delete(::operator new(bytes), bytes);
    }
    std::free(nullptr);
    require(malloc_usable_size(nullptr) == 0, "malloc_usable_size(NULL)");
    require(std::realloc(std::malloc(large), 0) == nullptr, "realloc to 0");
}

void contents_survive_a_change_of_origin() {
    auto* block = static_cast<char*>(std::malloc(small));
    std::strcpy(block, "kept");
    block = static_cast<char*>(std::realloc(block, large));
    require(std::strcmp(block, "kept") == 0, "growing into the pool");
    block = static_cast<char*>(std::realloc(block, small));
    require(std::strcmp(block, "kept") == 0, "shrinking out of the pool");
    std::free(block);
}

void what_cannot_be() {
    errno = 0;
    volatile std::size_t half = SIZE_MAX / 2;
    require(std::calloc(half, 3) == nullptr && errno == ENOMEM, "calloc that overflows");
    errno = 0;
    require(reallocarray(nullptr, half, 3) == nullptr && errno == ENOMEM,
            "reallocarray that overflows");
    void* block = nullptr;
    require(posix_memalign(&block, 3, large) == EINVAL, "posix_memalign to 3");
    require(posix_memalign(&block, 4, large) == EINVAL, "posix_memalign to 4");
    volatile std::size_t most = SIZE_MAX - 100;
    require(std::malloc(most) == nullptr, "malloc of everything");
    require(pvalloc(most) == nullptr, "pvalloc of everything");
}

void mix(unsigned seed) {
    std::vector<std::unique_ptr<std::string>> kept(64);
    std::map<unsigned, std::vector<char>> others;
    for (unsigned i = 0; i < 4000; ++i) {
        seed = seed * 1664525 + 1013904223;
        auto& place = kept[seed % kept.size()];
        require(!place || place->find_first_not_of(place->front()) == std::string::npos,
                "a block was given twice");
        place = std::make_unique<std::string>(1 + (seed >> 8) % 40000,
                                              static_cast<char>('a' + seed % 26));
        others[seed % 16].resize((seed >> 12) % 20000);
    }
}

void threads() {
    std::vector<std::thread> all;
    for (unsigned i = 0; i < 4; ++i) {
        all.emplace_back(mix, i + 1);
    }
    for (int i = 0; i < 20; ++i) { // none may wait for a lock of a thread that it does not have
        const pid_t child = fork();
        if (child == 0) {
            alarm(180);
            void* block = std::malloc(large);
            std::memset(block, 1, large);
            std::free(block);
            std::_Exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        require(status == 0, "a child hangs");
    }
    for (auto& each : all) {
        each.join();
    }
}

/// Without fork handlers.
pid_t bare_fork() {
    return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

void in_child(pid_t make_child()) {
    auto* block = static_cast<char*>(std::malloc(large));
    std::strcpy(block, "parent");
    const pid_t child = make_child();
    if (child == 0) {
        require(block[0] == 0, "a child sees its parent's buffer");
        block[0] = 'x';
        block = static_cast<char*>(std::realloc(block, large * 2));
        check(block, large * 2, 16, "realloc of what the parent had");
        std::free(block);
        void* own = std::calloc(1, large);
        require(!is_from_pool(own), "a child takes memory of the parent's pool");
        std::free(own);
        std::exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    require(status == 0, "the child failed");
    require(std::strcmp(block, "parent") == 0, "the parent's buffer changed");
    std::free(block);
}

/// One that shares its parent's memory is its parent for the allocator.
void child_that_shares_memory() {
    static char stack[1 << 16];
    auto* block = static_cast<char*>(std::malloc(large));
    std::strcpy(block, "parent");
    const auto allocate = [](void* parents) {
        void* own = std::malloc(large);
        const bool good = own != nullptr && own != parents &&
                          std::strcmp(static_cast<char*>(parents), "parent") == 0;
        std::free(own);
        return good ? 0 : 1;
    };
    const pid_t child =
        clone(allocate, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, block);
    int status = -1;
    require(waitpid(child, &status, 0) == child && status == 0, "the child failed");
    require(malloc_usable_size(block) >= large, "the parent's block is not known any more");
    block = static_cast<char*>(std::realloc(block, large * 2));
    require(std::strcmp(block, "parent") == 0, "the parent's buffer changed");
    require(is_from_pool(block), "the parent takes no more");
    std::free(block);
}

/// The report's "at once": ten blocks of a MiB, never two of them.
void one_after_the_other() {
    for (int i = 0; i < 10; ++i) {
        void* volatile block = std::malloc(1 << 20);
        std::free(block);
    }
}

/// What the constructor of a plug-in waits for may not wait for the loader.
void under_the_loaders_lock() {
    alarm(180);
    require(dlopen("libwaiting_plugin.so", RTLD_NOW) != nullptr, dlerror());
}

/// Pages of the block that were touched.
std::size_t pages_present(void* block, std::size_t bytes) {
    constexpr std::size_t page = 4096;
    const auto at = reinterpret_cast<std::uintptr_t>(block);
    std::vector<unsigned char> present(bytes / page);
    const auto first = (at + page - 1) / page * page;
    require(mincore(reinterpret_cast<void*>(first), (present.size() - 1) * page, present.data()) ==
                0,
            "mincore");
    return static_cast<std::size_t>(std::count(present.begin(), present.end(), 1));
}

/// Ordinary memory is glibc's to grow and to zero: without the pool nothing is copied or touched.
void ordinary() {
    constexpr std::size_t bytes = 64 << 20;
    void* block = std::calloc(1, bytes);
    require(block != nullptr, "calloc");
    // The header in front may bring in a huge page.
    require(pages_present(block, bytes) <= 1024, "calloc touched fresh memory");
    std::ifstream pages("/proc/self/statm");
    rlim_t all = 0;
    pages >> all;
    const rlimit limit{.rlim_cur = all * 4096 + bytes, .rlim_max = RLIM_INFINITY};
    require(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
    block = std::realloc(block, bytes + bytes / 2);
    require(block != nullptr, "realloc copied where glibc's block can grow");
    std::free(block);
}

/// The pool goes on after what it cannot serve at all; HCAMEM_MAXIMUM is less than 100 MiB.
void too_large_for_the_pool() {
    volatile std::size_t huge = std::size_t{1} << 62;
    require(std::malloc(huge) == nullptr && errno == ENOMEM, "malloc of 4 EiB");
    void* block = std::malloc(large);
    require(is_from_pool(block), "none is taken after an impossible request");
    std::free(block);
    block = std::malloc(100 << 20);
    // glibc's have a header in front, the pool's large ones begin a page.
    require(block != nullptr && reinterpret_cast<std::uintptr_t>(block) % 4096 != 0,
            "more than the pool's maximum");
    std::free(block);
    block = std::malloc(large);
    require(is_from_pool(block), "none is taken after a request above the maximum");
    std::free(block);
}

extern "C" {
// Of C23, and weak: not every glibc has them.
[[gnu::weak]] void free_sized(void* block, std::size_t bytes);
[[gnu::weak]] void free_aligned_sized(void* block, std::size_t align, std::size_t bytes);
}

void sized_free() {
    require(free_sized != nullptr && free_aligned_sized != nullptr, "C23's free");
    for (const std::size_t bytes : {small, large}) {
        free_sized(std::malloc(bytes), bytes);
        free_aligned_sized(std::aligned_alloc(256, bytes / 256 * 256 + 256), 256,
                           bytes / 256 * 256 + 256);
    }
    free_sized(nullptr, 0);
    free_aligned_sized(nullptr, 64, 0);
}

} // namespace

int main(int argc, char** argv) {
    const std::map<std::string, std::function<void()>> scenes{
        {"entries", every_entry},
        {"origin", contents_survive_a_change_of_origin},
        {"impossible", what_cannot_be},
        {"mix", [] { mix(7); }},
        {"threads", threads},
        {"fork", [] { in_child(fork); }},
        {"clone", [] { in_child(bare_fork); }},
        {"shared", child_that_shares_memory},
        {"loader", under_the_loaders_lock},
        {"ordinary", ordinary},
        {"large", too_large_for_the_pool},
        {"sized", sized_free},
        {"sequence", one_after_the_other},
    };
    require(argc == 2 && scenes.contains(argv[1]), "usage: malloc_family SCENE");
    scenes.at(argv[1])();
    return EXIT_SUCCESS;
}
