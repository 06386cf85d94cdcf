// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One thread reads a mapping while another takes it apart.
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>

#include "guarded.hpp"
#include "operations.hpp"

namespace fuzz {

namespace {

/// Reads pages of an area, all of them again and again, until told to stop. An address that cannot
/// be read may have been unmapped; a wrong word is wrong whatever the other thread does.
class Reader {
  public:
    Reader(const Area& area, std::uint64_t seed)
        : area_(area), thread_([this, seed] { read(seed); }) {}
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() {
        if (thread_.joinable()) {
            stop();
        }
    }

    /// What it saw that was wrong.
    std::optional<std::string> stop() {
        stop_ = true;
        thread_.join();
        return wrong_;
    }

  private:
    void read(std::uint64_t seed) {
        Random random(seed);
        while (!stop_ && !wrong_) {
            const std::size_t page = random.below(area_.pages);
            const Version version = area_.memory->version(area_.first + page);
            if (version == unknown) {
                std::this_thread::yield();
                continue;
            }
            const auto words = words_of_page(area_.memory->key(), area_.first + page, version);
            const Word word = words[random.below(words.size())];
            const std::uintptr_t address = area_.start + page * page_bytes + word.offset;
            const auto found = load(address);
            if (found && *found != word.value) {
                wrong_ = text("while its mapping changed, ", hex(address), " was read as ",
                              hex(*found), ", not ", hex(word.value), ": page ", area_.first + page,
                              " of region ", hex(area_.memory->key()));
            }
        }
    }

    Area area_;
    std::atomic<bool> stop_ = false;
    std::optional<std::string> wrong_; // written by the thread, read once it ended
    std::thread thread_;
};

/// One change that leaves either what was there or nothing. Maps nothing new: it could land where
/// the reader looks.
void disturb(Process& process, const Area& area, Random& random) {
    const Range range = some_of(area, random);
    process.note("disturb", {range.start, range.pages});
    switch (random.below(6)) {
    case 0:
        mprotect(pointer(range.start), range.bytes(), PROT_NONE);
        mprotect(pointer(range.start), range.bytes(), area.prot);
        break;
    case 1:
        mprotect(pointer(range.start), range.bytes(), PROT_READ);
        mprotect(pointer(range.start), range.bytes(), area.prot);
        break;
    case 2:
        madvise(pointer(range.start), range.bytes(),
                random.one_of({MADV_DONTNEED, MADV_PAGEOUT, MADV_COLD}));
        break;
    case 3:
        madvise(pointer(range.start), range.bytes(),
                random.one_of({MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_RANDOM}));
        break;
    case 4: {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        if (child > 0) {
            waitpid(child, nullptr, 0);
        }
        break;
    }
    default:
        mlock(pointer(range.start), range.bytes());
        munlock(pointer(range.start), range.bytes());
        break;
    }
}

} // namespace

Outcome race_reader(Process& process, Random& random) {
    // The C library knows nothing of a child made by a bare clone(), and must not start threads
    // there.
    if (process.areas.empty() || process.depth > 0) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    if (!area.memory->device() || area.prot == PROT_NONE) {
        return Outcome::idle;
    }
    process.note("race", {area.start, area.pages});
    const std::uint64_t disturbances = random.between(1, 12);
    {
        Reader reader(area, random.next());
        for (std::uint64_t i = 0; i < disturbances; ++i) {
            disturb(process, area, random);
        }
        if (random.one_in(2)) {
            // Its range stays empty until the reader has stopped.
            const Range range = some_of(area, random);
            process.note("munmap under the reader", {range.start, range.pages});
            if (munmap(pointer(range.start), range.bytes()) == 0) {
                process.areas.remove(range);
                if (const auto what = reader.stop()) {
                    process.wrong(*what);
                }
                process.arena.reserve(range);
                return Outcome::done;
            }
        }
        if (const auto what = reader.stop()) {
            process.wrong(*what);
        }
    }
    // A change that failed half-way may have left another protection.
    bool whole = mprotect(pointer(area.start), area.bytes(), area.prot) == 0;
    if (!whole) {
        process.drop({area.start, area.pages});
    }
    return Outcome::done;
}

} // namespace fuzz
