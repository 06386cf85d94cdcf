// SPDX-License-Identifier: GPL-2.0-only
/* vmf_insert_pfn_pmd() takes a pfn_t. */
#include <linux/mm.h>
#include <linux/huge_mm.h>
#include <linux/pfn_t.h>

vm_fault_t probe(struct vm_fault *vmf);
vm_fault_t probe(struct vm_fault *vmf)
{
	return vmf_insert_pfn_pmd(vmf, pfn_to_pfn_t(0), true);
}
