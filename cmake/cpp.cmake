# C++, for the tests, examples and measurements of the C++ headers; nothing else needs it. By
# the compiler beside that of C (gcc and g++, clang-14 and clang++-14), unless
# CXX or CMAKE_CXX_COMPILER names one.
#
#   stagger_has_cpp   ON or OFF
set(stagger_has_cpp OFF)
if(NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
    get_filename_component(cc ${CMAKE_C_COMPILER} NAME)
    get_filename_component(beside ${CMAKE_C_COMPILER} DIRECTORY)
    string(REGEX REPLACE "cc((-[0-9.]+)?)$" "++\\1" cxx "${cc}")
    string(REGEX REPLACE "clang((-[0-9.]+)?)$" "clang++\\1" cxx "${cxx}")
    string(REGEX REPLACE "^\\+\\+" "c++" cxx "${cxx}")
    find_program(STAGGER_CXX NAMES ${cxx} HINTS ${beside})
    mark_as_advanced(STAGGER_CXX)
    if(STAGGER_CXX AND NOT cxx STREQUAL cc)
        set(CMAKE_CXX_COMPILER ${STAGGER_CXX})
    endif()
endif()
if(NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
    stagger_leave_out("tests and examples in C++" "no ${cxx}")
    return()
endif()
enable_language(CXX)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(stagger_has_cpp ON)
