# What is installed, and how others find it: pkg-config and find_package().
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stagger)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# stagger_install(part targets...): the libraries of an export set of their
# own, so that a user of libstagger needs none of what they stand on to find it.
function(stagger_install part)
    install(TARGETS ${ARGN} EXPORT stagger-${part}
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT stagger-${part} FILE stagger-${part}.cmake
            NAMESPACE stagger:: DESTINATION ${config_dir})
endfunction()

# The .pc files find their prefix from where they lie, so that an installation
# may move, and `cmake --install --prefix` tells no lie.
file(RELATIVE_PATH prefix_from_pc /usr/${pkgconfig_dir} /usr)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
function(stagger_pkgconfig name)
    configure_file(packaging/${name}.pc.in
                   ${PROJECT_BINARY_DIR}/packaging/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/packaging/${name}.pc
            DESTINATION ${pkgconfig_dir})
endfunction()

set(libraries stagger_static)
if(STAGGER_SHARED)
    list(APPEND libraries stagger_shared)
endif()
stagger_install(core ${libraries})
install(FILES ${STAGGER_HEADERS}
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stagger)
stagger_pkgconfig(stagger)

foreach(adapter uv curl pq)
    if(TARGET stagger_${adapter}_static)
        list(TRANSFORM libraries REPLACE stagger_ stagger_${adapter}_
             OUTPUT_VARIABLE its_libraries)
        stagger_install(${adapter} ${its_libraries})
        install(FILES include/stagger/${adapter}.h
                DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stagger)
        stagger_pkgconfig(stagger-${adapter})
        if(adapter STREQUAL uv)
            install(FILES include/stagger/uv.hpp
                    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stagger)
        endif()
    endif()
endforeach()

configure_package_config_file(
    packaging/stagger-config.cmake.in
    ${PROJECT_BINARY_DIR}/packaging/stagger-config.cmake
    INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/packaging/stagger-config-version.cmake
    COMPATIBILITY SameMinorVersion) # as the SONAME
install(FILES ${PROJECT_BINARY_DIR}/packaging/stagger-config.cmake
              ${PROJECT_BINARY_DIR}/packaging/stagger-config-version.cmake
        DESTINATION ${config_dir})

if(TARGET stagger_cli)
    install(TARGETS stagger_cli DESTINATION ${CMAKE_INSTALL_BINDIR})
    include(${CMAKE_CURRENT_LIST_DIR}/completions.cmake)
    set(into_bash bash-completion/completions)
    set(into_zsh zsh/site-functions)
    set(into_fish fish/vendor_completions.d)
    foreach(file IN LISTS completions)
        get_filename_component(shell ${file} DIRECTORY)
        get_filename_component(shell ${shell} NAME)
        install(FILES ${file}
                DESTINATION ${CMAKE_INSTALL_DATADIR}/${into_${shell}})
    endforeach()
endif()

if(TARGET stagger_hub AND TARGET stagger_cli)
    include(${CMAKE_CURRENT_LIST_DIR}/service.cmake)
endif()

foreach(section 1 3 5)
    file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
    install(FILES ${pages}
            DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
file(GLOB pages CONFIGURE_DEPENDS docs/*.md)
install(FILES ${pages} README.md CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
file(GLOB pages CONFIGURE_DEPENDS examples/*.c examples/*.cpp examples/*.conf)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
