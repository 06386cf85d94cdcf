// SPDX-License-Identifier: GPL-2.0-only
/* VMA flags are changed by accessors. */
#include <linux/mm.h>

void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	vm_flags_mod(vma, VM_DONTEXPAND, VM_MAYEXEC);
}
