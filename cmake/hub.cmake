# The hub: a static library of the tree's own, and the commands that need it.
#
#   stagger_hub   flow, HTTP, store, ingress
#   hub_commands     sources of the command

# What it stands on. llhttp comes as a library, or as its C sources, as in
# Debian's node-llhttp.
set(hub_missing "")
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
    foreach(need IN ITEMS libuv>=1.30 openssl>=1.1.1 sqlite3>=3.35
            jansson>=2.10 libcurl>=7.69
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

add_library(stagger_hub STATIC
    base/hash.c
    base/visible.c
    hub/alerts/alerts.c
    hub/alerts/causes.c
    hub/alerts/digest.c
    hub/alerts/engine.c
    hub/alerts/key.c
    hub/alerts/mail.c
    hub/alerts/mailer.c
    hub/alerts/options.c
    hub/alerts/payload.c
    hub/alerts/secret.c
    hub/alerts/sink.c
    hub/alerts/tally.c
    hub/alerts/text.c
    hub/alerts/trial.c
    hub/alerts/watch.c
    hub/attempt.c
    hub/category.c
    hub/cause.c
    hub/deadlines.c
    hub/files.c
    hub/http/answer.c
    hub/http/chunks.c
    hub/http/client.c
    hub/http/connection.c
    hub/http/dial.c
    hub/http/egress.c
    hub/http/endpoint.c
    hub/http/head.c
    hub/http/header.c
    hub/http/inbound.c
    hub/http/names.c
    hub/http/origin.c
    hub/http/request.c
    hub/http/resolve.c
    hub/http/response.c
    hub/http/server.c
    hub/http/tls.c
    hub/http/url.c
    hub/http/wire.c
    hub/hub.c
    hub/instant.c
    hub/intake.c
    hub/lane_policy.c
    hub/latency.c
    hub/log.c
    hub/log_line.c
    hub/logs/input.c
    hub/logs/line_buffer.c
    hub/logs/kafka_trouble.c
    hub/logs/lines.c
    hub/ops/admin.c
    hub/ops/admin_alerts.c
    hub/ops/admin_change.c
    hub/ops/admin_choice.c
    hub/ops/admin_json.c
    hub/ops/admin_letters.c
    hub/ops/admin_look.c
    hub/ops/admin_replay.c
    hub/ops/audit.c
    hub/ops/batch.c
    hub/ops/ingress.c
    hub/ops/ingress_address.c
    hub/ops/ingress_answer.c
    hub/ops/ingress_ask.c
    hub/ops/ingress_check.c
    hub/ops/ingress_headers.c
    hub/ops/ingress_id.c
    hub/ops/ingress_message.c
    hub/ops/ingress_options.c
    hub/ops/ingress_publish.c
    hub/ops/ingress_request.c
    hub/ops/ingress_scan.c
    hub/ops/problem.c
    hub/ops/role.c
    hub/ops/route.c
    hub/ops/token.c
    hub/metrics/count.c
    hub/metrics/counters.c
    hub/metrics/histogram.c
    hub/metrics/metrics.c
    hub/metrics/print.c
    hub/metrics/print_kafka.c
    hub/metrics/print_targets.c
    hub/metrics/process.c
    hub/metrics/text.c
    hub/notify.c
    hub/parcel.c
    hub/private_file.c
    hub/people.c
    hub/refuse.c
    hub/reload.c
    hub/service.c
    hub/source.c
    hub/source_before.c
    hub/source_check.c
    hub/source_behind.c
    hub/source_kafka.c
    hub/source_release.c
    hub/source_tell.c
    hub/settings/certificates.c
    hub/settings/complaints.c
    hub/settings/complete.c
    hub/settings/diff.c
    hub/settings/files.c
    hub/settings/from.c
    hub/settings/hints.c
    hub/settings/judge.c
    hub/settings/judge_kafka.c
    hub/settings/judge_target.c
    hub/settings/load.c
    hub/settings/load_lists.c
    hub/settings/load_map.c
    hub/settings/load_pairs.c
    hub/settings/load_policy.c
    hub/settings/load_value.c
    hub/settings/match.c
    hub/settings/print_docs.c
    hub/settings/print_help.c
    hub/settings/print_manual.c
    hub/settings/print_schema.c
    hub/settings/reserved.c
    hub/settings/settings.c
    hub/settings/shard.c
    hub/settings/table.c
    hub/settings/topic.c
    hub/settings/values.c
    hub/settings/wanted.c
    hub/settings/yaml.c
    hub/settings/yaml_text.c
    hub/settings/yaml_tree.c
    hub/shed.c
    hub/shell.c
    hub/signals.c
    hub/stores/again.c
    hub/stores/answers.c
    hub/stores/appends.c
    hub/stores/arena.c
    hub/stores/claim.c
    hub/stores/copy.c
    hub/stores/cursors.c
    hub/stores/cursors_text.c
    hub/stores/desk.c
    hub/stores/epochs.c
    hub/stores/eviction.c
    hub/stores/fate.c
    hub/stores/find.c
    hub/stores/fingerprints.c
    hub/stores/ids.c
    hub/stores/inbox.c
    hub/stores/job.c
    hub/stores/keys.c
    hub/stores/lanes.c
    hub/stores/letter.c
    hub/stores/letter_room.c
    hub/stores/letters.c
    hub/stores/life.c
    hub/stores/look.c
    hub/stores/opening.c
    hub/stores/parked.c
    hub/stores/partitions.c
    hub/stores/others.c
    hub/stores/pause.c
    hub/stores/queue.c
    hub/stores/queue_read.c
    hub/stores/ranges.c
    hub/stores/reader.c
    hub/stores/redo.c
    hub/stores/redo_range.c
    hub/stores/replay.c
    hub/stores/rows.c
    hub/stores/schema.c
    hub/stores/shared_lanes.c
    hub/stores/sql.c
    hub/stores/sqlite.c
    hub/stores/store.c
    hub/stores/taken.c
    hub/stores/taking.c
    hub/stores/tending.c
    hub/stores/verify.c
    hub/stores/wishes.c
    hub/stores/writer.c
    hub/url_mask.c
    hub/target.c
    hub/tell.c
    hub/text_table.c
    hub/trace.c
    $<TARGET_OBJECTS:stagger_flow>
)
# Kafka as the log, where there is its library.
if(STAGGER_KAFKA AND PKG_CONFIG_FOUND)
    pkg_check_modules(HUB_rdkafka QUIET IMPORTED_TARGET rdkafka>=2.0.2)
endif()
if(HUB_rdkafka_FOUND)
    target_sources(stagger_hub PRIVATE
        hub/logs/kafka.c
        hub/logs/kafka_batch.c
        hub/logs/kafka_behind.c
        hub/logs/kafka_commits.c
        hub/logs/kafka_compare.c
        hub/logs/kafka_conf.c
        hub/logs/kafka_end.c
        hub/logs/kafka_ends.c
        hub/logs/kafka_errors.c
        hub/logs/kafka_group.c
        hub/logs/kafka_headers.c
        hub/logs/kafka_letter.c
        hub/logs/kafka_letters.c
        hub/logs/kafka_mail.c
        hub/logs/kafka_member.c
        hub/logs/kafka_probe.c
        hub/logs/kafka_record.c
        hub/logs/kafka_slots.c
        hub/logs/kafka_start.c
        hub/logs/kafka_take.c
        hub/logs/kafka_topics.c
        hub/logs/kafka_watch.c
    )
    target_link_libraries(stagger_hub PUBLIC PkgConfig::HUB_rdkafka)
else()
    target_sources(stagger_hub PRIVATE hub/logs/kafka_none.c)
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
        hub/stores/pg_link.c
        hub/stores/pg_open.c
        hub/stores/pg_refuse.c
        hub/stores/pg_rows.c
        hub/stores/pg_schema.c
        hub/stores/pg_stmt.c
        hub/stores/pg_url.c
    )
    target_link_libraries(stagger_hub PUBLIC PkgConfig::HUB_libpq)
    target_compile_definitions(stagger_hub PUBLIC STAGGER_POSTGRES)
