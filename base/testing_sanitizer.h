#pragma once
// For tests that limit address space: GCC and clang say differently that a sanitizer is on, which
// reserves more of it than any limit.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPTIMUS_SANITIZED_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OPTIMUS_SANITIZED_MEMORY 1
#endif
#endif
#if !defined(OPTIMUS_SANITIZED_MEMORY)
#define OPTIMUS_SANITIZED_MEMORY 0
#endif
