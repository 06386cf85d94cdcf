// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "error/message.h"

#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <pthread.h>
#include <unistd.h>

#include "options/environment.h"

namespace hcamem::core {
namespace {

constexpr std::size_t message_bytes = 512;

// Initial-exec and pointers only: the library may be loaded by dlopen(), where
// there is little room for such variables.
[[gnu::tls_model("initial-exec")]] thread_local const char* current = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local char* buffer = nullptr;

void free_buffer(void* memory) noexcept {
    current = nullptr;
    buffer = nullptr;
    delete[] static_cast<char*>(memory);
}

pthread_key_t make_key() noexcept {
    pthread_key_t made{};
    pthread_key_create(&made, free_buffer);
    return made;
}

const pthread_key_t buffer_key = make_key();

char* thread_buffer() noexcept {
    if (buffer == nullptr) {
        const int error = errno;
        buffer = new (std::nothrow) char[message_bytes];
        pthread_setspecific(buffer_key, buffer);
        errno = error;
    }
    return buffer;
}

void set_message(const char* format, std::va_list arguments) noexcept {
    char* const text = thread_buffer();
    if (text == nullptr) {
        current = "out of memory (no room for the message either)";
        return;
    }
    // The arguments may hold the present message: format into a buffer of its own.
    char fresh[message_bytes];
    std::vsnprintf(fresh, sizeof fresh, format, arguments);
    std::snprintf(text, message_bytes, "%s", fresh);
    current = text;
}

void write_line(const char* text) noexcept {
    char line[message_bytes + 16];
    const int length = std::snprintf(line, sizeof line, "hcamem: %s\n", text);
    if (length > 0) {
        // One write(), so that lines of several processes do not mix.
        [[maybe_unused]] const ssize_t written =
            write(STDERR_FILENO, line, static_cast<std::size_t>(length));
    }
}

void write_line(const char* format, std::va_list arguments) noexcept {
    char text[message_bytes];
    std::vsnprintf(text, sizeof text, format, arguments);
    write_line(text);
}

} // namespace

int fail(int error, const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    set_message(format, arguments);
    va_end(arguments);
    return -error;
}

int fail_static(int error, const char* text) noexcept {
    current = text;
    return -error;
}

const char* last_message() noexcept {
    return current == nullptr ? "" : current;
}

bool quiet() noexcept {
    const char* value = environment("HCAMEM_QUIET");
    return value != nullptr && value[0] == '1' && value[1] == '\0';
}

void warn_once(std::atomic<bool>& said, const char* format, ...) noexcept {
    if (said.exchange(true, std::memory_order_relaxed) || quiet()) {
        return;
    }
    std::va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}

void print_line(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}

int misuse(bool is_error, const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    set_message(format, arguments);
    va_end(arguments);
    if (!is_error) {
        write_line(last_message());
        std::abort();
    }
    return -EINVAL;
}

void fatal(const char* text) noexcept {
    write_line(text);
    std::abort();
}

size_text::size_text(std::uint64_t bytes) noexcept {
    constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    constexpr std::uint64_t mebibyte = 1 << 20;
    if (bytes > mebibyte && bytes % 1024 != 0) {
        std::snprintf(text_, sizeof text_, "%.1f MiB",
                      static_cast<double>(bytes) / static_cast<double>(mebibyte));
        return;
    }
    std::size_t unit = 0;
    while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        ++unit;
    }
    std::snprintf(text_, sizeof text_, "%" PRIu64 " %s", bytes, units[unit]);
}

} // namespace hcamem::core
