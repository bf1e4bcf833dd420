# optimus_precompile(TARGET library|test): its C++ sources start from a precompiled header that all
# targets of the kind share. A header of one set of options is of no use to another: tests have
# OPTIMUS_TEST_OPTIONS.
function(optimus_precompiled_header kind)
  add_library(optimus_precompiled_${kind} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled/${kind}.cc)
  target_include_directories(optimus_precompiled_${kind} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(optimus_precompiled_${kind} PRIVATE optimus_options ${ARGN})
  target_precompile_headers(optimus_precompiled_${kind} PRIVATE
                            ${CMAKE_SOURCE_DIR}/cmake/precompiled/${kind}.h)
endfunction()

set(_absl absl::status absl::statusor absl::strings absl::time absl::span)
optimus_precompiled_header(library ${_absl})
if(OPTIMUS_BUILD_TESTS)
  optimus_precompiled_header(test ${_absl} GTest::gmock_main)
  target_compile_options(optimus_precompiled_test PRIVATE ${OPTIMUS_TEST_OPTIONS})
endif()

function(optimus_precompile target kind)
  target_precompile_headers(${target} REUSE_FROM optimus_precompiled_${kind})
endfunction()
