// SPDX-License-Identifier: GPL-2.0-only
/* Open files of a node and their ioctls. */
#include <linux/compat.h>
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/nospec.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "hcamem.h"

/* Offsets stay below 2^44 so that a 32-bit mmap2() can name them. */
#define HCAMEM_MAX_UNMAPPED ((1U << (44 - HCAMEM_OFFSET_SHIFT)) - 1)

static int hcamem_open(struct inode *inode, struct file *file)
{
	struct hcamem_node *node = container_of(inode->i_cdev, struct hcamem_node, cdev);
	struct hcamem_file *priv;
	int ret = 0;

	mutex_lock(&node->lock);
	if (!node->ibdev)
		ret = -ENODEV;
	else if (!rdma_dev_access_netns(node->ibdev, current->nsproxy->net_ns))
		ret = -EPERM;
	mutex_unlock(&node->lock);
	if (ret)
		return ret;

	priv = kzalloc(sizeof(*priv), GFP_KERNEL_ACCOUNT);
	if (!priv)
		return -ENOMEM;
	get_device(&node->dev);
	priv->node = node;
	xa_init_flags(&priv->regions, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	hcamem_events_open(priv);
	file->private_data = priv;
	return nonseekable_open(inode, file);
}

static int hcamem_release(struct inode *inode, struct file *file)
{
	struct hcamem_file *priv = file->private_data;
	struct hcamem_region *region;
	unsigned long id;

	hcamem_events_close(priv);
	xa_for_each(&priv->regions, id, region)
		hcamem_region_put(region);
	xa_destroy(&priv->regions);
	put_device(&priv->node->dev);
	kfree(priv);
	return 0;
}

static int hcamem_ioctl_info(struct hcamem_file *priv, void __user *arg, size_t size)
{
	struct hcamem_node *node = priv->node;
	struct hcamem_info info = {
		.abi_version = HCAMEM_ABI_VERSION,
		.driver_id = node->driver_id,
		.capabilities = HCAMEM_CAP_PAGES | HCAMEM_CAP_EXPORT | HCAMEM_CAP_EVENTS,
		.numa_node = node->numa_node,
		.gone = hcamem_node_gone(node),
		.max_bytes = READ_ONCE(hcamem_max_bytes),
		.max_bytes_per_user = READ_ONCE(hcamem_max_bytes_per_user),
		.reserve_bytes = READ_ONCE(hcamem_reserve_bytes),
		.total_bytes = (u64)hcamem_total_pages() << PAGE_SHIFT,
		.user_bytes = (u64)hcamem_user_pages() << PAGE_SHIFT,
		.node_bytes = (u64)atomic_long_read(&node->pages) << PAGE_SHIFT,
	};

	BUILD_BUG_ON(sizeof(info.ibdev) < sizeof(node->name));
	if (IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		info.capabilities |= HCAMEM_CAP_HUGE;
	mutex_lock(&node->lock);
	strscpy(info.ibdev, node->name, sizeof(info.ibdev));
	mutex_unlock(&node->lock);

	if (copy_to_user(arg, &info, min(size, sizeof(info))))
		return -EFAULT;
	if (size > sizeof(info) && clear_user(arg + sizeof(info), size - sizeof(info)))
		return -EFAULT;
	return 0;
}

static int hcamem_check_create(const struct hcamem_create *args)
{
	if (args->flags || args->offset || !args->size)
		return -EINVAL;
	if (args->mapping != HCAMEM_MAPPING_HUGE && args->mapping != HCAMEM_MAPPING_PAGES)
		return -EINVAL;
	if (args->mapping == HCAMEM_MAPPING_HUGE && !IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		return -EINVAL;
	if (args->fork > HCAMEM_FORK_POLICY_SHARE)
		return -EINVAL;
	if (args->numa_node != NUMA_NO_NODE &&
	    (args->numa_node < 0 || args->numa_node >= MAX_NUMNODES ||
	     !node_online(args->numa_node)))
		return -EINVAL;
	return 0;
}

static int hcamem_ioctl_create(struct hcamem_file *priv, void __user *arg, size_t size)
{
	struct hcamem_region *region;
	struct hcamem_create args;
	u32 id;
	int ret;

	ret = copy_struct_from_user(&args, sizeof(args), arg, size);
	if (ret)
		return ret;
	ret = hcamem_check_create(&args);
	if (ret)
		return ret;
	region = hcamem_region_create(priv->node, &args);
	if (IS_ERR(region))
		return PTR_ERR(region);

	/* Reserve the id, tell the caller, and only then let mmap() find it. */
	ret = xa_alloc(&priv->regions, &id, NULL, XA_LIMIT(1, HCAMEM_MAX_UNMAPPED),
		       GFP_KERNEL_ACCOUNT);
	if (ret == -EBUSY)
		ret = -ENOSPC;
	if (ret)
		goto out_region;
	args.size = (u64)region->pages << PAGE_SHIFT;
	args.offset = (u64)id << HCAMEM_OFFSET_SHIFT;
	if (copy_to_user(arg, &args, min(size, sizeof(args)))) {
		ret = -EFAULT;
		goto out_id;
	}
	xa_store(&priv->regions, id, region, GFP_KERNEL); /* reserved: cannot fail */
	return 0;

out_id:
	xa_erase(&priv->regions, id);
out_region:
	hcamem_region_put(region);
	return ret;
}

static int hcamem_ioctl_export(struct hcamem_file *priv, void __user *arg, size_t size)
{
	struct hcamem_export args;
	struct dma_buf *dmabuf;
	int ret;

	ret = copy_struct_from_user(&args, sizeof(args), arg, size);
	if (ret)
		return ret;
	if (args.flags)
		return -EINVAL;
	args.fd = get_unused_fd_flags(O_CLOEXEC);
	if (args.fd < 0)
		return args.fd;
	ret = hcamem_export_range(priv->node, &args, &dmabuf);
	if (ret)
		goto out_fd;
	if (copy_to_user(arg, &args, min(size, sizeof(args)))) {
		ret = -EFAULT;
		goto out_dmabuf;
	}
	fd_install(args.fd, dmabuf->file); /* hands the dma-buf's reference over */
	return 0;

out_dmabuf:
	dma_buf_put(dmabuf);
out_fd:
	put_unused_fd(args.fd);
	return ret;
}

/* The first version of each structure; a caller may pass less only if it grew since. */
static const struct {
	unsigned int dir;
	size_t min_size;
	bool writes;
	int (*call)(struct hcamem_file *priv, void __user *arg, size_t size);
} hcamem_calls[] = {
	[_IOC_NR(HCAMEM_IOC_INFO)] = {
		_IOC_READ, sizeof(struct hcamem_info), false, hcamem_ioctl_info },
	[_IOC_NR(HCAMEM_IOC_CREATE)] = {
		_IOC_READ | _IOC_WRITE, sizeof(struct hcamem_create), true, hcamem_ioctl_create },
	[_IOC_NR(HCAMEM_IOC_EXPORT)] = {
		_IOC_READ | _IOC_WRITE, sizeof(struct hcamem_export), true, hcamem_ioctl_export },
};

static long hcamem_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	unsigned int nr = array_index_nospec(_IOC_NR(cmd), ARRAY_SIZE(hcamem_calls));

	if (_IOC_TYPE(cmd) != HCAMEM_IOC_MAGIC || _IOC_NR(cmd) >= ARRAY_SIZE(hcamem_calls) ||
	    _IOC_DIR(cmd) != hcamem_calls[nr].dir)
		return -ENOTTY;
	if (_IOC_SIZE(cmd) < hcamem_calls[nr].min_size)
		return -EINVAL;
	if (hcamem_calls[nr].writes && (file->f_mode & (FMODE_READ | FMODE_WRITE)) !=
						(FMODE_READ | FMODE_WRITE))
		return -EBADF;
	return hcamem_calls[nr].call(file->private_data, (void __user *)arg, _IOC_SIZE(cmd));
}

const struct file_operations hcamem_fops = {
	.owner			= THIS_MODULE,
	.open			= hcamem_open,
	.release		= hcamem_release,
	.mmap			= hcamem_mmap,
	.get_unmapped_area	= thp_get_unmapped_area,
	.read			= hcamem_events_read,
	.poll			= hcamem_events_poll,
	.show_fdinfo		= hcamem_debug_fdinfo,
	.unlocked_ioctl		= hcamem_ioctl,
	.compat_ioctl		= compat_ptr_ioctl,
};
