// SPDX-License-Identifier: GPL-2.0-only
/* Regions in the address spaces of processes: mmap, faults, fork, ptrace. */
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "hcamem.h"

#define HCAMEM_PMD_PAGES (PMD_SIZE >> PAGE_SHIFT)

static const struct vm_operations_struct hcamem_vm_ops;

static void hcamem_mapping_release(struct kref *ref)
{
	struct hcamem_mapping_object *map = container_of(ref, struct hcamem_mapping_object, ref);

	atomic_dec(&map->region->mappings);
	hcamem_region_put(map->region);
	mmdrop(map->mm);
	kfree(map);
}

/* The mapping behind @vma, or NULL if @vma is not ours. Under the mmap_lock. */
struct hcamem_mapping_object *hcamem_mapping_of(struct vm_area_struct *vma)
{
	return vma->vm_ops == &hcamem_vm_ops ? vma->vm_private_data : NULL;
}

/*
 * Turn the child's copy of a VMA into what a private mapping of /dev/zero is:
 * zero-filled, swappable memory, charged to the child.
 *
 * dup_mmap() calls ->open before it copies page tables, and copies them unless
 * VM_WIPEONFORK is set by then. The parent's own flag cannot be relied upon:
 * MADV_KEEPONFORK and MADV_DOFORK take it away.
 */
static void hcamem_make_anonymous(struct vm_area_struct *vma)
{
	vma_set_anonymous(vma);
	vma->vm_private_data = NULL;
	hcamem_vm_flags_mod(vma, VM_WIPEONFORK,
			    VM_SHARED | VM_MAYSHARE | VM_PFNMAP | VM_MIXEDMAP | VM_DONTEXPAND);
	vma->vm_page_prot = vm_get_page_prot(vma->vm_flags);

	/* The parent's count, which the child began with, has no shared mappings. */
	if (vma->vm_flags & VM_WRITE)
		vma->vm_mm->data_vm += vma_pages(vma);
}

/* A VMA was split, moved, or copied into a child. */
static void hcamem_vma_open(struct vm_area_struct *vma)
{
	struct hcamem_mapping_object *map = vma->vm_private_data;

	if (vma->vm_mm == map->mm || map->region->fork == HCAMEM_FORK_POLICY_SHARE)
		kref_get(&map->ref);
	else
		hcamem_make_anonymous(vma);
}

static void hcamem_vma_close(struct vm_area_struct *vma)
{
	struct hcamem_mapping_object *map = vma->vm_private_data;

	kref_put(&map->ref, hcamem_mapping_release);
}

/* One 2 MiB entry, where address, region and memory are congruent and @vma covers it. */
static vm_fault_t hcamem_fault_pmd(struct vm_fault *vmf, const struct hcamem_chunk *chunk,
				   unsigned long index)
{
	unsigned long start = vmf->address & PMD_MASK;
	unsigned long back = (vmf->address - start) >> PAGE_SHIFT;
	pmd_t pmd = READ_ONCE(*vmf->pmd);
	struct page *page;

	/*
	 * Another thread may have mapped it since the fault: a huge entry must not
	 * be taken for a page table. A page table stays, and means that smaller
	 * entries were made here before.
	 */
	if (pmd_trans_huge(pmd))
		return VM_FAULT_NOPAGE;
	if (!pmd_none(pmd))
		return VM_FAULT_FALLBACK;
	if (start < vmf->vma->vm_start || vmf->vma->vm_end - start < PMD_SIZE)
		return VM_FAULT_FALLBACK;
	if (index < chunk->index + back ||
	    index - back + HCAMEM_PMD_PAGES > chunk->index + chunk->pages)
		return VM_FAULT_FALLBACK;
	page = nth_page(chunk->page, index - back - chunk->index);
	if (!IS_ALIGNED(page_to_pfn(page), HCAMEM_PMD_PAGES))
		return VM_FAULT_FALLBACK;
	return hcamem_insert_pmd(vmf, page_to_pfn(page), vmf->flags & FAULT_FLAG_WRITE);
}

/* Map what the 2 MiB around the fault hold of the mapping, 4 KiB each. */
static vm_fault_t hcamem_fault_ptes(struct vm_fault *vmf, const struct hcamem_chunk *chunk,
				    unsigned long index)
{
	unsigned long fault = vmf->address & PAGE_MASK;
	unsigned long address = max(fault & PMD_MASK, vmf->vma->vm_start);
	unsigned long end = min((fault & PMD_MASK) + PMD_SIZE, vmf->vma->vm_end);
	const struct hcamem_mapping_object *map = vmf->vma->vm_private_data;
	vm_fault_t ret;

	ret = vmf_insert_pfn(vmf->vma, fault, page_to_pfn(chunk->page) + index - chunk->index);
	if (ret != VM_FAULT_NOPAGE)
		return ret;

	index -= (fault - address) >> PAGE_SHIFT;
	chunk = hcamem_region_chunk(map->region, index);
	for (; address < end; address += PAGE_SIZE, index++) {
		if (index == chunk->index + chunk->pages)
			chunk++;
		if (vmf_insert_pfn(vmf->vma, address,
				   page_to_pfn(chunk->page) + index - chunk->index) !=
		    VM_FAULT_NOPAGE)
			break;	/* the page asked for is there: good enough */
	}
	return VM_FAULT_NOPAGE;
}

