// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the guest runner tells about the boot, and small files of the kernel.
#ifndef TESTS_SUPPORT_GUEST_HPP
#define TESTS_SUPPORT_GUEST_HPP

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace support {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t GiB = 1024 * MiB;
constexpr std::size_t page_size = 4 * KiB;
constexpr std::size_t huge_size = 2 * MiB;

/// Value of an environment variable; throws if it is not set.
std::string environment(const char* name);

/// The series of the running kernel, such as "6.12".
std::string kernel();

/// Whether this boot's soft-RoCE imports dma-bufs.
bool rxe_imports_dma_bufs();

/// Whole text of a file; throws std::system_error.
std::string read_text(const std::string& path);

/// Writes with one write(); throws std::system_error.
void write_text(const std::string& path, const std::string& text);

/// First word of the file as a number.
std::uint64_t read_number(const std::string& path);

/// Exit status of a shell command, its output going to ours.
int shell(const std::string& command);

/// Runs a shell command and throws if its status is not 0.
void must_shell(const std::string& command);

/// Bytes of a field of /proc/meminfo, such as "MemAvailable".
std::uint64_t meminfo(const std::string& field);

/// Bytes of a field of one mapping in /proc/self/smaps; 0 if nothing is mapped there.
std::uint64_t smaps(const void* address, const std::string& field);

/// The line of /proc/self/maps that holds the address, "" if there is none.
std::string maps_line(const void* address);

/// The device of a class, such as "infiniband_verbs" or "hcamem", that belongs to an HCA; its
/// number changes when the HCA goes and comes back. None: there is none now.
std::optional<std::string> find_device(const std::string& class_name, const std::string& ibdev);

/// The same; throws if there is none.
std::string device_of(const std::string& class_name, const std::string& ibdev);

/// Open descriptors of this process.
std::size_t open_descriptors();

/// Asks until the condition holds. For states that the kernel reaches by itself
/// some time after an event. Returns false once patience is over.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

/// Takes the module hcamem out, which must have no user any more. Its last pages and files may just
/// be going, so it is tried until it succeeds; throws if it does not.
void unload_module();

/// Sets a module parameter of hcamem and puts the old value back at the end.
class ModuleParameter {
  public:
    ModuleParameter(std::string name, std::uint64_t value);
    ModuleParameter(const ModuleParameter&) = delete;
    ModuleParameter& operator=(const ModuleParameter&) = delete;
    ~ModuleParameter();

  private:
    std::string path_;
    std::string old_;
};

} // namespace support

#endif
