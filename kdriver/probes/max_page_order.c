// SPDX-License-Identifier: GPL-2.0-only
/* MAX_PAGE_ORDER is the largest order, not one more. */
#include <linux/mmzone.h>

int probe_order = MAX_PAGE_ORDER;
