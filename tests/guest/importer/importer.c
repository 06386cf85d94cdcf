// SPDX-License-Identifier: GPL-2.0-only
/* Test only: a device that imports dma-bufs the way drivers do, step by step. */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "features.h"
#include "importer_uapi.h"

MODULE_DESCRIPTION("Imports dma-bufs for the tests of hcamem");
MODULE_LICENSE("GPL");
#ifdef HCAMEM_HAVE_IMPORT_NS_TOKEN
MODULE_IMPORT_NS(DMA_BUF);
#else
MODULE_IMPORT_NS("DMA_BUF");
#endif

#ifndef HCAMEM_HAVE_VMAP_UNLOCKED
#define dma_buf_vmap_unlocked dma_buf_vmap
#define dma_buf_vunmap_unlocked dma_buf_vunmap
#endif

struct importer {
	struct mutex lock;		/* one call at a time */
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attachment;
	struct sg_table *table;
	struct iosys_map map;
	bool dynamic, vmapped;
	unsigned int trimmed;		/* bytes cut off the first entry */
	atomic_t moves;
};

static struct platform_device *importer_device;

static void importer_move_notify(struct dma_buf_attachment *attachment)
{
	struct importer *importer = attachment->importer_priv;

	atomic_inc(&importer->moves);
}

static const struct dma_buf_attach_ops importer_ops = {
	.move_notify = importer_move_notify,
};

static int importer_attach(struct importer *importer, const struct importer_attach *args)
{
	struct device *dev = &importer_device->dev;
	struct dma_buf_attachment *attachment;
	struct dma_buf *dmabuf;

	if (importer->dmabuf)
		return -EBUSY;
	dmabuf = dma_buf_get(args->fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (args->kind == IMPORTER_DYNAMIC)
		attachment = dma_buf_dynamic_attach(dmabuf, dev, &importer_ops, importer);
	else
		attachment = dma_buf_attach(dmabuf, dev);
	if (IS_ERR(attachment)) {
		dma_buf_put(dmabuf);
		return PTR_ERR(attachment);
	}
	importer->dmabuf = dmabuf;
	importer->attachment = attachment;
	importer->dynamic = args->kind == IMPORTER_DYNAMIC;
	return 0;
}

/* This device, like many, takes segments of up to 64 KiB. */
static int importer_check(const struct importer *importer)
{
	unsigned int longest = dma_get_max_seg_size(importer->attachment->dev);
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(importer->table, sg, i)
		if (sg_dma_len(sg) > longest)
			return -EMSGSIZE;
	return 0;
}

static int importer_map(struct importer *importer)
{
	struct sg_table *table;
	int ret = 0;

	if (!importer->attachment || importer->table)
		return -EINVAL;
	if (!importer->dynamic) {
		table = dma_buf_map_attachment_unlocked(importer->attachment, DMA_BIDIRECTIONAL);
	} else {
		dma_resv_lock(importer->dmabuf->resv, NULL);
		ret = dma_buf_pin(importer->attachment);
		if (!ret) {
			table = dma_buf_map_attachment(importer->attachment, DMA_BIDIRECTIONAL);
			if (IS_ERR(table))
				dma_buf_unpin(importer->attachment);
		}
		dma_resv_unlock(importer->dmabuf->resv);
	}
	if (ret)
		return ret;
	if (IS_ERR(table))
		return PTR_ERR(table);
	importer->table = table;
	return importer_check(importer);
}

static int importer_trim(struct importer *importer)
{
	struct scatterlist *first;

	if (!importer->table || importer->trimmed)
		return -EINVAL;
	first = importer->table->sgl;
	if (sg_dma_len(first) <= PAGE_SIZE)
		return -ERANGE;
	sg_dma_address(first) += PAGE_SIZE;
	sg_dma_len(first) -= PAGE_SIZE;
	importer->trimmed = PAGE_SIZE;
	return 0;
}

static int importer_restore(struct importer *importer)
{
	struct scatterlist *first;

	if (!importer->table || !importer->trimmed)
		return -EINVAL;
	first = importer->table->sgl;
	sg_dma_address(first) -= importer->trimmed;
	sg_dma_len(first) += importer->trimmed;
	importer->trimmed = 0;
	return 0;
}

static int importer_unmap(struct importer *importer)
{
	if (!importer->table)
		return -EINVAL;
	importer_restore(importer);
	if (!importer->dynamic) {
		dma_buf_unmap_attachment_unlocked(importer->attachment, importer->table,
						  DMA_BIDIRECTIONAL);
	} else {
		dma_resv_lock(importer->dmabuf->resv, NULL);
		dma_buf_unmap_attachment(importer->attachment, importer->table, DMA_BIDIRECTIONAL);
		dma_buf_unpin(importer->attachment);
		dma_resv_unlock(importer->dmabuf->resv);
	}
	importer->table = NULL;
	return 0;
}

static int importer_vmap_on(struct importer *importer)
{
	int ret;

	if (!importer->dmabuf || importer->vmapped)
		return -EINVAL;
	ret = dma_buf_vmap_unlocked(importer->dmabuf, &importer->map);
	importer->vmapped = !ret;
	return ret;
}

static int importer_vmap_off(struct importer *importer)
{
	if (!importer->vmapped)
		return -EINVAL;
	dma_buf_vunmap_unlocked(importer->dmabuf, &importer->map);
	importer->vmapped = false;
	return 0;
}

static int importer_vmap_ask(struct importer *importer)
{
	struct dma_buf *dmabuf = importer->dmabuf;
	struct iosys_map map;
	int ret;

	if (!dmabuf || importer->vmapped)
		return -EINVAL;
	dma_resv_lock(dmabuf->resv, NULL);
	ret = dmabuf->ops->vmap(dmabuf, &map);
	if (!ret)
		dmabuf->ops->vunmap(dmabuf, &map);
	dma_resv_unlock(dmabuf->resv);
	return ret;
}

static int importer_detach(struct importer *importer)
{
	if (!importer->attachment || importer->table || importer->vmapped)
		return -EINVAL;
	dma_buf_detach(importer->dmabuf, importer->attachment);
	dma_buf_put(importer->dmabuf);
	importer->attachment = NULL;
	importer->dmabuf = NULL;
	return 0;
}

static int importer_describe(struct importer *importer, struct importer_table __user *out)
{
	struct importer_table description = { .moves = atomic_read(&importer->moves) };
	struct scatterlist *sg;
	int i;

	if (!importer->table)
		return -EINVAL;
	for_each_sgtable_sg(importer->table, sg, i) {
		description.cpu_bytes += sg->length;
		description.entries++;
	}
	for_each_sgtable_dma_sg(importer->table, sg, i)
		description.dma_bytes += sg_dma_len(sg);
	return copy_to_user(out, &description, sizeof(description)) ? -EFAULT : 0;
}

/* One page at most. */
static int importer_copy_part(struct importer *importer, const struct importer_copy *args,
			      u64 done, size_t size, void *buffer)
{
	void __user *user = u64_to_user_ptr(args->addr + done);
	u64 offset = args->offset + done;
	size_t moved = size;

	if (args->write && copy_from_user(buffer, user, size))
		return -EFAULT;
	if (args->view == IMPORTER_TABLE && args->write)
		moved = sg_pcopy_from_buffer(importer->table->sgl, importer->table->orig_nents,
					     buffer, size, offset);
	else if (args->view == IMPORTER_TABLE)
		moved = sg_pcopy_to_buffer(importer->table->sgl, importer->table->orig_nents,
					   buffer, size, offset);
	else if (args->write)
		iosys_map_memcpy_to(&importer->map, offset, buffer, size);
	else
		iosys_map_memcpy_from(buffer, &importer->map, offset, size);
	if (moved != size)
		return -ERANGE;
	if (!args->write && copy_to_user(user, buffer, size))
		return -EFAULT;
	return 0;
}

static int importer_copy(struct importer *importer, const struct importer_copy *args)
{
	void *buffer;
	u64 done, part;
	int ret = 0;

	if (args->view == IMPORTER_TABLE ? !importer->table : !importer->vmapped)
		return -EINVAL;
	if (args->offset > importer->dmabuf->size ||
	    args->length > importer->dmabuf->size - args->offset)
		return -ERANGE;
	buffer = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (!buffer)
		return -ENOMEM;
	for (done = 0; !ret && done < args->length; done += part) {
		part = min_t(u64, args->length - done, PAGE_SIZE);
		ret = importer_copy_part(importer, args, done, part, buffer);
	}
	kfree(buffer);
	return ret;
}

static long importer_call(struct importer *importer, unsigned int cmd, void __user *arg)
{
	struct importer_attach attach;
	struct importer_copy copy;

	switch (cmd) {
	case IMPORTER_ATTACH:
		if (copy_from_user(&attach, arg, sizeof(attach)))
			return -EFAULT;
		return importer_attach(importer, &attach);
	case IMPORTER_COPY:
		if (copy_from_user(&copy, arg, sizeof(copy)))
			return -EFAULT;
		return importer_copy(importer, &copy);
	case IMPORTER_DETACH:
		return importer_detach(importer);
	case IMPORTER_MAP:
		return importer_map(importer);
	case IMPORTER_UNMAP:
		return importer_unmap(importer);
	case IMPORTER_VMAP_ON:
		return importer_vmap_on(importer);
	case IMPORTER_VMAP_OFF:
		return importer_vmap_off(importer);
	case IMPORTER_VMAP_ASK:
		return importer_vmap_ask(importer);
	case IMPORTER_DESCRIBE:
		return importer_describe(importer, arg);
	case IMPORTER_TRIM:
		return importer_trim(importer);
	case IMPORTER_RESTORE:
		return importer_restore(importer);
	}
	return -ENOTTY;
}

static long importer_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct importer *importer = file->private_data;
	long ret;

	mutex_lock(&importer->lock);
	ret = importer_call(importer, cmd, (void __user *)arg);
	mutex_unlock(&importer->lock);
	return ret;
}

