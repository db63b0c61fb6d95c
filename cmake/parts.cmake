# What the parts of the tree are made with, and the list of what was left out.

# Notes that a part is not built, and why. Shown at the end of the
# configuration, and by `make test` (from left-out.txt).
function(stagger_leave_out part why)
    set_property(GLOBAL APPEND PROPERTY stagger_left_out "${part} (${why})")
endfunction()

function(stagger_say_left_out)
    get_property(parts GLOBAL PROPERTY stagger_left_out)
    set(text "")
    foreach(part IN LISTS parts)
        message(STATUS "left out: ${part}")
        string(APPEND text "left out: ${part}\n")
    endforeach()
    file(WRITE ${PROJECT_BINARY_DIR}/left-out.txt "${text}")
endfunction()

# A program of the tree's own, on the static library.
function(stagger_program target)
    add_executable(${target} ${ARGN})
    target_compile_definitions(${target} PRIVATE ${posix})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE stagger_static Threads::Threads)
endfunction()

# Sets lacks to the first adapter of these that is not there: "libuv" where UV is
# asked for without libstagger-uv.
function(stagger_find_lacks uv curl pq)
    set(lacks "" PARENT_SCOPE)
    if(uv AND NOT TARGET stagger_uv_static)
        set(lacks "libuv" PARENT_SCOPE)
    elseif(curl AND NOT TARGET stagger_curl_static)
        set(lacks "libcurl" PARENT_SCOPE)
    elseif(pq AND NOT TARGET stagger_pq_static)
        set(lacks "libpq" PARENT_SCOPE)
    endif()
endfunction()

# Sets out to the objects of a source that several tests share; it is compiled once.
# What it needs to be compiled comes from libraries.
function(stagger_shared_source out source)
    string(MAKE_C_IDENTIFIER "shared_${source}" target)
    if(NOT TARGET ${target})
        add_library(${target} OBJECT ${source})
        target_compile_definitions(${target} PRIVATE ${posix})
        target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}
                                                     ${PROJECT_SOURCE_DIR}/src)
        target_compile_options(${target} PRIVATE -Wno-pedantic)
        target_link_libraries(${target} PRIVATE stagger_static ${ARGN})
    endif()
    set(${out} $<TARGET_OBJECTS:${target}> PARENT_SCOPE)
endfunction()

# stagger_test(core backoff [THREADS] [UV] [CURL] [PQ] [FLOW] [HUB] [SIM] [WIDE]
#              [LONG]):
# the program core/test_backoff.c. THREADS: it starts some, and tsan runs it. UV,
# CURL, PQ: it needs libstagger-uv, libstagger-curl, libstagger-pq. FLOW: it tests
# flow. HUB: it tests the hub. SIM: it tests the simulator. WIDE: its model counts in
# 128 bits. LONG: it computes for long, and what is slow (valgrind, qemu) leaves it
# out; so are those of SIM.
#
# STAGGER_UNDER in the environment is put before the program (valgrind).
function(stagger_test part name)
    cmake_parse_arguments(PARSE_ARGV 2 arg "THREADS;UV;CURL;PQ;FLOW;HUB;SIM;WIDE;LONG" "" "")
    stagger_find_lacks("${arg_UV}" "${arg_CURL}" "${arg_PQ}")
    if(arg_WIDE AND CMAKE_SIZEOF_VOID_P LESS 8)
        stagger_leave_out("test ${part}/${name}" "no integers of 128 bits")
        return()
    elseif(arg_HUB AND NOT TARGET stagger_hub)
        stagger_leave_out("test ${part}/${name}" "no hub")
        return()
    elseif(lacks)
        stagger_leave_out("test ${part}/${name}" "no ${lacks}")
        return()
    endif()

    set(target ${part}_test_${name})
    stagger_program(${target} ${part}/test_${name}.c
                    $<TARGET_OBJECTS:stagger_harness>)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    # Their models count in 128 bits, which are not ISO C.
    target_compile_options(${target} PRIVATE -Wno-pedantic)
    target_link_libraries(${target} PRIVATE
                          $<$<BOOL:${arg_UV}>:stagger_uv_static>
                          $<$<BOOL:${arg_CURL}>:stagger_curl_static>
                          $<$<BOOL:${arg_PQ}>:stagger_pq_static>
                          $<$<BOOL:${arg_HUB}>:stagger_hub>
                          $<$<BOOL:${arg_SIM}>:stagger_model>)
    if(arg_FLOW)
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:stagger_flow>
                                         $<TARGET_OBJECTS:stagger_delivery>)
        if(part STREQUAL flow)
            stagger_shared_source(world flow/world.c)
            target_sources(${target} PRIVATE ${world})
        endif()
    endif()
    if(arg_SIM)
        stagger_shared_source(memory sim/memory.c)
        target_sources(${target} PRIVATE ${memory})
    endif()
    set_target_properties(
        ${target} PROPERTIES OUTPUT_NAME test_${name}
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${part})

    add_test(NAME ${part}/${name} COMMAND sh -c "exec $STAGGER_UNDER \"$0\""
                                          $<TARGET_FILE:${target}>)
    set_property(TEST ${part}/${name} PROPERTY LABELS unit)
    if(arg_THREADS)
        set_property(TEST ${part}/${name} APPEND PROPERTY LABELS threads)
    endif()
    if(arg_LONG OR arg_SIM)
        set_property(TEST ${part}/${name} APPEND PROPERTY LABELS long)
    endif()
endfunction()

