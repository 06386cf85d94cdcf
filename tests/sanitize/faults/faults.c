// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes the faults that the sanitizing kernel is there to find, one for each name
 * written to the parameter "make", so that a run without a report means something.
 */
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

MODULE_DESCRIPTION("Faults for the detectors of hcamem's tests to find");
MODULE_LICENSE("GPL");

static DEFINE_MUTEX(first_lock);
static DEFINE_MUTEX(second_lock);
static DEFINE_SPINLOCK(spin);

/* The compiler must not see through it. */
static void *opaque(void *pointer)
{
	OPTIMIZER_HIDE_VAR(pointer);
	return pointer;
}

static void use_after_free(void)
{
	char *memory = opaque(kmalloc(64, GFP_KERNEL));

	if (!memory)
		return;
	kfree(memory);
	/* A write would spoil KASAN's list of freed memory, which lies there. */
	(void)READ_ONCE(*(char *)opaque(memory));
}

static void out_of_bounds(void)
{
	char *memory = opaque(kmalloc(64, GFP_KERNEL));

	if (!memory)
		return;
	(void)READ_ONCE(*(char *)opaque(memory + 64));
	kfree(memory);
}

/* A page that went back to the page allocator. */
static void freed_page(void)
{
	unsigned long page = __get_free_page(GFP_KERNEL);

	if (!page)
		return;
	free_page(page);
	(void)READ_ONCE(*(char *)opaque((void *)page));
}

static void lock_order(void)
{
	mutex_lock(&first_lock);
	mutex_lock(&second_lock);
	mutex_unlock(&second_lock);
	mutex_unlock(&first_lock);

	mutex_lock(&second_lock);
	mutex_lock(&first_lock);
	mutex_unlock(&first_lock);
	mutex_unlock(&second_lock);
}

static void sleep_under_a_spinlock(void)
{
	spin_lock(&spin);
	might_sleep();
	spin_unlock(&spin);
}

static void leak(void)
{
	unsigned int i;

	/* A few, since what a register or a stale stack still holds is no leak. */
	for (i = 0; i < 4; i++)
		memset(opaque(kmalloc(96, GFP_KERNEL)), 0, 96);
}

static void list_twice(void)
{
	static LIST_HEAD(head);
	static LIST_HEAD(entry);

	list_add(&entry, &head);
	list_add(&entry, &head);
	INIT_LIST_HEAD(&head);
}

/* As an importer that unmaps twice does. */
static void dma_unmap_twice(void)
{
	struct platform_device *device;
	void *memory = kmalloc(PAGE_SIZE, GFP_KERNEL);
	dma_addr_t address;

	device = platform_device_register_simple("hcamem_faults", PLATFORM_DEVID_NONE, NULL, 0);
	if (!memory || IS_ERR(device))
		goto out;
	if (!dma_coerce_mask_and_coherent(&device->dev, DMA_BIT_MASK(64))) {
		address = dma_map_single(&device->dev, memory, PAGE_SIZE, DMA_TO_DEVICE);
		if (!dma_mapping_error(&device->dev, address)) {
			dma_unmap_single(&device->dev, address, PAGE_SIZE, DMA_TO_DEVICE);
			dma_unmap_single(&device->dev, address, PAGE_SIZE, DMA_TO_DEVICE);
		}
	}
	platform_device_unregister(device);
out:
	kfree(memory);
}

static const struct {
	const char *name;
	void (*make)(void);
} faults[] = {
	{ "use_after_free", use_after_free },
	{ "out_of_bounds", out_of_bounds },
	{ "freed_page", freed_page },
	{ "lock_order", lock_order },
	{ "sleep_under_a_spinlock", sleep_under_a_spinlock },
	{ "leak", leak },
	{ "list_twice", list_twice },
	{ "dma_unmap_twice", dma_unmap_twice },
};

static int make_set(const char *value, const struct kernel_param *param)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (!sysfs_streq(value, faults[i].name))
			continue;
		faults[i].make();
		return 0;
	}
	return -EINVAL;
}

static const struct kernel_param_ops make_ops = { .set = make_set };
module_param_cb(make, &make_ops, NULL, 0200);
MODULE_PARM_DESC(make, "the fault to make");

static int __init faults_init(void)
{
	return 0;
}

static void __exit faults_exit(void)
{
}

module_init(faults_init);
module_exit(faults_exit);
