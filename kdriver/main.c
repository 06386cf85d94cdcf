// SPDX-License-Identifier: GPL-2.0-only
/* Module entry, and the client that follows the HCAs of this machine. */
#include <linux/module.h>

#include "hcamem.h"

MODULE_DESCRIPTION("Pinned DMA memory for RDMA, handed out by mmap()");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
HCAMEM_IMPORT_DMA_BUF;

module_param_named(max_bytes, hcamem_max_bytes, ullong, 0644);
MODULE_PARM_DESC(max_bytes, "most bytes handed out to all users together (default: half of the memory)");
module_param_named(max_bytes_per_user, hcamem_max_bytes_per_user, ullong, 0644);
MODULE_PARM_DESC(max_bytes_per_user, "most bytes handed out to one user (default: 0, only max_bytes counts)");
module_param_named(reserve_bytes, hcamem_reserve_bytes, ullong, 0644);
MODULE_PARM_DESC(reserve_bytes, "available memory that is never handed out (default: a sixteenth of the memory)");

module_param_named(low_bytes, hcamem_low_bytes, ullong, 0644);
MODULE_PARM_DESC(low_bytes, "available memory below which holders are asked to give some back (default: an eighth of the memory)");
module_param_named(critical_bytes, hcamem_critical_bytes, ullong, 0644);
MODULE_PARM_DESC(critical_bytes, "available memory below which they are asked urgently (default: a 32nd of the memory)");

static struct ib_client hcamem_client;

static int hcamem_add_one(struct ib_device *ibdev)
{
	struct hcamem_node *node = hcamem_node_add(ibdev);

	if (IS_ERR(node))
		return PTR_ERR(node);
	ib_set_client_data(ibdev, &hcamem_client, node);
	return 0;
}

static void hcamem_remove_one(struct ib_device *ibdev, void *client_data)
{
	hcamem_node_remove(client_data);
}

static void hcamem_rename_one(struct ib_device *ibdev, void *client_data)
{
	hcamem_node_rename(client_data, ibdev);
}

static struct ib_client hcamem_client = {
	.name		= "hcamem",
	.add		= hcamem_add_one,
	.remove		= hcamem_remove_one,
	.rename		= hcamem_rename_one,
	.no_kverbs_req	= 1,
};

static int __init hcamem_init(void)
{
	int ret;

	hcamem_charge_init();
	ret = hcamem_events_init();
	if (ret)
		return ret;
	ret = hcamem_power_init();
	if (ret)
		goto out_events;
	ret = hcamem_node_init();
	if (ret)
		goto out_power;
	hcamem_debug_init();
	ret = ib_register_client(&hcamem_client);
	if (ret)
		goto out_debug;
	return 0;

out_debug:
	hcamem_debug_exit();
	hcamem_node_exit();
out_power:
	hcamem_power_exit();
out_events:
	hcamem_events_exit();
	return ret;
}

static void __exit hcamem_exit(void)
{
	ib_unregister_client(&hcamem_client);
	hcamem_debug_exit();
	hcamem_node_exit();
	hcamem_power_exit();
	hcamem_events_exit();
	hcamem_region_exit();
}

module_init(hcamem_init);
module_exit(hcamem_exit);