static int importer_open(struct inode *inode, struct file *file)
{
	struct importer *importer = kzalloc(sizeof(*importer), GFP_KERNEL);

	if (!importer)
		return -ENOMEM;
	mutex_init(&importer->lock);
	file->private_data = importer;
	return 0;
}

static int importer_release(struct inode *inode, struct file *file)
{
	struct importer *importer = file->private_data;

	importer_vmap_off(importer);
	importer_unmap(importer);
	importer_detach(importer);
	kfree(importer);
	return 0;
}

static const struct file_operations importer_fops = {
	.owner		= THIS_MODULE,
	.open		= importer_open,
	.release	= importer_release,
	.unlocked_ioctl	= importer_ioctl,
};

static struct miscdevice importer_misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "hcamem_importer",
	.fops	= &importer_fops,
};

static int __init importer_init(void)
{
	int ret;

	importer_device = platform_device_register_simple("hcamem-importer", -1, NULL, 0);
	if (IS_ERR(importer_device))
		return PTR_ERR(importer_device);
	ret = dma_coerce_mask_and_coherent(&importer_device->dev, DMA_BIT_MASK(64));
	if (!ret)
		ret = misc_register(&importer_misc);
	if (ret)
		platform_device_unregister(importer_device);
	return ret;
}

static void __exit importer_exit(void)
{
	misc_deregister(&importer_misc);
	platform_device_unregister(importer_device);
}

module_init(importer_init);
module_exit(importer_exit);
