// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamem_fuzz: see options.cpp for its usage.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string_view>

#include "guarded.hpp"
#include "operations.hpp"
#include "options.hpp"
#include "report.hpp"
#include "supervisor.hpp"

namespace {

/// An access that was taken for safe.
void report_crash(std::uintptr_t address) {
    fuzz::Report::get().fail(fuzz::text("a process crashed at ", fuzz::hex(address)));
}

} // namespace

int main(int argc, char** argv) {
    try {
        fuzz::install_guard(report_crash);
        // How execute() starts this program again.
        if (argc == 4 && std::string_view(argv[1]) == "--inherited") {
            fuzz::Report::open(std::atoi(argv[3]));
            fuzz::run_inherited(std::atoi(argv[2]));
        }
        const fuzz::Options options = fuzz::parse_options(argc, argv);
        if (geteuid() != 0) {
            std::cerr << "hcamem_fuzz: to be started as root\n";
            return 2;
        }
        std::cout << "seed " << options.seed << std::endl;
        return fuzz::Supervisor(options).run() ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "hcamem_fuzz: " << error.what() << '\n';
        return 2;
    }
}
