# The hub: a static library of the tree's own, and the commands that need it.
#
#   stagger_hub   flow, HTTP, store, ingress
#   hub_commands     sources of the command

# What it stands on. llhttp comes as a library, or as its C sources, as in
# Debian's node-llhttp.
set(hub_missing "")
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
    foreach(need IN ITEMS libuv>=1.30 openssl>=3.0 sqlite3>=3.35
            jansson>=2.11 libcurl>=7.69
            yaml-0.1>=0.2.1 libcares>=1.18)
        string(REGEX REPLACE ">=.*" "" name ${need})
        pkg_check_modules(HUB_${name} QUIET IMPORTED_TARGET ${need})
        if(HUB_${name}_FOUND)
            list(APPEND hub_libraries PkgConfig::HUB_${name})
        else()
            list(APPEND hub_missing ${name})
        endif()
    endforeach()
else()
    list(APPEND hub_missing pkg-config)
endif()

find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp)
find_library(LLHTTP_LIBRARY llhttp)
find_path(LLHTTP_SOURCES api.c PATHS /usr/share/llhttp NO_DEFAULT_PATH)
mark_as_advanced(LLHTTP_INCLUDE LLHTTP_LIBRARY LLHTTP_SOURCES)
if(NOT LLHTTP_INCLUDE OR NOT (LLHTTP_LIBRARY OR LLHTTP_SOURCES))
    list(APPEND hub_missing llhttp)
endif()

if(hub_missing)
    list(JOIN hub_missing ", " hub_missing)
    stagger_leave_out("the hub" "no ${hub_missing}")
    return()
endif()

if(LLHTTP_LIBRARY)
    add_library(stagger_llhttp INTERFACE)
    target_link_libraries(stagger_llhttp INTERFACE ${LLHTTP_LIBRARY})
else()
    add_library(stagger_llhttp STATIC ${LLHTTP_SOURCES}/api.c
                ${LLHTTP_SOURCES}/http.c ${LLHTTP_SOURCES}/llhttp.c)
    # Not ours: no warnings. Its later versions know the strict mode only.
    target_compile_options(stagger_llhttp PRIVATE -w)
    target_compile_definitions(stagger_llhttp PRIVATE LLHTTP_STRICT_MODE=1)
    target_include_directories(stagger_llhttp PRIVATE ${LLHTTP_INCLUDE})
endif()
target_include_directories(stagger_llhttp SYSTEM INTERFACE ${LLHTTP_INCLUDE})

# The page's files, in the binary.
set(console_files api.js chart.js console.css console.js dom.js edit.js index.html
                  letters.js live.js message.js overview.js plan.js rewind.js state.js target.js)