/* Map what is missing of @pages pages from @address on; a page in place stays. */
static int hcamem_insert_pages(struct vm_area_struct *vma, unsigned long address,
			       const struct hcamem_region *region, unsigned long index,
			       unsigned long pages)
{
	struct page *batch[32];

	while (pages) {
		const struct hcamem_chunk *chunk = hcamem_region_chunk(region, index);
		unsigned long n = min(pages, ARRAY_SIZE(batch)), left, i;
		int ret;

		n = min(n, chunk->index + chunk->pages - index);
		for (i = 0; i < n; i++)
			batch[i] = nth_page(chunk->page, index - chunk->index + i);
		left = n;
		ret = vm_insert_pages(vma, address, batch, &left);
		if (ret == -EBUSY)
			left--;
		else if (ret)
			return ret;
		n -= left;
		address += n << PAGE_SHIFT;
		index += n;
		pages -= n;
	}
	return 0;
}

/* Pinnable pages: map what the 2 MiB around the fault hold of the mapping. */
static vm_fault_t hcamem_fault_pages(struct vm_fault *vmf, const struct hcamem_region *region,
				     unsigned long index)
{
	unsigned long fault = vmf->address & PAGE_MASK;
	unsigned long start = max(fault & PMD_MASK, vmf->vma->vm_start);
	unsigned long end = min((fault & PMD_MASK) + PMD_SIZE, vmf->vma->vm_end);
	int ret;

	ret = hcamem_insert_pages(vmf->vma, start, region, index - ((fault - start) >> PAGE_SHIFT),
				  (end - start) >> PAGE_SHIFT);
	if (ret == -ENOMEM)
		return VM_FAULT_OOM;
	return ret ? VM_FAULT_SIGBUS : VM_FAULT_NOPAGE;
}

/* The page of the region that a fault is about; false: past its end. */
static bool hcamem_fault_index(const struct vm_fault *vmf, unsigned long *index)
{
	const struct hcamem_mapping_object *map = vmf->vma->vm_private_data;

	if (vmf->pgoff < map->pgoff || vmf->pgoff - map->pgoff >= map->pages)
		return false;
	*index = map->first + vmf->pgoff - map->pgoff;
	return true;
}

static vm_fault_t hcamem_fault(struct vm_fault *vmf)
{
	struct hcamem_mapping_object *map = vmf->vma->vm_private_data;
	const struct hcamem_region *region = map->region;
	const struct hcamem_chunk *chunk;
	unsigned long index;
	vm_fault_t ret;

	if (!hcamem_fault_index(vmf, &index))
		return VM_FAULT_SIGBUS;
	if (region->mapping == HCAMEM_MAPPING_PAGES)
		return hcamem_fault_pages(vmf, region, index);

	chunk = hcamem_region_chunk(region, index);
	ret = hcamem_fault_pmd(vmf, chunk, index);
	if (ret == VM_FAULT_FALLBACK)
		ret = hcamem_fault_ptes(vmf, chunk, index);
	return ret;
}

#ifdef HCAMEM_HAVE_HUGE_FAULT_ORDER
/*
 * The same for a 2 MiB entry, where the kernel asks for one: ->fault has the kernel allocate and
 * zero a page table first, which a 2 MiB entry has no use for. An entry that is there and has to
 * become writable is left to the kernel, which takes it out, and the fault comes again.
 */
static vm_fault_t hcamem_huge_fault(struct vm_fault *vmf, unsigned int order)
{
	struct hcamem_mapping_object *map = vmf->vma->vm_private_data;
	unsigned long index;

	if (order != HPAGE_PMD_ORDER || map->region->mapping != HCAMEM_MAPPING_HUGE ||
	    !pmd_none(READ_ONCE(*vmf->pmd)) || !hcamem_fault_index(vmf, &index))
		return VM_FAULT_FALLBACK;
	return hcamem_fault_pmd(vmf, hcamem_region_chunk(map->region, index), index);
}
#endif

/*
 * For debuggers: get_user_pages() does not take VM_PFNMAP areas. As for any
 * shared mapping, no force makes a read-only one writable.
 */
static int hcamem_access(struct vm_area_struct *vma, unsigned long address, void *buf, int len,
			 int write)
{
	struct hcamem_mapping_object *map = vma->vm_private_data;
	unsigned long index = hcamem_mapping_page(map, vma, address);
	struct page *page = hcamem_region_page(map->region, index);
	size_t size = min3((size_t)len, (size_t)(PAGE_SIZE - offset_in_page(address)),
			   (size_t)(vma->vm_end - address));
	char *at;

	if (write && !(vma->vm_flags & VM_WRITE))
		return -EACCES;
	at = (char *)kmap_local_page(page) + offset_in_page(address);
	if (write)
		memcpy(at, buf, size);
	else
		memcpy(buf, at, size);
	kunmap_local(at);
	return size;
}

