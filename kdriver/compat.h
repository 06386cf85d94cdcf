/* SPDX-License-Identifier: GPL-2.0-only */
/* Everything that differs between kernels, behind the probes in probes/. */
#ifndef HCAMEM_COMPAT_H
#define HCAMEM_COMPAT_H

#include <linux/mm.h>
#include <linux/huge_mm.h>
#include <linux/mmzone.h>
#include <linux/module.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "features.h"

#ifdef HCAMEM_HAVE_VM_FLAGS_SET
#define hcamem_vm_flags_mod(vma, set, clear) vm_flags_mod(vma, set, clear)
#else
static inline void hcamem_vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags & ~clear) | set;
}
#endif

#ifdef HCAMEM_HAVE_DEVNODE_CONST
#define hcamem_devnode_const const
#else
#define hcamem_devnode_const
#endif

#ifdef HCAMEM_HAVE_IMPORT_NS_TOKEN
#define HCAMEM_IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define HCAMEM_IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

#ifdef HCAMEM_HAVE_MAX_PAGE_ORDER
#define HCAMEM_MAX_ORDER MAX_PAGE_ORDER
#else
#define HCAMEM_MAX_ORDER (MAX_ORDER - 1)
#endif

#ifdef HCAMEM_HAVE_PFN_T
#include <linux/pfn_t.h>
#else
#define pfn_to_pfn_t(pfn) (pfn)
#endif

static inline vm_fault_t hcamem_insert_pmd(struct vm_fault *vmf, unsigned long pfn, bool write)
{
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	return vmf_insert_pfn_pmd(vmf, pfn_to_pfn_t(pfn), write);
#else
	return VM_FAULT_FALLBACK;
#endif
}

#ifdef HCAMEM_HAVE_SHRINKER_ALLOC
static inline struct shrinker *hcamem_shrinker_alloc(void)
{
	return shrinker_alloc(0, KBUILD_MODNAME);
}

static inline int hcamem_shrinker_register(struct shrinker *shrinker)
{
	shrinker_register(shrinker);
	return 0;
}

static inline void hcamem_shrinker_free(struct shrinker *shrinker)
{
	shrinker_free(shrinker);
}
#else
static inline struct shrinker *hcamem_shrinker_alloc(void)
{
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);

	if (shrinker)
		shrinker->seeks = DEFAULT_SEEKS;
	return shrinker;
}

static inline int hcamem_shrinker_register(struct shrinker *shrinker)
{
	return register_shrinker(shrinker, KBUILD_MODNAME);
}

/* Also for one that was not registered. */
static inline void hcamem_shrinker_free(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
	kfree(shrinker);
}
#endif

#endif
