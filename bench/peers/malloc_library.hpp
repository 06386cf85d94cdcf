// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_PEERS_MALLOC_LIBRARY_HPP
#define BENCH_PEERS_MALLOC_LIBRARY_HPP

#include <cstddef>

#include "report/bench_case.hpp"

namespace bench {

/// An allocator with the interface of malloc(), in a library of its own.
struct malloc_library {
    const char* soname;
    const char* package;
    const char* allocate; // names of the functions
    const char* release;
};

struct malloc_functions {
    void* (*allocate)(std::size_t);
    void (*release)(void*);
};

/// Loads a library beside the program's malloc, which stays glibc's, and makes sure that its
/// functions are its own and do their own work. Throws std::runtime_error with the reason.
malloc_functions load_malloc(const malloc_library& library);

/// An implementation for the patterns over such functions.
template <malloc_functions (*load)()>
class malloc_impl {
  public:
    explicit malloc_impl(const bench_case& /*what*/) : functions_(load()) {}

    class user {
      public:
        explicit user(const malloc_impl& from) : functions_(from.functions_) {}
        void* get(std::size_t bytes) { return functions_.allocate(bytes); }
        void put(void* buffer, std::size_t /*bytes*/) { functions_.release(buffer); }

      private:
        malloc_functions functions_;
    };

  private:
    malloc_functions functions_;
};

} // namespace bench

#endif
