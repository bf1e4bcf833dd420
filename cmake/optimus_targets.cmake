# optimus_library(FOLDER SOURCES ... PROTOS ... DEPS <our folders> LIBS <external targets>)
#   One static library per folder, target name optimus_<folder with _>. Protos are compiled with
#   imports relative to the repository root; generated headers are included the same way.
# optimus_test(FOLDER NAME SOURCES ... DEPS ... LIBS ...): a GoogleTest binary, run by CTest
#   case by case, from the repository root. OPTIMUS_TEST_OPTIONS: compiler options of test sources
#   alone (sanitizers make optimising them slow, and what they call is optimised in its library).
# Target `generated`: the sources that others include and protoc writes, without compiling anything
#   (tools/check_tidy.sh).
include(${CMAKE_CURRENT_LIST_DIR}/layers.cmake)
set(OPTIMUS_GEN_DIR ${CMAKE_BINARY_DIR}/gen)
add_custom_target(generated)

function(optimus_target_name folder out)
  string(REPLACE "/" "_" _n "${folder}")
  set(${out} optimus_${_n} PARENT_SCOPE)
endfunction()

function(optimus_link target folder)
  foreach(_dep IN LISTS ARGN)
    optimus_check_link_edge(${folder} ${_dep})
    optimus_target_name(${_dep} _dep_target)
    target_link_libraries(${target} PUBLIC ${_dep_target})
  endforeach()
endfunction()

function(optimus_compile_proto target proto)
  set(_src ${CMAKE_CURRENT_SOURCE_DIR}/${proto})
  file(RELATIVE_PATH _rel ${CMAKE_SOURCE_DIR} ${_src})
  string(REGEX REPLACE "\\.proto$" "" _base "${_rel}")
  set(_outs ${OPTIMUS_GEN_DIR}/${_base}.pb.cc ${OPTIMUS_GEN_DIR}/${_base}.pb.h)
  file(MAKE_DIRECTORY ${OPTIMUS_GEN_DIR})
  add_custom_command(
    OUTPUT ${_outs}
    COMMAND protobuf::protoc --proto_path=${CMAKE_SOURCE_DIR} --cpp_out=${OPTIMUS_GEN_DIR} ${_rel}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DEPENDS ${_src} VERBATIM)
  target_sources(${target} PRIVATE ${_outs})
  string(REPLACE "/" "_" _generated "generated_${_base}")
  add_custom_target(${_generated} DEPENDS ${_outs})
  add_dependencies(generated ${_generated})
  # Generated code is not ours to warn about.
  set_source_files_properties(${_outs} PROPERTIES COMPILE_OPTIONS "-w" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

function(optimus_library folder)
  cmake_parse_arguments(A "" "" "SOURCES;PROTOS;DEPS;LIBS" ${ARGN})
  optimus_target_name(${folder} _t)
  add_library(${_t} STATIC ${A_SOURCES})
  set_target_properties(${_t} PROPERTIES LINKER_LANGUAGE CXX)
  foreach(_p IN LISTS A_PROTOS)
    optimus_compile_proto(${_t} ${_p})
  endforeach()
  target_include_directories(${_t} PUBLIC ${CMAKE_SOURCE_DIR})
  target_include_directories(${_t} SYSTEM PUBLIC ${OPTIMUS_GEN_DIR})
  target_link_libraries(${_t} PUBLIC optimus_options ${A_LIBS})
  if(A_PROTOS)
    target_link_libraries(${_t} PUBLIC protobuf::libprotobuf)
  endif()
  optimus_link(${_t} ${folder} ${A_DEPS})
  optimus_precompile(${_t} library)
endfunction()

function(optimus_test folder name)
  if(NOT OPTIMUS_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE optimus_options GTest::gmock_main ${A_LIBS})
  target_compile_options(${name} PRIVATE ${OPTIMUS_TEST_OPTIONS})
  optimus_precompile(${name} test)
  foreach(_dep IN LISTS A_DEPS)
    optimus_target_name(${_dep} _dep_target)
    target_link_libraries(${name} PRIVATE ${_dep_target})
  endforeach()
  gtest_discover_tests(${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT 300)
endfunction()