static const struct vm_operations_struct hcamem_vm_ops = {
	.open	= hcamem_vma_open,
	.close	= hcamem_vma_close,
	.fault	= hcamem_fault,
#ifdef HCAMEM_HAVE_HUGE_FAULT_ORDER
	.huge_fault = hcamem_huge_fault,
#endif
	.access	= hcamem_access,
};

static struct hcamem_mapping_object *hcamem_mapping_alloc(struct vm_area_struct *vma)
{
	struct hcamem_mapping_object *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);

	if (!map)
		return NULL;
	kref_init(&map->ref);
	map->mm = vma->vm_mm;
	return map;
}

/* Takes over one reference on @region; cannot fail. */
static void hcamem_mapping_install(struct hcamem_mapping_object *map,
				   struct hcamem_region *region, struct vm_area_struct *vma)
{
	vm_flags_t flags = VM_DONTEXPAND | VM_DONTDUMP;

	flags |= region->mapping == HCAMEM_MAPPING_HUGE ? VM_PFNMAP : VM_MIXEDMAP;
	if (region->fork == HCAMEM_FORK_POLICY_ZERO)
		flags |= VM_WIPEONFORK;
	else if (region->fork == HCAMEM_FORK_POLICY_DONTCOPY)
		flags |= VM_DONTCOPY;
	hcamem_vm_flags_mod(vma, flags, VM_MAYEXEC);

	mmgrab(map->mm);
	atomic_inc(&region->mappings);
	map->region = region;
	vma->vm_private_data = map;
	vma->vm_ops = &hcamem_vm_ops;
}

static int hcamem_check_vma(struct vm_area_struct *vma)
{
	/* VM_MAYSHARE: a shared mapping through a read-only descriptor has no VM_SHARED. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	return 0;
}

/**
 * hcamem_map() - map pages of a region into a VMA that is being made
 * @region: a reference is taken
 * @vma: its vm_pgoff counts from @first
 * @first: page of the region
 * @pages: how many the VMA may at most reach
 */
int hcamem_map(struct hcamem_region *region, struct vm_area_struct *vma, unsigned long first,
	       unsigned long pages)
{
	struct hcamem_mapping_object *map;
	int ret;

	ret = hcamem_check_vma(vma);
	if (ret)
		return ret;
	map = hcamem_mapping_alloc(vma);
	if (!map)
		return -ENOMEM;
	map->first = first;
	map->pages = pages;
	hcamem_region_get(region);
	hcamem_mapping_install(map, region, vma);
	return 0;
}

/* Take the region created at the VMA's offset out of the file. */
static struct hcamem_region *hcamem_claim(struct hcamem_file *priv, struct vm_area_struct *vma)
{
	unsigned long shift = HCAMEM_OFFSET_SHIFT - PAGE_SHIFT;
	unsigned long id = vma->vm_pgoff >> shift;
	struct hcamem_region *region;

	if (id << shift != vma->vm_pgoff)
		return ERR_PTR(-ENXIO);
	xa_lock(&priv->regions);
	region = xa_load(&priv->regions, id);
	if (!region)
		region = ERR_PTR(-ENXIO);
	else if (region->pages != vma_pages(vma))
		region = ERR_PTR(-EINVAL);
	else
		__xa_erase(&priv->regions, id);
	xa_unlock(&priv->regions);
	return region;
}

/* mmap() at offset 0: obtain and map in one call, under the mmap_lock. */
static struct hcamem_region *hcamem_create_bare(struct hcamem_node *node,
						struct vm_area_struct *vma)
{
	struct hcamem_create args = {
		.size = vma->vm_end - vma->vm_start,
		.mapping = HCAMEM_MAPPING_PAGES,
		.fork = HCAMEM_FORK_POLICY_ZERO,
		.numa_node = NUMA_NO_NODE,
	};

	if (args.size > HCAMEM_BARE_MMAP_MAX) {
		pr_notice_ratelimited("%s: mmap() at offset 0 takes at most %lu bytes, %s[%d] asked for %llu; use HCAMEM_IOC_CREATE\n",
				      dev_name(&node->dev), HCAMEM_BARE_MMAP_MAX, current->comm,
				      task_pid_nr(current), args.size);
		return ERR_PTR(-EFBIG);
	}
	return hcamem_region_create(node, &args);
}

int hcamem_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct hcamem_file *priv = file->private_data;
	struct hcamem_mapping_object *map;
	struct hcamem_region *region;
	int ret;

	if (!(file->f_mode & FMODE_WRITE))
		return -EACCES;
	ret = hcamem_check_vma(vma);
	if (ret)
		return ret;
	map = hcamem_mapping_alloc(vma);
	if (!map)
		return -ENOMEM;
	if (vma->vm_pgoff)
		region = hcamem_claim(priv, vma);
	else
		region = hcamem_create_bare(priv->node, vma);
	if (IS_ERR(region)) {
		kfree(map);
		return PTR_ERR(region);
	}
	map->pgoff = vma->vm_pgoff;
	map->pages = region->pages;
	hcamem_mapping_install(map, region, vma);
	return 0;
}
