# How our C is compiled. Each flag is probed, for compilers differ; those that
# decide what the code means (the language, visibility) are not optional.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)

# Position independent everywhere: the static library can then go into a
# user's shared one, and one set of objects serves both of ours.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_pie_supported(LANGUAGES C)

# Sets out to the first of the flags that the compiler takes, or to nothing.
function(stagger_first_flag out)
    foreach(flag IN LISTS ARGN)
        string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
        # Clang lets unknown -W flags pass with a warning; -Werror refuses.
        set(CMAKE_REQUIRED_FLAGS -Werror)
        check_c_compiler_flag("${flag}" ${have})
        if(${have})
            separate_arguments(flag)
            set(${out} ${flag} PARENT_SCOPE)
            return()
        endif()
    endforeach()
    set(${out} "" PARENT_SCOPE)
endfunction()

function(stagger_use_flags)
    foreach(flag IN LISTS ARGN)
        stagger_first_flag(flags "${flag}")
        add_compile_options(${flags})
    endforeach()
endfunction()

function(stagger_use_link_flags)
    foreach(flag IN LISTS ARGN)
        string(MAKE_C_IDENTIFIER "HAVE_LINK${flag}" have)
        check_linker_flag(C "${flag}" ${have})
        if(${have})
            add_link_options("${flag}")
        endif()
    endforeach()
endfunction()

macro(stagger_warn)
    stagger_use_flags(
        -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
    # C++ knows no other prototypes than strict ones.
    foreach(flag -Wstrict-prototypes -Wmissing-prototypes
            -Wold-style-definition)
        stagger_first_flag(of_c ${flag})
        add_compile_options("$<$<COMPILE_LANGUAGE:C>:${of_c}>")
    endforeach()
    stagger_use_flags(
        -Wvla -Wundef -Wpointer-arith -Wwrite-strings -Wimplicit-fallthrough
        "-Wformat -Wformat-security"
        -Wno-overlength-strings) # long traces are what tests compare
    if(STAGGER_WARNINGS_AS_ERRORS)
        add_compile_options(-Werror)
    endif()
endmacro()

macro(stagger_harden)
    stagger_use_flags(-fstack-protector-strong -fstack-clash-protection
                      -fcf-protection -mbranch-protection=standard)
    # clang takes it plainly from 16 on, and before that only with an oath.
    stagger_first_flag(
        auto_init -ftrivial-auto-var-init=zero
        "-ftrivial-auto-var-init=zero -enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang"
    )
    add_compile_options(${auto_init})
    stagger_use_link_flags(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

    # The C library warns of a level it cannot give, and without optimisation
    # of any; so not in a Debug build. Distributions preset a level: undefine.
    foreach(level 3 2)
        set(CMAKE_REQUIRED_FLAGS
            "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
        check_c_source_compiles(
            "#include <string.h>\nint main(void) { return 0; }"
            HAVE_FORTIFY_${level})
        if(HAVE_FORTIFY_${level})
            add_compile_options(
                "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${level}>"
            )
            break()
        endif()
    endforeach()
    unset(CMAKE_REQUIRED_FLAGS)
endmacro()

stagger_warn()

# Sanitizers see more without the hardening, and gcov fewer branches.
if(STAGGER_SANITIZE)
    set(sanitize -fsanitize=${STAGGER_SANITIZE} -fno-sanitize-recover=all
                 -fno-omit-frame-pointer)
    if(STAGGER_FUZZ)
        list(APPEND sanitize -fsanitize=fuzzer-no-link)
    endif()
    add_compile_options(${sanitize})
    add_link_options(${sanitize})
elseif(STAGGER_COVERAGE)
    # Threads count too: without -atomic a lost count can look like a branch
    # never taken.
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)
else()
    if(STAGGER_HARDEN)
        stagger_harden()
    endif()
endif()

# For the libraries alone. A public function may be inlined into another one,
# which a name that could be replaced at run time forbids.
stagger_first_flag(no_interposition -fno-semantic-interposition)
# For core alone: no fused operation (it has no floating point either), and no
# call of bcmp() in place of memcmp(), which core may not need.
stagger_first_flag(no_contraction -ffp-contract=off)
stagger_first_flag(no_bcmp -fno-builtin-bcmp)

# What adapters, command and tests see of the system.
set(posix _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)
