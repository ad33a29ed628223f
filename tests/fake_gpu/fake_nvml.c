/* A stand-in for NVIDIA's management library, libnvidia-ml.so.1, on machines without a GPU.
 *
 * It shows as many GPUs as FAKE_NVML_GPUS says (none when unset), each idle, with 8 GiB of memory, without MIG, and near every
 * core that the process may use. That is all that dask-cuda and Dask's scheduler ask before they give each GPU a worker
 * of its own; whoever then calls CUDA itself is told by CUDA that there is no driver.
 *
 * Signatures and result codes are those of nvml.h. A device's handle is its index plus one, so that no handle is null.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { SUCCESS = 0, ERROR_INVALID_ARGUMENT = 2, ERROR_NOT_FOUND = 6 } result;
typedef void *device;

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct utilization { unsigned gpu, memory; };

static const unsigned long long MEMORY_BYTES = 8ull << 30;
static const char UUID_FORMAT[] = "GPU-%08x-0000-0000-0000-000000000000";

static unsigned num_gpus(void)
{
    const char *text = getenv("FAKE_NVML_GPUS");
    return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static unsigned index_of(device gpu)
{
    return (unsigned)(uintptr_t)gpu - 1;
}

/* The library */

result nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return SUCCESS;
}

result nvmlInit_v2(void)
{
    return SUCCESS;
}

result nvmlShutdown(void)
{
    return SUCCESS;
}

const char *nvmlErrorString(result code)
{
    return code == SUCCESS ? "Success" : code == ERROR_NOT_FOUND ? "Not Found" : "Invalid Argument";
}

result nvmlSystemGetDriverVersion(char *text, unsigned length)
{
    snprintf(text, length, "580.00");
    return SUCCESS;
}

result nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13000;
    return SUCCESS;
}

/* Which GPUs there are */

result nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = num_gpus();
    return SUCCESS;
}

result nvmlDeviceGetHandleByIndex_v2(unsigned index, device *gpu)
{
    if (index >= num_gpus())
        return ERROR_INVALID_ARGUMENT;
    *gpu = (device)(uintptr_t)(index + 1);
    return SUCCESS;
}

result nvmlDeviceGetHandleByUUID(const char *uuid, device *gpu)
{
    unsigned index;
    return sscanf(uuid, UUID_FORMAT, &index) == 1 && index < num_gpus() ? nvmlDeviceGetHandleByIndex_v2(index, gpu) : ERROR_NOT_FOUND;
}

result nvmlDeviceGetIndex(device gpu, unsigned *index)
{
    *index = index_of(gpu);
    return SUCCESS;
}

result nvmlDeviceGetUUID(device gpu, char *text, unsigned length)
{
    snprintf(text, length, UUID_FORMAT, index_of(gpu));
    return SUCCESS;
}

result nvmlDeviceGetName(device gpu, char *text, unsigned length)
{
    (void)gpu;
    snprintf(text, length, "Fake GPU");
    return SUCCESS;
}

/* What each of them is like */

result nvmlDeviceGetMemoryInfo(device gpu, struct memory *info)
{
    (void)gpu;
    *info = (struct memory){.total = MEMORY_BYTES, .free = MEMORY_BYTES};
    return SUCCESS;
}

result nvmlDeviceGetMemoryInfo_v2(device gpu, struct memory_v2 *info)
{
    (void)gpu;
    *info = (struct memory_v2){.version = info->version, .total = MEMORY_BYTES, .free = MEMORY_BYTES};
    return SUCCESS;
}

result nvmlDeviceGetUtilizationRates(device gpu, struct utilization *rates)
{
    (void)gpu;
    *rates = (struct utilization){0};
    return SUCCESS;
}

result nvmlDeviceGetComputeRunningProcesses_v3(device gpu, unsigned *count, void *processes)
{
    (void)gpu, (void)processes;
    *count = 0;
    return SUCCESS;
}

result nvmlDeviceGetComputeRunningProcesses_v2(device gpu, unsigned *count, void *processes)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(gpu, count, processes);
}

/* Workers bind themselves to these cores: one that is not theirs would be refused */
result nvmlDeviceGetCpuAffinity(device gpu, unsigned num_words, unsigned long *words)
{
    cpu_set_t allowed;
    (void)gpu;
    memset(words, 0, num_words * sizeof *words);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return ERROR_NOT_FOUND;
    for (unsigned core = 0; core < num_words * 8 * sizeof *words; core++)
        if (CPU_ISSET(core, &allowed))
            words[core / (8 * sizeof *words)] |= 1ul << core % (8 * sizeof *words);
    return SUCCESS;
}

/* No GPU is divided into instances (MIG) */

result nvmlDeviceGetMigMode(device gpu, unsigned *current, unsigned *pending)
{
    (void)gpu;
    *current = *pending = 0;
    return SUCCESS;
}

result nvmlDeviceIsMigDeviceHandle(device gpu, unsigned *is_instance)
{
    (void)gpu;
    *is_instance = 0;
    return SUCCESS;
}

result nvmlDeviceGetMaxMigDeviceCount(device gpu, unsigned *count)
{
    (void)gpu;
    *count = 0;
    return SUCCESS;
}
