// A test that makes very many of something makes fewer where each takes very long.
#pragma once

// The factor: AddressSanitizer makes each step ten to thirty times as slow.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDABPF_FEWER 10
#endif
#endif
#ifndef CUDABPF_FEWER
#define CUDABPF_FEWER 1
#endif
constexpr int FEWER = CUDABPF_FEWER;
