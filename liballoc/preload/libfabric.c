/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libfabric's buffer pools grow by posix_memalign() in pieces of megabytes and are freed by
 * free(). Standing in front of malloc's functions would cost every program; here two entries
 * of the global offset table of libfabric alone are changed, once it uses verbs.
 *
 * With eager binding (BIND_NOW) the table is read-only by then, and is made so again. If one
 * entry cannot be changed, none is.
 */
#define _GNU_SOURCE
#include "libfabric.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "settings.h"

#if defined(__x86_64__)
enum { call_relocation = R_X86_64_JUMP_SLOT, data_relocation = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { call_relocation = R_AARCH64_JUMP_SLOT, data_relocation = R_AARCH64_GLOB_DAT };
#else
#error "which relocations fill the global offset table here?"
#endif

enum { smallest = 1 << 20 }; /* bytes; a buffer pool's piece is far larger, all else smaller */

static int pool_memalign(void** memory, size_t align, size_t bytes) {
    if (bytes >= smallest) {
        size_t given = 0;
        void* taken = NULL;
        switch (take_memory("libfabric", "ofi_bufpool", bytes, align, &taken, &given)) {
        case done:
            *memory = taken;
            return 0;
        case failed:
            return ENOMEM;
        case untouched:
            break;
        }
    }
    const int result = posix_memalign(memory, align, bytes);
    if (result == 0 && bytes >= smallest) {
        note_other_memory("libfabric", "ofi_bufpool", *memory, bytes);
    }
    return result;
}

static void pool_free(void* memory) {
    /* Ours begin a page; of others hardly any do, and those are looked up. */
    if (((uintptr_t)memory & 4095) != 0 || give_back_memory(memory) == untouched) {
        free(memory);
    }
}

static uintptr_t replacement_for(const char* name) {
    if (strcmp(name, "posix_memalign") == 0) {
        return (uintptr_t)&pool_memalign;
    }
    return strcmp(name, "free") == 0 ? (uintptr_t)&pool_free : 0;
}

/* A change of the table: what the entry is to hold. */
struct change {
    uintptr_t* entry;
    uintptr_t value;
};

/* Two functions, each called and maybe pointed to. */
enum { most_changes = 8 };

struct object {
    const char* base;
    const ElfW(Sym) * symbols;
    const char* names;
    const ElfW(Rela) * tables[2]; /* calls, other data */
    size_t bytes[2];
    const char* relro;
    size_t relro_bytes;
};

static void read_dynamic(const ElfW(Dyn) * entry, struct object* object) {
    for (; entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
        case DT_SYMTAB:
            object->symbols = (const void*)entry->d_un.d_ptr;
            break;
        case DT_STRTAB:
            object->names = (const void*)entry->d_un.d_ptr;
            break;
        case DT_JMPREL:
            object->tables[0] = (const void*)entry->d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            object->bytes[0] = entry->d_un.d_val;
            break;
        case DT_RELA:
            object->tables[1] = (const void*)entry->d_un.d_ptr;
            break;
        case DT_RELASZ:
            object->bytes[1] = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
}

static int find_relro(struct dl_phdr_info* info, size_t size, void* data) {
    struct object* const object = data;
    (void)size;
    if ((const char*)info->dlpi_addr != object->base) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            object->relro = object->base + info->dlpi_phdr[i].p_vaddr;
            object->relro_bytes = info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

/* What is not read-only by the loader's doing, which takes whole pages, stays as it is. */
static bool protect(const struct object* object, const uintptr_t* entry, int protection) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t at = (uintptr_t)entry & ~(page - 1);
    const uintptr_t begin = (uintptr_t)object->relro & ~(page - 1);
    const uintptr_t end = ((uintptr_t)object->relro + object->relro_bytes) & ~(page - 1);
    return at < begin || at >= end || mprotect((void*)at, page, protection) == 0;
}

static void store(const struct change* changes, size_t count, uintptr_t value) {
    for (size_t i = 0; i < count; ++i) {
        if (changes[i].value == value) {
            __atomic_store_n(changes[i].entry, value, __ATOMIC_RELEASE);
        }
    }
}

/* All or none: memory of ours may not come to free() of another. */
static bool make_changes(const struct object* object, const struct change* changes, size_t count) {
    size_t open = 0;
    while (open < count && protect(object, changes[open].entry, PROT_READ | PROT_WRITE)) {
        ++open;
    }
    if (open == count) {
        store(changes, count, (uintptr_t)&pool_free); /* first: other threads may be here */
        store(changes, count, (uintptr_t)&pool_memalign);
    }
    for (size_t i = 0; i < open; ++i) {
        protect(object, changes[i].entry, PROT_READ);
    }
    return open == count;
}

static bool change_table(const struct link_map* map) {
    struct object object = {.base = (const char*)map->l_addr};
    struct change changes[most_changes];
    size_t count = 0;
    read_dynamic(map->l_ld, &object);
    dl_iterate_phdr(find_relro, &object);
    for (size_t table = 0; table < 2; ++table) {
        const size_t entries = object.bytes[table] / sizeof(ElfW(Rela));
        for (size_t i = 0; i < entries; ++i) {
            const ElfW(Rela)* const each = &object.tables[table][i];
            const uint32_t symbol = ELF64_R_SYM(each->r_info);
            const uint32_t type = ELF64_R_TYPE(each->r_info);
            if (symbol == 0 || (type != call_relocation && type != data_relocation)) {
                continue;
            }
            const uintptr_t value = replacement_for(object.names + object.symbols[symbol].st_name);
            if (value != 0 && count == most_changes) {
                return false;
            }
            if (value != 0) {
                changes[count++] =
                    (struct change){(uintptr_t*)(map->l_addr + each->r_offset), value};
            }
        }
    }
    return make_changes(&object, changes, count);
}

static void take_object(const char* name) {
    void* const handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    struct link_map* map = NULL;
    if (handle == NULL) {
        return;
    }
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !change_table(map)) {
        say("the buffer pools of %s stay in ordinary memory: its calls cannot be changed", name);
    }
    dlclose(handle);
}

void take_libfabric(const void* caller) {
    static _Atomic(const void*) last; /* the object that was seen to; twice does no harm */
    Dl_info info;
    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) {
        return;
    }
    const char* const slash = strrchr(info.dli_fname, '/');
    const char* const name = slash != NULL ? slash + 1 : info.dli_fname;
    const bool core = strncmp(name, "libfabric", strlen("libfabric")) == 0;
    if (!core && strstr(name, "-fi.so") == NULL) { /* a provider, such as libverbs-fi.so */
        return;
    }
    if (atomic_exchange(&last, info.dli_fbase) != info.dli_fbase) {
        take_object(info.dli_fname);
        if (!core) {
            take_object("libfabric.so.1");
        }
    }
}