# stagger_cpp_test(adapters cpp [UV]): the program adapters/test_cpp.cpp, as C++17
# and as C++20; those of coroutines as C++20 alone, with FROM 20.
function(stagger_cpp_test part name)
    cmake_parse_arguments(PARSE_ARGV 2 arg "UV" "FROM" "")
    stagger_find_lacks("${arg_UV}" OFF OFF)
    if(lacks)
        stagger_leave_out("test ${part}/${name}" "no ${lacks}")
        return()
    elseif(NOT stagger_has_cpp)
        return()
    endif()
    foreach(year 17 20)
        if(arg_FROM AND year LESS arg_FROM)
            continue()
        elseif(NOT cxx_std_${year} IN_LIST CMAKE_CXX_COMPILE_FEATURES)
            stagger_leave_out("test ${part}/${name}${year}" "no C++${year}")
            continue()
        endif()
        set(target ${part}_test_${name}${year})
        stagger_program(${target} ${part}/test_${name}.cpp
                        $<TARGET_OBJECTS:stagger_harness>)
        target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
        target_compile_definitions(${target} PRIVATE
            EXAMPLES="${PROJECT_SOURCE_DIR}/examples")
        target_link_libraries(${target} PRIVATE
                              $<$<BOOL:${arg_UV}>:stagger_uv_static>)
        set_target_properties(${target} PROPERTIES CXX_STANDARD ${year})
        add_test(NAME ${part}/${name}${year}
                 COMMAND sh -c "exec $STAGGER_UNDER \"$0\""
                         $<TARGET_FILE:${target}>)
        set_property(TEST ${part}/${name}${year} PROPERTY LABELS unit threads)
    endforeach()
endfunction()

# stagger_script(cli/plan.sh [arguments]): the test cli/plan, a script for sh or
# python3. It finds the command in STAGGER, the sources in STAGGER_SOURCE, and
# exits with 77 to say that something it needs is missing.
function(stagger_script script)
    string(REGEX REPLACE "\\.(sh|py)$" "" name ${script})
    get_filename_component(part ${script} DIRECTORY)
    if(script MATCHES "\\.sh$")
        set(runner sh)
    elseif(PYTHON3)
        set(runner ${PYTHON3})
    else()
        stagger_leave_out("test ${name}" "no python3")
        return()
    endif()
    add_test(NAME ${name}
             COMMAND ${runner} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN}
             COMMAND_EXPAND_LISTS)
    set(environment STAGGER_SOURCE=${PROJECT_SOURCE_DIR})
    if(TARGET stagger_cli)
        list(APPEND environment STAGGER=$<TARGET_FILE:stagger_cli>)
    endif()
    set_tests_properties(${name} PROPERTIES
        LABELS "script;${part}" SKIP_RETURN_CODE 77
        ENVIRONMENT "${environment}")
endfunction()

# stagger_browser_script(sim/web.py [arguments]): the same, in a browser; the
# stage `browser` of scripts/check runs it, and `test` does not.
function(stagger_browser_script script)
    stagger_script(${script} ${ARGN})
    string(REGEX REPLACE "\\.py$" "" name ${script})
    if(TEST ${name})
        set_property(TEST ${name} APPEND PROPERTY LABELS browser)
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
                     STAGGER_SHOTS=${PROJECT_BINARY_DIR}/shots)
    endif()
endfunction()

# stagger_example(connect [UV] [CURL] [CPP 17]): examples/connect.c, or .cpp, which
# runs to a good end.
function(stagger_example name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "UV;CURL" "CPP" "")
    stagger_find_lacks("${arg_UV}" "${arg_CURL}" OFF)
    if(lacks)
        stagger_leave_out("example ${name}" "no ${lacks}")
        return()
    endif()
    if(arg_CPP AND NOT cxx_std_${arg_CPP} IN_LIST CMAKE_CXX_COMPILE_FEATURES)
        stagger_leave_out("example ${name}" "no C++${arg_CPP}")
        return()
    endif()
    stagger_program(example_${name} ${name}.$<IF:$<BOOL:${arg_CPP}>,cpp,c>)
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name})
    if(arg_CPP)
        set_target_properties(example_${name} PROPERTIES CXX_STANDARD ${arg_CPP})
    endif()
    target_link_libraries(example_${name} PRIVATE
                          $<$<BOOL:${arg_UV}>:stagger_uv_static>
                          $<$<BOOL:${arg_CURL}>:stagger_curl_static>)
    add_test(NAME examples/${name} COMMAND example_${name}
             WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set_property(TEST examples/${name} PROPERTY LABELS examples)
endfunction()

# stagger_bench(core): bench/core.c, the program build/release/bench/core.
function(stagger_bench name)
    stagger_program(bench_${name} ${name}.c)
    set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name})
endfunction()

# stagger_fuzz(fuzz_delay [FLOW] [HUB] [SIM]): fuzz/fuzz_delay.c for libFuzzer, and a test that
# runs it once over each file of corpus/fuzz_delay/.
function(stagger_fuzz name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "FLOW;HUB;SIM" "" "")
    if(arg_HUB AND NOT TARGET stagger_hub)
        stagger_leave_out("fuzz target ${name}" "no hub")
        return()
    endif()
    stagger_program(${name} ${name}.c)
    target_link_libraries(${name} PRIVATE $<$<BOOL:${arg_HUB}>:stagger_hub>)
    if(arg_FLOW)
        target_sources(${name} PRIVATE $<TARGET_OBJECTS:stagger_flow>
                                       $<TARGET_OBJECTS:stagger_delivery>)
    endif()
    if(arg_SIM)
        target_sources(${name} PRIVATE $<TARGET_OBJECTS:stagger_sim>
                   $<TARGET_OBJECTS:stagger_svg>)
    endif()
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz/${name}
             COMMAND ${name} -runs=0 corpus/${name}
             WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set_property(TEST fuzz/${name} PROPERTY LABELS fuzz)
endfunction()
