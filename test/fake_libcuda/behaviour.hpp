// The functions that do more than succeed. generate.py reads this file: a symbol gets the behaviour
// of its API name if the types of its arguments are the same. So one declaration serves all
// revisions and stream modes that agree, and an API that changed has two.
#pragma once

#include "types.hpp"

namespace fake {

// device.cpp
Status cuInit(uint32_t flags);
Status cuDriverGetVersion(int32_t* version);
Status cuDeviceGetCount(int32_t* count);
Status cuDeviceGet(int32_t* device, int32_t ordinal);
Status cuDeviceGetName(void* name, int32_t length, int32_t device);
Status cuDeviceGetPCIBusId(void* id, int32_t length, int32_t device);
Status cuDeviceGetUuid(void* uuid, int32_t device);
Status cuDeviceGetAttribute(int32_t* value, uint32_t attribute, int32_t device);
Status cuDeviceComputeCapability(int32_t* major, int32_t* minor, int32_t device);
Status cuDeviceTotalMem(uint64_t* bytes, int32_t device);
Status cuDeviceCanAccessPeer(int32_t* can, int32_t device, int32_t peer);
Status cuGetErrorName(uint32_t error, void* name);
Status cuGetErrorString(uint32_t error, void* text);
Status cuGetExportTable(void* table, void* id);
Status cuGetProcAddress(const char* symbol, void* entry, int32_t version, uint64_t flags);
Status cuGetProcAddress(const char* symbol, void* entry, int32_t version, uint64_t flags,
                        void* found);

// context.cpp
Status cuDevicePrimaryCtxRetain(Handle* context, int32_t device);
Status cuDevicePrimaryCtxRelease(int32_t device);
Status cuDevicePrimaryCtxReset(int32_t device);
Status cuDevicePrimaryCtxGetState(int32_t device, uint32_t* flags, int32_t* active);
Status cuCtxCreate(Handle* context, uint32_t flags, int32_t device);
Status cuCtxCreate(Handle* context, void* parameters, uint32_t flags, int32_t device);
Status cuCtxDestroy(Handle context);
Status cuCtxSetCurrent(Handle context);
Status cuCtxGetCurrent(Handle* context);
Status cuCtxPushCurrent(Handle context);
Status cuCtxPopCurrent(Handle* context);
Status cuCtxGetDevice(int32_t* device);
Status cuCtxSynchronize();
Status cuCtxSynchronize(Handle context);

// memory.cpp
Status cuMemAlloc(DevicePtr* pointer, uint64_t size);
Status cuMemAllocManaged(DevicePtr* pointer, uint64_t size, uint32_t flags);
Status cuMemAllocPitch(DevicePtr* pointer, uint64_t* pitch, uint64_t width, uint64_t height,
                       uint32_t element_size);
Status cuMemAllocAsync(DevicePtr* pointer, uint64_t size, Handle stream);
Status cuMemAllocFromPoolAsync(DevicePtr* pointer, uint64_t size, Handle pool, Handle stream);
Status cuMemFree(DevicePtr pointer);
Status cuMemFreeAsync(DevicePtr pointer, Handle stream);
Status cuMemGetInfo(uint64_t* free, uint64_t* total);
Status cuMemGetAddressRange(DevicePtr* base, uint64_t* size, DevicePtr pointer);
Status cuMemAllocHost(void** pointer, uint64_t size);
Status cuMemHostAlloc(void** pointer, uint64_t size, uint32_t flags);
Status cuMemFreeHost(void* pointer);
Status cuMemHostRegister(void* pointer, uint64_t size, uint32_t flags);
Status cuMemHostUnregister(void* pointer);
Status cuMemHostGetDevicePointer(DevicePtr* device_pointer, void* pointer, uint32_t flags);
Status cuPointerGetAttribute(void* data, uint32_t attribute, DevicePtr pointer);

// pool.cpp
Status cuMemPoolCreate(Handle* pool, void* properties);
Status cuMemPoolDestroy(Handle pool);
Status cuDeviceGetDefaultMemPool(Handle* pool, int32_t device);
Status cuDeviceGetMemPool(Handle* pool, int32_t device);
Status cuDeviceSetMemPool(int32_t device, Handle pool);
Status cuMemPoolSetAttribute(Handle pool, uint32_t attribute, void* value);
Status cuMemPoolGetAttribute(Handle pool, uint32_t attribute, void* value);

// vmm.cpp
Status cuMemGetAllocationGranularity(uint64_t* granularity, void* properties, uint32_t option);
Status cuMemAddressReserve(DevicePtr* pointer, uint64_t size, uint64_t alignment, DevicePtr wanted,
                           uint64_t flags);
Status cuMemAddressFree(DevicePtr pointer, uint64_t size);
Status cuMemCreate(Handle* handle, uint64_t size, void* properties, uint64_t flags);
Status cuMemRelease(Handle handle);
Status cuMemMap(DevicePtr pointer, uint64_t size, uint64_t offset, Handle handle, uint64_t flags);
Status cuMemUnmap(DevicePtr pointer, uint64_t size);
Status cuMemSetAccess(DevicePtr pointer, uint64_t size, void* description, uint64_t count);

// module.cpp
Status cuModuleLoad(Handle* module, const char* path);
Status cuModuleLoadData(Handle* module, void* image);
Status cuModuleLoadDataEx(Handle* module, void* image, uint32_t option_count, void* options,
                          void* values);
Status cuModuleLoadFatBinary(Handle* module, void* image);
Status cuModuleUnload(Handle module);
Status cuModuleGetFunction(Handle* function, Handle module, const char* name);
Status cuModuleGetFunctionCount(uint32_t* count, Handle module);
Status cuModuleEnumerateFunctions(Handle* functions, uint32_t count, Handle module);
Status cuLibraryLoadData(Handle* library, void* code, void* jit_options, void* jit_values,
                         uint32_t jit_count, void* options, void* values, uint32_t count);
Status cuLibraryLoadFromFile(Handle* library, const char* path, void* jit_options, void* jit_values,
                             uint32_t jit_count, void* options, void* values, uint32_t count);
Status cuLibraryUnload(Handle library);
Status cuLibraryGetKernel(Handle* kernel, Handle library, const char* name);
Status cuLibraryGetKernelCount(uint32_t* count, Handle library);
Status cuKernelGetFunction(Handle* function, Handle kernel);
Status cuKernelGetLibrary(Handle* library, Handle kernel);
Status cuFuncGetModule(Handle* module, Handle function);
Status cuFuncGetName(void* name, Handle function);
Status cuKernelGetName(void* name, Handle kernel);
Status cuFuncGetAttribute(int32_t* value, uint32_t attribute, Handle function);
Status cuKernelGetAttribute(int32_t* value, uint32_t attribute, Handle kernel, int32_t device);
Status cuFuncGetParamInfo(Handle function, uint64_t index, uint64_t* offset, uint64_t* size);
Status cuKernelGetParamInfo(Handle kernel, uint64_t index, uint64_t* offset, uint64_t* size);
Status cuFuncSetAttribute(Handle function, uint32_t attribute, int32_t value);
Status cuKernelSetAttribute(uint32_t attribute, int32_t value, Handle kernel, int32_t device);
Status cuModuleGetGlobal(DevicePtr* pointer, uint64_t* size, Handle module, const char* name);
Status cuLibraryGetGlobal(DevicePtr* pointer, uint64_t* size, Handle library, const char* name);

// copy.cpp
Status cuMemcpy(DevicePtr to, DevicePtr from, uint64_t size);
Status cuMemcpyAsync(DevicePtr to, DevicePtr from, uint64_t size, Handle stream);
Status cuMemcpyHtoD(DevicePtr to, void* from, uint64_t size);
Status cuMemcpyHtoDAsync(DevicePtr to, void* from, uint64_t size, Handle stream);
Status cuMemcpyDtoH(void* to, DevicePtr from, uint64_t size);
Status cuMemcpyDtoHAsync(void* to, DevicePtr from, uint64_t size, Handle stream);
Status cuMemcpyDtoD(DevicePtr to, DevicePtr from, uint64_t size);
Status cuMemcpyDtoDAsync(DevicePtr to, DevicePtr from, uint64_t size, Handle stream);
Status cuMemcpyPeer(DevicePtr to, Handle to_context, DevicePtr from, Handle from_context,
                    uint64_t size);
Status cuMemcpyPeerAsync(DevicePtr to, Handle to_context, DevicePtr from, Handle from_context,
                         uint64_t size, Handle stream);
Status cuMemcpy2D(void* copy);
Status cuMemcpy2DUnaligned(void* copy);
Status cuMemcpy2DAsync(void* copy, Handle stream);
Status cuMemcpy3D(void* copy);
Status cuMemcpy3DAsync(void* copy, Handle stream);
Status cuMemcpy3DPeer(void* copy);
Status cuMemcpy3DPeerAsync(void* copy, Handle stream);
Status cuMemcpyHtoAAsync(Handle array, uint64_t offset, void* from, uint64_t size, Handle stream);
Status cuMemcpyAtoHAsync(void* to, Handle array, uint64_t offset, uint64_t size, Handle stream);
Status cuMemcpyBatchAsync(void* to, void* from, void* sizes, uint64_t count, void* attributes,
                          void* starts, uint64_t attribute_count, Handle stream);
Status cuMemsetD8(DevicePtr to, uint8_t value, uint64_t count);
Status cuMemsetD16(DevicePtr to, uint16_t value, uint64_t count);
Status cuMemsetD32(DevicePtr to, uint32_t value, uint64_t count);
Status cuMemsetD8Async(DevicePtr to, uint8_t value, uint64_t count, Handle stream);
Status cuMemsetD16Async(DevicePtr to, uint16_t value, uint64_t count, Handle stream);
Status cuMemsetD32Async(DevicePtr to, uint32_t value, uint64_t count, Handle stream);
Status cuMemsetD2D8Async(DevicePtr to, uint64_t pitch, uint8_t value, uint64_t width,
                         uint64_t height, Handle stream);
Status cuMemsetD2D16Async(DevicePtr to, uint64_t pitch, uint16_t value, uint64_t width,
                          uint64_t height, Handle stream);
Status cuMemsetD2D32Async(DevicePtr to, uint64_t pitch, uint32_t value, uint64_t width,
                          uint64_t height, Handle stream);

// stream.cpp
Status cuStreamCreate(Handle* stream, uint32_t flags);
Status cuStreamCreateWithPriority(Handle* stream, uint32_t flags, int32_t priority);
Status cuStreamDestroy(Handle stream);
Status cuStreamSynchronize(Handle stream);
Status cuStreamQuery(Handle stream);
Status cuStreamWaitEvent(Handle stream, Handle event, uint32_t flags);
Status cuLaunchHostFunc(Handle stream, void* function, void* data);
Status cuStreamAddCallback(Handle stream, void* callback, void* data, uint32_t flags);
Status cuStreamWriteValue32(Handle stream, DevicePtr address, uint32_t value, uint32_t flags);
Status cuStreamWriteValue64(Handle stream, DevicePtr address, uint64_t value, uint32_t flags);
Status cuStreamWaitValue32(Handle stream, DevicePtr address, uint32_t value, uint32_t flags);
Status cuStreamWaitValue64(Handle stream, DevicePtr address, uint64_t value, uint32_t flags);
Status cuStreamBatchMemOp(Handle stream, uint32_t count, void* operations, uint32_t flags);
Status cuEventCreate(Handle* event, uint32_t flags);
Status cuEventDestroy(Handle event);
Status cuEventRecord(Handle event, Handle stream);
Status cuEventRecordWithFlags(Handle event, Handle stream, uint32_t flags);
Status cuEventSynchronize(Handle event);
Status cuEventElapsedTime(float* milliseconds, Handle start, Handle end);

// capture.cpp
Status cuStreamBeginCapture(Handle stream);
Status cuStreamBeginCapture(Handle stream, uint32_t mode);
Status cuStreamBeginCaptureToGraph(Handle stream, Handle graph, void* nodes, void* edges,
                                   uint64_t count, uint32_t mode);
Status cuStreamEndCapture(Handle stream, Handle* graph);
Status cuStreamIsCapturing(Handle stream, void* status);
Status cuStreamGetCaptureInfo(Handle stream, void* status, uint64_t* id, Handle* graph, void* nodes,
                              uint64_t* count);
Status cuStreamGetCaptureInfo(Handle stream, void* status, uint64_t* id, Handle* graph, void* nodes,
                              void* edges, uint64_t* count);

// launch.cpp
Status cuLaunchKernel(Handle function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                      uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared,
                      Handle stream, void* parameters, void* extra);
Status cuLaunchCooperativeKernel(Handle function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                 uint32_t block_x, uint32_t block_y, uint32_t block_z,
                                 uint32_t shared, Handle stream, void* parameters);
Status cuLaunchKernelEx(void* config, Handle function, void* parameters, void* extra);

// graph.cpp
Status cuGraphCreate(Handle* graph, uint32_t flags);
Status cuGraphDestroy(Handle graph);
Status cuGraphClone(Handle* clone, Handle graph);
Status cuGraphNodeFindInClone(Handle* node, Handle original, Handle clone);
Status cuGraphChildGraphNodeGetGraph(Handle node, Handle* graph);
Status cuGraphNodeGetType(Handle node, void* type);
Status cuGraphGetEdges(Handle graph, void* from, void* to, uint64_t* count);
Status cuGraphGetEdges(Handle graph, void* from, void* to, void* data, uint64_t* count);
Status cuGraphKernelNodeGetParams(Handle node, void* parameters);
Status cuGraphKernelNodeGetAttribute(Handle node, uint32_t attribute, void* value);
Status cuGraphKernelNodeSetAttribute(Handle node, uint32_t attribute, void* value);
Status cuGraphMemcpyNodeGetParams(Handle node, void* copy);
Status cuGraphMemsetNodeGetParams(Handle node, void* fill);
Status cuGraphEventRecordNodeGetEvent(Handle node, Handle* event);
Status cuGraphEventWaitNodeGetEvent(Handle node, Handle* event);
Status cuGraphGetNodes(Handle graph, Handle* nodes, uint64_t* count);
Status cuGraphDestroyNode(Handle node);
Status cuGraphAddKernelNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                            void* parameters);
Status cuGraphAddMemcpyNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                            void* copy, Handle context);
Status cuGraphAddMemsetNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                            void* fill, Handle context);
Status cuGraphAddHostNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                          void* parameters);
Status cuGraphAddChildGraphNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                                Handle child);
Status cuGraphAddEmptyNode(Handle* node, Handle graph, void* dependencies, uint64_t count);
Status cuGraphAddEventRecordNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                                 Handle event);
Status cuGraphAddEventWaitNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                               Handle event);
Status cuGraphAddExternalSemaphoresSignalNode(Handle* node, Handle graph, void* dependencies,
                                              uint64_t count, void* parameters);
