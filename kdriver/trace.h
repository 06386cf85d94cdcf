/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hcamem

#if !defined(HCAMEM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HCAMEM_TRACE_H

#include <linux/cred.h>
#include <linux/device.h>
#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(hcamem_region_class,
	TP_PROTO(const struct hcamem_region *region),
	TP_ARGS(region),
	TP_STRUCT__entry(
		__field(u64, region)
		__field(u64, bytes)
		__field(u32, mapping)
		__field(u32, fork)
		__field(unsigned long, chunks)
	),
	TP_fast_assign(
		__entry->region = region->id;
		__entry->bytes = (u64)region->pages << PAGE_SHIFT;
		__entry->mapping = region->mapping;
		__entry->fork = region->fork;
		__entry->chunks = region->nr_chunks;
	),
	TP_printk("region=%llu bytes=%llu mapping=%u fork=%u chunks=%lu",
		  __entry->region, __entry->bytes, __entry->mapping, __entry->fork, __entry->chunks)
);

DEFINE_EVENT(hcamem_region_class, hcamem_region_create,
	TP_PROTO(const struct hcamem_region *region), TP_ARGS(region));
DEFINE_EVENT(hcamem_region_class, hcamem_region_destroy,
	TP_PROTO(const struct hcamem_region *region), TP_ARGS(region));

TRACE_EVENT(hcamem_export,
	TP_PROTO(const struct hcamem_region *region, unsigned long first, unsigned long pages),
	TP_ARGS(region, first, pages),
	TP_STRUCT__entry(
		__field(u64, region)
		__field(u64, offset)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->region = region->id;
		__entry->offset = (u64)first << PAGE_SHIFT;
		__entry->bytes = (u64)pages << PAGE_SHIFT;
	),
	TP_printk("region=%llu offset=%llu bytes=%llu",
		  __entry->region, __entry->offset, __entry->bytes)
);

TRACE_EVENT(hcamem_attach,
	TP_PROTO(const struct hcamem_region *region, struct device *device),
	TP_ARGS(region, device),
	TP_STRUCT__entry(
		__field(u64, region)
		__array(char, device, 32)
	),
	TP_fast_assign(
		__entry->region = region->id;
		strscpy(__entry->device, dev_name(device), sizeof(__entry->device));
	),
	TP_printk("region=%llu device=%s", __entry->region, __entry->device)
);

TRACE_EVENT(hcamem_charge_refused,
	TP_PROTO(u64 bytes, u64 limit, int error),
	TP_ARGS(bytes, limit, error),
	TP_STRUCT__entry(
		__field(u32, uid)
		__field(u64, bytes)
		__field(u64, limit)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->uid = from_kuid(&init_user_ns, current_uid());
		__entry->bytes = bytes;
		__entry->limit = limit;
		__entry->error = error;
	),
	TP_printk("uid=%u bytes=%llu limit=%llu error=%d",
		  __entry->uid, __entry->bytes, __entry->limit, __entry->error)
);

TRACE_EVENT(hcamem_event,
	TP_PROTO(const char *node, u32 type, u64 wanted),
	TP_ARGS(node, type, wanted),
	TP_STRUCT__entry(
		__array(char, node, 16)
		__field(u32, type)
		__field(u64, wanted)
	),
	TP_fast_assign(
		strscpy(__entry->node, node, sizeof(__entry->node));
		__entry->type = type;
		__entry->wanted = wanted;
	),
	TP_printk("node=%s type=%u wanted=%llu", __entry->node, __entry->type, __entry->wanted)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
