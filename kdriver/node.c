// SPDX-License-Identifier: GPL-2.0-only
/* One character device per HCA: its life and its sysfs. */
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/slab.h>

#include "hcamem.h"

#define HCAMEM_MAX_NODES 256

static dev_t hcamem_devt;
static DEFINE_IDA(hcamem_ids);

static struct hcamem_node *node_of(struct device *dev)
{
	return container_of(dev, struct hcamem_node, dev);
}

static ssize_t ibdev_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct hcamem_node *node = node_of(dev);
	ssize_t len;

	mutex_lock(&node->lock);
	len = sysfs_emit(buf, "%s\n", node->name);
	mutex_unlock(&node->lock);
	return len;
}
static DEVICE_ATTR_RO(ibdev);

static ssize_t numa_node_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", node_of(dev)->numa_node);
}
static DEVICE_ATTR_RO(numa_node);

static ssize_t bytes_in_use_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	u64 pages = atomic_long_read(&node_of(dev)->pages);

	return sysfs_emit(buf, "%llu\n", pages << PAGE_SHIFT);
}
static DEVICE_ATTR_RO(bytes_in_use);

static ssize_t regions_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&node_of(dev)->regions));
}
static DEVICE_ATTR_RO(regions);

static struct attribute *hcamem_attrs[] = {
	&dev_attr_ibdev.attr,
	&dev_attr_numa_node.attr,
	&dev_attr_bytes_in_use.attr,
	&dev_attr_regions.attr,
	NULL,
};
ATTRIBUTE_GROUPS(hcamem);

/* Whoever may open an HCA may open its node; the limits do the guarding. */
static char *hcamem_devnode(hcamem_devnode_const struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return kasprintf(GFP_KERNEL, "infiniband/%s", dev_name(dev));
}

static struct class hcamem_class = {
	.name		= "hcamem",
	.devnode	= hcamem_devnode,
	.dev_groups	= hcamem_groups,
};

static void hcamem_node_release(struct device *dev)
{
	struct hcamem_node *node = node_of(dev);

	ida_free(&hcamem_ids, node->id);
	mutex_destroy(&node->lock);
	kfree(node);
}

struct hcamem_node *hcamem_node_add(struct ib_device *ibdev)
{
	struct hcamem_node *node;
	int ret;

	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return ERR_PTR(-ENOMEM);
	node->id = ida_alloc_max(&hcamem_ids, HCAMEM_MAX_NODES - 1, GFP_KERNEL);
	if (node->id < 0) {
		ret = node->id;
		kfree(node);
		return ERR_PTR(ret);
	}

	/* From here on put_device() is the one clean-up. */
	device_initialize(&node->dev);
	node->dev.class = &hcamem_class;
	node->dev.parent = ibdev->dev.parent;
	node->dev.release = hcamem_node_release;
	node->dev.devt = MKDEV(MAJOR(hcamem_devt), node->id);
	mutex_init(&node->lock);
	node->ibdev = ibdev;
	node->driver_id = ibdev->ops.driver_id;
	node->numa_node = ibdev_to_node(ibdev);
	if (ibdev->dma_device && dma_get_mask(ibdev->dma_device) < DMA_BIT_MASK(64) &&
	    dma_addressing_limited(ibdev->dma_device))
		node->zone = GFP_DMA32;
	strscpy(node->name, dev_name(&ibdev->dev), sizeof(node->name));
	ret = dev_set_name(&node->dev, "hcamem%d", node->id);
	if (ret)
		goto out_put;
	cdev_init(&node->cdev, &hcamem_fops);
	node->cdev.owner = THIS_MODULE;
	ret = cdev_device_add(&node->cdev, &node->dev);
	if (ret)
		goto out_put;
	return node;

out_put:
	put_device(&node->dev);
	return ERR_PTR(ret);
}

/*
 * Open files, mappings and dma-bufs outlive the HCA: their memory stays valid
 * until it is released. After this nothing touches the ib_device again.
 */
void hcamem_node_remove(struct hcamem_node *node)
{
	mutex_lock(&node->lock);
	WRITE_ONCE(node->ibdev, NULL);
	mutex_unlock(&node->lock);
	hcamem_events_gone(node);
	cdev_device_del(&node->cdev, &node->dev);
	put_device(&node->dev);
}

void hcamem_node_rename(struct hcamem_node *node, struct ib_device *ibdev)
{
	mutex_lock(&node->lock);
	strscpy(node->name, dev_name(&ibdev->dev), sizeof(node->name));
	mutex_unlock(&node->lock);
}

int __init hcamem_node_init(void)
{
	int ret;

	ret = alloc_chrdev_region(&hcamem_devt, 0, HCAMEM_MAX_NODES, "hcamem");
	if (ret)
		return ret;
	ret = class_register(&hcamem_class);
	if (ret)
		unregister_chrdev_region(hcamem_devt, HCAMEM_MAX_NODES);
	return ret;
}

void hcamem_node_exit(void)
{
	class_unregister(&hcamem_class);
	unregister_chrdev_region(hcamem_devt, HCAMEM_MAX_NODES);
	ida_destroy(&hcamem_ids);
}
