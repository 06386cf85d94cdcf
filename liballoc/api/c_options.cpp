// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The C interface of options and messages.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <hcamem.h>

#include "error/message.h"
#include "error/strerror.h"
#include "options/options.h"

using namespace hcamem::core;

void hcamem_options_init(hcamem_options* options, uint32_t size) {
    if (options == nullptr) {
        return;
    }
    hcamem_options fresh = options_from_environment();
    fresh.size = size;
    std::memset(static_cast<void*>(options), 0, size);
    std::memcpy(options, &fresh, std::min<size_t>(size, sizeof fresh));
}

int hcamem_options_describe(const hcamem_options* options, char* text, size_t size) {
    if (text == nullptr && size != 0) {
        return fail_static(EINVAL, "text is NULL but its size is not 0");
    }
    hcamem_options read = options_from_environment();
    if (options != nullptr) {
        const int result = read_options(*options, read);
        if (result != 0) {
            return result;
        }
    }
    return describe_options(read, text, size);
}

const char* hcamem_strerror(int error) {
    return explain(error);
}

const char* hcamem_last_message(void) {
    return last_message();
}
