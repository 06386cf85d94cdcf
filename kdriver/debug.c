// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who holds what, for the administrator: debugfs hcamem/regions and
 * hcamem/frames, both root only, and /proc/PID/fdinfo of an open node.
 */
#include <linux/debugfs.h>
#include <linux/mm.h>
#include <linux/seq_file.h>
#include <linux/string_helpers.h>

#include "hcamem.h"

static struct dentry *hcamem_debugfs;

static const char * const hcamem_mapping_names[] = {
	[HCAMEM_MAPPING_HUGE] = "huge",
	[HCAMEM_MAPPING_PAGES] = "pages",
};

static const char * const hcamem_fork_names[] = {
	[HCAMEM_FORK_POLICY_ZERO] = "zero",
	[HCAMEM_FORK_POLICY_DONTCOPY] = "dontcopy",
	[HCAMEM_FORK_POLICY_SHARE] = "share",
};

/*
 * The position is the id of the last region shown: between two reads the list
 * may change, and counting regions would then skip one or show one twice.
 */
static void *hcamem_regions_start(struct seq_file *seq, loff_t *pos)
{
	struct hcamem_region *region;

	mutex_lock(&hcamem_regions_lock);
	list_for_each_entry(region, &hcamem_regions, all)
		if (region->id > *pos)
			return region;
	return NULL;
}

static void *hcamem_regions_next(struct seq_file *seq, void *at, loff_t *pos)
{
	struct hcamem_region *region = at;

	*pos = region->id;
	if (list_is_last(&region->all, &hcamem_regions))
		return NULL;
	return list_next_entry(region, all);
}

static void hcamem_regions_stop(struct seq_file *seq, void *at)
{
	mutex_unlock(&hcamem_regions_lock);
}

/* How many chunks of each size, as "4194304x16 65536x3". */
static void hcamem_show_chunks(struct seq_file *seq, const struct hcamem_region *region)
{
	unsigned long i = 0, same;

	while (i < region->nr_chunks) {
		for (same = i; same < region->nr_chunks; same++)
			if (region->chunks[same].pages != region->chunks[i].pages)
				break;
		seq_printf(seq, "%s%lux%lu", i ? " " : "", region->chunks[i].pages << PAGE_SHIFT,
			   same - i);
		i = same;
	}
}

static int hcamem_regions_show(struct seq_file *seq, void *at)
{
	const struct hcamem_region *region = at;
	const struct hcamem_charge *charge = &region->charge;

	seq_printf(seq, "region=%llu created=%llu node=%s uid=%u pid=%d bytes=%llu charged=%llu mapping=%s fork=%s mappings=%d dma_bufs=%d comm=",
		   region->id, region->created, dev_name(&charge->node->dev),
		   from_kuid_munged(seq_user_ns(seq), hcamem_charge_uid(charge)), region->pid,
		   (u64)region->pages << PAGE_SHIFT, (u64)READ_ONCE(charge->pages) << PAGE_SHIFT,
		   hcamem_mapping_names[region->mapping], hcamem_fork_names[region->fork],
		   atomic_read(&region->mappings), atomic_read(&region->exports));
	seq_escape_mem(seq, region->comm, strlen(region->comm),
		       ESCAPE_OCTAL | ESCAPE_NAP | ESCAPE_APPEND, " \\");
	seq_puts(seq, " chunks=");
	hcamem_show_chunks(seq, region);
	seq_putc(seq, '\n');
	return 0;
}

static int hcamem_frames_show(struct seq_file *seq, void *at)
{
	const struct hcamem_region *region = at;
	unsigned long i;

	for (i = 0; i < region->nr_chunks; i++)
		seq_printf(seq, "%llu %#lx %lu %s\n", region->id,
			   page_to_pfn(region->chunks[i].page), region->chunks[i].pages,
			   page_zone(region->chunks[i].page)->name);
	return 0;
}

static const struct seq_operations hcamem_regions_sops = {
	.start	= hcamem_regions_start,
	.next	= hcamem_regions_next,
	.stop	= hcamem_regions_stop,
	.show	= hcamem_regions_show,
};
DEFINE_SEQ_ATTRIBUTE(hcamem_regions);

static const struct seq_operations hcamem_frames_sops = {
	.start	= hcamem_regions_start,
	.next	= hcamem_regions_next,
	.stop	= hcamem_regions_stop,
	.show	= hcamem_frames_show,
};
DEFINE_SEQ_ATTRIBUTE(hcamem_frames);

void hcamem_debug_fdinfo(struct seq_file *seq, struct file *file)
{
	struct hcamem_file *priv = file->private_data;
	struct hcamem_region *region;
	unsigned long id, count = 0;
	u64 bytes = 0;

	xa_lock(&priv->regions);
	xa_for_each(&priv->regions, id, region) {
		bytes += (u64)region->pages << PAGE_SHIFT;
		count++;
	}
	xa_unlock(&priv->regions);
	seq_printf(seq, "hcamem-node:\t%s\nhcamem-gone:\t%d\nhcamem-unmapped-regions:\t%lu\nhcamem-unmapped-bytes:\t%llu\n",
		   dev_name(&priv->node->dev), hcamem_node_gone(priv->node), count, bytes);
}

/* Without debugfs the module works as well. */
void __init hcamem_debug_init(void)
{
	hcamem_debugfs = debugfs_create_dir("hcamem", NULL);
	debugfs_create_file("regions", 0400, hcamem_debugfs, NULL, &hcamem_regions_fops);
	debugfs_create_file("frames", 0400, hcamem_debugfs, NULL, &hcamem_frames_fops);
}

void hcamem_debug_exit(void)
{
	debugfs_remove_recursive(hcamem_debugfs);
}
