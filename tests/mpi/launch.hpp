// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Runs a program of two processes or more over soft-RoCE, under hcamem-run and the page-pin probes.
#ifndef TESTS_MPI_LAUNCH_HPP
#define TESTS_MPI_LAUNCH_HPP

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/page_pins.hpp"

namespace mpi {

using Words = std::vector<std::string>;

/// What hcamem-run is to do.
enum class Mode {
    take, ///< all that it can; what it cannot have is an error
    none, ///< nothing: what the program does by itself
};

/// A pool of UCX or libfabric in one process, as the report has it.
struct Pool {
    std::string owner;
    std::string name;
    bool taken = false;
    std::uint64_t bytes = 0; ///< most at once
    std::vector<support::AddressRange> ranges;
};

/// The report of one process.
struct Report {
    std::string program;
    std::string fall_back;
    bool out_of_reach = false;
    std::vector<Pool> pools;
    std::map<std::string, std::uint64_t> registrations; ///< by path
};

/// What came of a run.
struct Outcome {
    int status = -1;
    std::string out;
    std::string err;
    std::vector<Report> reports; ///< of the processes that asked for memory or registered some
    std::uint64_t pins = 0;      ///< calls that asked for pages of the pools, taken or not

    [[nodiscard]] std::uint64_t taken_bytes() const;
    [[nodiscard]] std::uint64_t registrations(const std::string& path) const;
    double usec = 0; ///< of a message, as the program measured it; 0: it did not
};

/// mpirun of Open MPI over these transports of UCX: two ranks of what follows.
Words open_mpi(const std::string& transports = "rc,self");
/// What mpirun needs in the guest: no remote shell, and to be root.
Words open_mpi_environment();
/// The same over libfabric's verbs;ofi_rxm.
Words open_mpi_libfabric();
/// mpiexec of MPICH over UCX.
Words mpich();

/// A program of this build tree's tests/mpi.
std::string program(const std::string& name);

/// For usec_in: the number behind "usec=".
double usec_of_pingpong(const std::string& out);

/// Where this build tree has its libraries.
std::string library_folder();

/// hcamem-run of this build tree.
std::string launcher();

/// What is run, and how.
struct Command {
    Words launcher = {};    ///< in front of hcamem-run
    Words words = {};       ///< the program and its arguments
    Words environment = {}; ///< NAME=VALUE
    /// Finds the time of a message in the output, microseconds.
    double (*usec_in)(const std::string& out) = nullptr;
    /// Off: without hcamem-run; what runs must bring the preload library itself.
    bool preload = true;
};

/// What everybody holds through the nodes.
std::uint64_t held_bytes();

/// Runs it under the probes. When it has ended nothing may be held any more.
Outcome launch(const Command& command, Mode mode);

/// Both ways. Adds a case to the boot's mpi.jsonl.
struct Comparison {
    Outcome with;
    Outcome without;
};
Comparison compare(const std::string& name, const Command& command);

/// Asserts what must hold of every comparison: success, each of these pools taken, all
/// registered by the way this boot has, and page pins accordingly.
void expect_taken(const Comparison& comparison, const std::string& owner,
                  const std::vector<std::string>& pools);

} // namespace mpi

#endif
