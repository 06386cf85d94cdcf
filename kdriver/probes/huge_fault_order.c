// SPDX-License-Identifier: GPL-2.0-only
/*
 * ->huge_fault takes an order. Where it takes an enum page_entry_size, which C takes for an
 * unsigned int, that is defined already, and ->huge_fault is called for DAX mappings only.
 */
enum page_entry_size { PROBE };

#include <linux/mm.h>

vm_fault_t probe(struct vm_fault *vmf, unsigned int order);
vm_fault_t probe(struct vm_fault *vmf, unsigned int order)
{
	const struct vm_operations_struct ops = { .huge_fault = probe };

	return ops.huge_fault(vmf, order);
}
