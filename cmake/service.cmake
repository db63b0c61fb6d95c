# What the hub comes with: units of systemd, the user that they name, settings
# to begin with, and what other programs need to watch it.
set(STAGGER_UNIT_DIR lib/systemd/system CACHE STRING
    "where units of systemd go, below the prefix")

# A unit names where the command lies, which is known when it is installed.
function(stagger_unit name title settings state)
    set(unit ${name})
    install(CODE "
        set(bindir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
        set(unit \"${unit}\")
        set(title \"${title}\")
        set(settings \"${settings}\")
        set(state \"${state}\")
        configure_file(
            \"${PROJECT_SOURCE_DIR}/packaging/systemd/stagger.service.in\"
            \"${PROJECT_BINARY_DIR}/packaging/${unit}\" @ONLY)")
    install(FILES ${PROJECT_BINARY_DIR}/packaging/${unit}
            DESTINATION ${STAGGER_UNIT_DIR})
endfunction()

stagger_unit(stagger.service "stagger hub" /etc/stagger/stagger.yaml stagger)
stagger_unit(stagger@.service "stagger hub %i" /etc/stagger/%i.yaml stagger/%i)
install(FILES packaging/systemd/sysusers.conf
        DESTINATION lib/sysusers.d RENAME stagger.conf)

install(FILES packaging/stagger.yaml
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples RENAME minimal.yaml)
install(FILES examples/stagger.yaml
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
# For editors, and for programs that speak to the hub.
file(GLOB contracts CONFIGURE_DEPENDS docs/*.yaml packaging/*.json)
install(FILES ${contracts} DESTINATION ${CMAKE_INSTALL_DATADIR}/stagger)
foreach(what grafana prometheus)
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/packaging/${what})
        install(DIRECTORY packaging/${what}
                DESTINATION ${CMAKE_INSTALL_DATADIR}/stagger)
    endif()
endforeach()
