# The kinds of target of this project. Files are listed, never globbed; DEPS are the arrows of
# docs/ARCHITECTURE.md, which tests/check_arrows.py holds against the #include lines.

add_library(tamis_warnings INTERFACE)
target_compile_options(tamis_warnings INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(TAMIS_PRECOMPILED)
    # What is precompiled counts as no system header: it sees faults in the standard library that are none.
    target_compile_options(tamis_warnings INTERFACE
      -Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  # g++ 12 sees overlapping copies in `"text" + std::string` when it optimizes (GCC bug 105651).
  # clang-tidy, which is given the same options, does not know this one.
  if(NOT CMAKE_CXX_CLANG_TIDY)
    target_compile_options(tamis_warnings INTERFACE -Wno-restrict)
  endif()
  if(TAMIS_SANITIZE)
    # The checks that it puts in hide from it that a std::variant's value is there.
    target_compile_options(tamis_warnings INTERFACE -Wno-maybe-uninitialized)
    if(TAMIS_SANITIZE MATCHES thread)
      # asio's fences; the thread sanitizer knows the atomics beside them.
      target_compile_options(tamis_warnings INTERFACE -Wno-tsan)
    endif()
  endif()
endif()

# Headers of others that most files read, compiled once: reading them was half of a file's time. A
# file still includes what it uses: the preset release alone is built with this.
set(TAMIS_PRECOMPILED_HEADERS
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <condition_variable> <cstdint>
  <cstdio> <cstdlib> <cstring> <deque> <functional> <limits> <list> <map> <memory> <mutex>
  <optional> <set> <shared_mutex> <span> <string> <string_view> <thread> <tuple> <unordered_map>
  <utility> <variant> <vector>)
set(TAMIS_PRECOMPILED_PROTOBUF
  <google/protobuf/generated_message_reflection.h> <google/protobuf/message.h>
  <google/protobuf/repeated_field.h>)

# tamis_precompiled(NAME HEADER...): target tamis_precompiled_NAME, for tamis_use_precompiled.
function(tamis_precompiled name)
  if(NOT TAMIS_PRECOMPILED)
    return()
  endif()
  add_library(tamis_precompiled_${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
  target_compile_features(tamis_precompiled_${name} PUBLIC cxx_std_20)
  target_precompile_headers(tamis_precompiled_${name} PRIVATE ${ARGN})
  set_target_properties(tamis_precompiled_${name} PROPERTIES CXX_CLANG_TIDY "")
endfunction()

# tamis_use_precompiled(TARGET NAME)
function(tamis_use_precompiled target name)
  if(TARGET tamis_precompiled_${name})
    target_precompile_headers(${target} REUSE_FROM tamis_precompiled_${name})
  endif()
endfunction()

# tamis_library(base SOURCES status.cc ... [HEADERS status.h ...] DEPS ... EXTERNAL ... [HIDDEN ...] [ALONE a.cc ...]):
# target tamis_base. HEADERS are those that are installed, HIDDEN the external libraries that none of
# the headers shows, ALONE the sources whose unnamed namespaces or using-declarations have names that another source
# of the library uses, too: TAMIS_UNITY compiles them by themselves.
function(tamis_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPS;EXTERNAL;HIDDEN;ALONE" ${ARGN})
  add_library(tamis_${name} STATIC ${ARG_SOURCES})
  add_library(tamis::${name} ALIAS tamis_${name})
  set_target_properties(tamis_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(tamis_${name} PUBLIC cxx_std_20)
  target_sources(tamis_${name} PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  target_include_directories(tamis_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
  list(TRANSFORM ARG_DEPS PREPEND tamis_)
  target_link_libraries(tamis_${name} PUBLIC ${ARG_DEPS} ${ARG_EXTERNAL}
    PRIVATE ${ARG_HIDDEN} $<BUILD_INTERFACE:tamis_warnings>)
  tamis_use_precompiled(tamis_${name} library)
  if(TAMIS_UNITY)
    tamis_unity(tamis_${name} ${ARG_SOURCES})
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# tamis_unity(TARGET SOURCE...): compiles eight sources at a time. Sources that Highway compiles once for each kind of
# processor include themselves, so they stay alone.
function(tamis_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  foreach(source ${ARGN})
    file(STRINGS ${source} alone REGEX "^#define HWY_TARGET_INCLUDE")
    if(alone)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A class of a .cc file whose fields are of its unnamed namespace: g++ takes the file for a header.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# tamis_proto(table table.proto): target tamis_table_proto, with the header tamis/table/table.pb.h. With IMPORTS cluster the
# files may import those of tamis_cluster_proto, by their names alone.
function(tamis_proto name)
  find_package(Protobuf REQUIRED)
  cmake_parse_arguments(ARG "" "" "IMPORTS" ${ARGN})
  set(imports)
  foreach(import ${ARG_IMPORTS})
    list(APPEND imports ${PROJECT_SOURCE_DIR}/tamis/${import})
  endforeach()
  list(TRANSFORM ARG_UNPARSED_ARGUMENTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  add_library(tamis_${name}_proto STATIC)
  protobuf_generate(TARGET tamis_${name}_proto LANGUAGE cpp
    PROTOS ${files}
    IMPORT_DIRS ${PROJECT_SOURCE_DIR} ${imports} PROTOC_OUT_DIR ${CMAKE_CURRENT_BINARY_DIR})
  target_include_directories(tamis_${name}_proto PUBLIC ${PROJECT_BINARY_DIR})
  foreach(import ${ARG_IMPORTS})
    target_include_directories(tamis_${name}_proto PUBLIC ${PROJECT_BINARY_DIR}/tamis/${import})
    target_link_libraries(tamis_${name}_proto PUBLIC tamis_${import}_proto)
  endforeach()
  target_link_libraries(tamis_${name}_proto PUBLIC protobuf::libprotobuf)
  set_target_properties(tamis_${name}_proto PROPERTIES CXX_CLANG_TIDY "")
  tamis_use_precompiled(tamis_${name}_proto library)
endfunction()

# tamis_test(coding_test SOURCES coding_test.cc DEPS base [ARGS ...] [LABELS ...] [TIMEOUT seconds])
function(tamis_test name)
  if(NOT TAMIS_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;EXTERNAL;ARGS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND tamis_)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} ${ARG_EXTERNAL} GTest::gmock GTest::gtest
    GTest::gtest_main tamis_warnings)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  # An emulated processor takes its time, and so does code that nobody has optimized.
  if(CMAKE_CROSSCOMPILING)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 10")
  elseif(CMAKE_CXX_FLAGS MATCHES "-O0")
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()

# tamis_benchmark(filter_benchmark SOURCES ... DEPS ...)
function(tamis_benchmark name)
  if(NOT TAMIS_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;EXTERNAL" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND tamis_)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} ${ARG_EXTERNAL}
    tamis_warnings)
endfunction()

# tamis_fuzzer(codec_fuzzer SOURCES codec_fuzzer.cc DEPS table CORPUS dir): with clang a libFuzzer target;
# always a test that runs the committed corpus through the same function.
function(tamis_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPS;EXTERNAL" ${ARGN})
  list(TRANSFORM ARG_DEPS PREPEND tamis_)
  if(TAMIS_FUZZERS)
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_DEPS} ${ARG_EXTERNAL} tamis_warnings)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  elseif(TAMIS_TESTS)
    add_executable(${name}_corpus ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/run_corpus.cc)
    target_link_libraries(${name}_corpus PRIVATE ${ARG_DEPS} ${ARG_EXTERNAL} tamis_warnings)
    add_test(NAME ${name}_corpus COMMAND ${name}_corpus ${ARG_CORPUS})
  endif()
endfunction()

# A program that was not built with the sanitizer, Debian's Python for one, loads a library that was:
# what its tests need for that. Its own leaks are no matter of ours, and a redis-server that is told of
# impossible sizes asks for the memory.
function(tamis_sanitized_guests)
  foreach(sanitizer address thread)
    if(TAMIS_SANITIZE MATCHES ${sanitizer})
      string(SUBSTRING ${sanitizer} 0 1 letter)
      execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${letter}san.so
        OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
      set_tests_properties(${ARGN} PROPERTIES
        ENVIRONMENT "LD_PRELOAD=${runtime};ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1")
    endif()
  endforeach()
endfunction()