else()
    target_sources(stagger_hub PRIVATE hub/stores/pg_none.c)
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
    cli/alert.c
    cli/alert_send.c
    cli/check.c
    cli/check_table.c
    cli/confirm.c
    cli/dead.c
    cli/dead_change.c
    cli/dead_export.c
    cli/dead_list.c
    cli/dead_remote.c
    cli/dead_rows.c
    cli/dead_show.c
    cli/dead_summary.c
    cli/dead_table.c
    cli/demo.c
    cli/demo_audit.c
    cli/demo_post.c
    cli/demo_sinks.c
    cli/demo_table.c
    cli/hub.c
    cli/hub_options.c
    cli/pause.c
    cli/plan_targets.c
    cli/reload.c
    cli/remote.c
    cli/say_json.c
    cli/send.c
    cli/send_batch.c
    cli/send_endpoint.c
    cli/send_input.c
    cli/send_post.c
    cli/send_progress.c
    cli/send_publisher.c
    cli/sink.c
    cli/sink_connection.c
    cli/sink_log.c
    cli/sink_replies.c
    cli/sink_request.c
    cli/sink_seen.c
    cli/sink_server.c
    cli/sink_tally.c
    cli/status.c
    cli/status_fault.c
    cli/status_json.c
    cli/status_look.c
    cli/status_table.c
    cli/store.c
    cli/store_path.c
    cli/targets.c
    cli/token.c
    cli/token_file.c
)
set_source_files_properties(cli/sink_server.c hub/http/server.c PROPERTIES
                            COMPILE_DEFINITIONS _GNU_SOURCE) # accept4()
