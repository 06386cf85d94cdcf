// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The device nodes of the hcamem module.
#ifndef HCAMEM_SOURCE_NODE_H
#define HCAMEM_SOURCE_NODE_H

#include <string>

#include <rdma/hcamem.h>

#include "os/file.h"

namespace hcamem::core {

struct node {
    std::string path;  // /dev/infiniband/hcamem0
    std::string ibdev; // its HCA at the time of the look-up
    file device;
    hcamem_info info{};
};

/// Opens the node of the named HCA; nullptr: of the first one. 0, or -errno with a message.
int open_node(const char* ibdev, node& opened);

/// Reads a sysfs attribute, without the final newline. Empty: it cannot be read.
std::string read_attribute(const std::string& path);

} // namespace hcamem::core

#endif