list(TRANSFORM console_files PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/console/page/)
set(console_source ${CMAKE_CURRENT_BINARY_DIR}/console_files.c)
add_custom_command(
    OUTPUT ${console_source}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${console_files}"
            -DOUTPUT=${console_source}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${console_files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the console's page"
    VERBATIM)

add_library(stagger_hub STATIC
    ${console_source}
    $<TARGET_OBJECTS:stagger_svg>
    console/console.c
    admin/admin.c
    admin/audit.c
    admin/change.c
    admin/choice.c
    admin/events.c
    admin/history.c
    admin/json.c
    admin/letters.c
    admin/live.c
    admin/look.c
    admin/plan.c
    admin/removal.c
    admin/replay.c
    admin/rewind.c
    admin/secrets.c
    admin/targets.c
    alerts/alerts.c
    alerts/audience.c
    alerts/digest.c
    alerts/engine.c
    alerts/event.c
    alerts/event_payload.c
    alerts/facts.c
    alerts/key.c
    alerts/mail.c
    alerts/mailer.c
    alerts/options.c
    alerts/owner.c
    alerts/payload.c
    alerts/readers.c
    alerts/receiver.c
    alerts/receiver_open.c
    alerts/receivers.c
    alerts/secret.c
    alerts/signing.c
    alerts/tally.c
    alerts/template.c
    alerts/text.c
    alerts/words.c
    alerts/trial.c
    base/hash.c
    base/histogram.c
    base/refuse.c
    base/scan.c
    base/text.c
    config/diagnostics.c
    config/diff.c
    config/files.c
    config/fixed.c
    config/from.c
    config/kinds/alerts.c
    config/kinds/kinds.c
    config/kinds/lists.c
    config/kinds/maps.c
    config/kinds/numbers.c
    config/kinds/patterns.c
    config/kinds/places.c
    config/kinds/routes.c
    config/kinds/policies.c
    config/kinds/sections.c
    config/kinds/words.c
    config/inbound.c
    config/load.c
    config/load_map.c
    config/load_target.c
    config/match.c
    config/print_docs.c
    config/print_schema.c
    config/settings.c
    config/complete.c
    config/table.c
    config/table_inbound.c
    config/table_target.c
    config/targets.c
    config/validate.c
    config/validate_files.c
    config/validate_inbound.c
    config/validate_kafka.c
    config/validate_oauth.c
    config/validate_route.c
    config/validate_sign.c
    config/validate_target.c
    config/yaml.c
    config/yaml_environment.c
    config/yaml_tree.c
    filter/pattern.c
    filter/pattern_explain.c
    filter/pattern_match.c
    filter/verdicts.c
    host/deadlines.c
    host/files.c
    host/lines.c
    host/named_file.c
    host/log.c
    host/log_fold.c
    host/log_line.c
    host/notify.c
    host/process.c
    host/secret_file.c
    host/wall.c
    http/answer.c
    http/client.c
    http/connection.c
    http/connection_words.c
    http/dial.c
    http/egress.c
    http/endpoint.c
    http/endpoint_common.c
    http/framing.c
    http/header.c
    http/inbound.c
    http/inbound_answer.c
    http/names.c
    http/oauth.c
    http/oauth_key.c
    http/oauth_state.c
    http/origin.c
    http/proxy.c
    http/request.c
    http/resolve.c
    http/response.c
    http/secure.c
    http/server.c
    http/sign.c
    http/sign_key.c
    http/sign_message.c
    http/sign_pair.c
    http/tls.c
    http/template.c
    http/trace.c
    http/tunnel.c
    http/url.c
    http/verify.c
    http/verify_message.c
    http/wire.c
    hub/attempt.c
    hub/attempt_headers.c
    hub/batch.c
    hub/batch_request.c
    hub/batch_text.c
    hub/history.c
    hub/hub.c
    hub/filter.c
    hub/intake.c
    hub/measure.c
    hub/oauth.c
    hub/proxies.c
    hub/receipt_copy.c
    hub/fill.c
    hub/receipts.c
    hub/spans.c
    hub/recovery.c
    hub/disable.c
    hub/recent.c
    hub/reload.c
    hub/reload_lanes.c
    hub/reload_parts.c
    hub/reload_plan.c
    hub/rewind.c
    hub/service.c
    hub/shell.c
    hub/signing.c
    hub/source.c
    hub/target.c
    hub/target_change.c
    hub/target_control.c
    hub/target_seal.c
    hub/target_stored.c
    hub/tell.c
    hub/watch.c
    ingress/address.c
    ingress/answer.c
    ingress/ask.c
    ingress/batch.c
    ingress/check.c
    ingress/cloud_event.c
    ingress/ingress.c
    ingress/message.c
    ingress/options.c
    ingress/publish.c
    ingress/request.c
    ingress/route.c
    ingress/stream.c
    ingress/token.c
    ingress/webhook.c
    kafka/assignment.c
    kafka/catch_up_queue.c
    kafka/claim.c
    kafka/keyed.c
    kafka/log_check.c
    kafka/publish.c
    kafka/report.c
    kafka/source.c
    kafka/topic.c
    kafka/trouble.c
    metrics/count.c
    metrics/counters.c
    metrics/exposition.c
    metrics/metrics.c
    metrics/print.c
    metrics/print_source.c
    metrics/print_targets.c
    sources/queue.c
    store/appends.c
    store/arena.c
    store/cause.c
    store/copy.c
    store/cursors.c
    store/cursors_text.c
    store/epochs.c
    store/failing.c
    store/eviction.c
    store/fingerprints.c
    store/group.c
    store/ids.c
    store/keys.c
    store/lane_begin.c
    store/lanes.c
    store/letter.c
    store/letter_room.c
    store/letters.c
    store/lifecycle.c
    store/message_status.c
    store/opening.c
    store/parcel.c
    store/times.c
    store/parked.c
    store/partition_claim.c
    store/published.c
    store/partitions.c
    store/query.c
    store/query_thread.c
    store/queue.c
    store/ranges.c
    store/reader.c
    store/receipts.c
    store/replay_job.c
    store/replay_range.c
    store/replay_write.c
    store/rewind_job.c
    store/rewind_rows.c
    store/rewinds.c
    store/requests.c
    store/rows.c
    store/schema.c
    store/seal.c
    store/shortage.c
    store/snapshot.c
    store/sql.c
    store/sqlite.c
    store/store.c
    store/store_files.c
    store/store_lock.c
    store/store_names.c
    store/target_rows.c
    store/trim.c
    store/verify.c
    store/writer.c
    store/postgres/peer_sync.c
    store/postgres/remote_replay.c
    store/postgres/shared_lanes.c
    $<TARGET_OBJECTS:stagger_flow>
    $<TARGET_OBJECTS:stagger_plan>
)
# Kafka as the log, where there is its library.
if(STAGGER_KAFKA AND PKG_CONFIG_FOUND)
    pkg_check_modules(HUB_rdkafka QUIET IMPORTED_TARGET rdkafka>=2.0.2)
endif()
if(HUB_rdkafka_FOUND)
    target_sources(stagger_hub PRIVATE
        kafka/kafka.c
        kafka/batch.c
        kafka/catch_up.c
        kafka/commits.c
        kafka/compare.c
        kafka/conf.c
        kafka/end.c
        kafka/ends.c
        kafka/errors.c
        kafka/group.c
        kafka/headers.c
        kafka/letter.c
        kafka/letters.c
        kafka/mail.c
        kafka/member.c
        kafka/probe.c
        kafka/producer.c
        kafka/record.c
        kafka/slots.c
        kafka/start.c
        kafka/take.c
        kafka/topics.c
        kafka/watch.c
    )
    target_link_libraries(stagger_hub PUBLIC PkgConfig::HUB_rdkafka)
else()
    target_sources(stagger_hub PRIVATE kafka/none.c)
    if(STAGGER_KAFKA)
        stagger_leave_out("Kafka" "no librdkafka 2.0.2")
    endif()
endif()

target_compile_definitions(stagger_hub PUBLIC ${posix})
target_include_directories(stagger_hub PUBLIC ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(stagger_hub PUBLIC stagger_static stagger_llhttp
                                         ${hub_libraries} Threads::Threads)

# A service manager to tell how it is, where there can be one.
pkg_check_modules(HUB_libsystemd QUIET IMPORTED_TARGET libsystemd)
if(HUB_libsystemd_FOUND)
    target_link_libraries(stagger_hub PUBLIC PkgConfig::HUB_libsystemd)
    target_compile_definitions(stagger_hub PRIVATE STAGGER_SYSTEMD)
else()
    stagger_leave_out("telling systemd" "no libsystemd")
endif()

# A store that several hubs share.
option(STAGGER_POSTGRES "The store in PostgreSQL, where libpq is found" ON)
if(STAGGER_POSTGRES)
    pkg_check_modules(HUB_libpq QUIET IMPORTED_TARGET libpq>=14)
endif()
if(HUB_libpq_FOUND)
    target_sources(stagger_hub PRIVATE
        store/postgres/link.c
        store/postgres/open.c
        store/postgres/refuse.c
        store/postgres/rows.c
        store/postgres/schema.c
        store/postgres/stmt.c
        store/postgres/url.c
    )
    target_link_libraries(stagger_hub PUBLIC PkgConfig::HUB_libpq)
    target_compile_definitions(stagger_hub PUBLIC STAGGER_POSTGRES)
else()
    target_sources(stagger_hub PRIVATE store/postgres/none.c)
    if(STAGGER_POSTGRES)
        stagger_leave_out("the store in PostgreSQL" "no libpq")
    endif()
endif()

# `stagger send` retries on its loop.
if(TARGET stagger_uv_static)
    target_link_libraries(stagger_hub PUBLIC stagger_uv_static)
else()
    target_sources(stagger_hub PRIVATE adapters/uv.c)
endif()

set(hub_commands
    cli/alert/alert.c
    cli/check.c
    cli/check_try.c
    cli/dead/dead.c
    cli/dead/change.c
    cli/dead/list.c
    cli/dead/rows.c
    cli/dead/show.c
    cli/dead/summary.c
    cli/demo.c
    cli/hub.c
    cli/hub_options.c
    cli/control.c
    cli/plan/targets.c
    cli/remote.c
    cli/send/send.c
    cli/sim/scenario.c
    cli/sim/scenario_json.c
    cli/sim/scenario_show.c
    cli/secret.c
    cli/send/batch.c
    cli/send/endpoint.c
    cli/send/input.c
    cli/send/post.c
    cli/send/progress.c
    cli/send/publisher.c
    cli/sink/sink.c
    cli/sink/replies.c
    cli/sink/seen.c
    cli/sink/server.c
    cli/sink/receipts.c
    cli/sink/verify.c
    cli/status/status.c
    cli/status/look.c
    cli/status/table.c
    cli/store.c
    cli/rewind.c
    cli/target_change.c
    cli/targets.c
    cli/token.c
)
set_source_files_properties(http/server.c filter/pattern_match.c
                            store/store_lock.c PROPERTIES
                            COMPILE_DEFINITIONS _GNU_SOURCE) # accept4(), memmem(), F_OFD_SETLK
