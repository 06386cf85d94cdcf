// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints of trace.h. */
#include "hcamem.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
