// SPDX-License-Identifier: GPL-2.0-only
/*
 * ->huge_fault takes an order. Kernels whose ->huge_fault takes something else call it for DAX
 * mappings only.
 */
#include <linux/mm.h>

vm_fault_t probe(struct vm_fault *vmf, unsigned int order);
vm_fault_t probe(struct vm_fault *vmf, unsigned int order)
{
	const struct vm_operations_struct ops = { .huge_fault = probe };

	return ops.huge_fault(vmf, order);
}