Status cuGraphAddExternalSemaphoresWaitNode(Handle* node, Handle graph, void* dependencies,
                                            uint64_t count, void* parameters);
Status cuGraphAddBatchMemOpNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                                void* parameters);
Status cuGraphAddMemAllocNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                              void* parameters);
Status cuGraphAddMemFreeNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                             DevicePtr pointer);
Status cuGraphAddNode(Handle* node, Handle graph, void* dependencies, uint64_t count,
                      void* parameters);
Status cuGraphAddNode(Handle* node, Handle graph, void* dependencies, void* edges, uint64_t count,
                      void* parameters);
Status cuGraphKernelNodeSetParams(Handle node, void* parameters);
Status cuGraphMemcpyNodeSetParams(Handle node, void* copy);
Status cuGraphMemsetNodeSetParams(Handle node, void* fill);
Status cuGraphHostNodeSetParams(Handle node, void* parameters);
Status cuGraphNodeSetParams(Handle node, void* parameters);

// graph_exec.cpp
Status cuGraphInstantiate(Handle* executable, Handle graph, Handle* error_node, void* log,
                          uint64_t log_size);
Status cuGraphInstantiateWithFlags(Handle* executable, Handle graph, uint64_t flags);
Status cuGraphInstantiateWithParams(Handle* executable, Handle graph, void* parameters);
Status cuGraphExecUpdate(Handle executable, Handle graph, void* result);
Status cuGraphExecUpdate(Handle executable, Handle graph, Handle* error_node, void* result);
Status cuGraphExecDestroy(Handle executable);
Status cuGraphExecKernelNodeSetParams(Handle executable, Handle node, void* parameters);
Status cuGraphExecMemcpyNodeSetParams(Handle executable, Handle node, void* copy, Handle context);
Status cuGraphExecMemsetNodeSetParams(Handle executable, Handle node, void* fill, Handle context);
Status cuGraphExecHostNodeSetParams(Handle executable, Handle node, void* parameters);
Status cuGraphExecNodeSetParams(Handle executable, Handle node, void* parameters);
Status cuGraphExecChildGraphNodeSetParams(Handle executable, Handle node, Handle child);
Status cuGraphNodeSetEnabled(Handle executable, Handle node, uint32_t enabled);
Status cuGraphLaunch(Handle executable, Handle stream);

}  // namespace fake
