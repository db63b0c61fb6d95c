# The simulator: the very core of the library, in virtual time.
#
#   stagger_sim    objects: engine and models, as pure as core, but for doubles
#   stagger_svg    objects: pictures, which the hub has, too; as pure
#   stagger_delivery  objects: flow in virtual time; pure, too
#   stagger_model  static library: these, trials, and the threads; with core's objects
#   sim_commands      sources of the command

set(sim_pure
    sim/advise.c
    sim/advise_candidates.c
    sim/advise_verdict.c
    sim/advise_words.c
    sim/contention.c
    sim/contention_totals.c
    sim/curve.c
    sim/distribution.c
    sim/drain.c
    sim/drain_candidates.c
    sim/drain_words.c
    sim/engine.c
    sim/overload.c
    sim/overload_clients.c
    sim/overload_load.c
    sim/overload_recovery.c
    sim/overload_rounds.c
    sim/overload_service.c
    sim/overload_summary.c
    sim/overload_tally.c
    sim/overload_text.c
    sim/queue.c
    sim/queue_heap.c
    sim/queue_ladder.c
    sim/random.c
    sim/resource.c
    sim/resource_text.c
    sim/service.c
    sim/service_queue.c
    sim/service_text.c
    sim/statistics.c
    sim/tally.c
)
set(sim_pictures
    chart/chart_set.c
    chart/frontier.c
    chart/page.c
    chart/table.c
    chart/table_text.c
    sim/contention_charts.c
    sim/contention_result.c
    sim/contention_series.c
    sim/contention_times.c
    sim/overload_charts.c
    sim/overload_table.c
    sim/overload_words.c
)
add_library(stagger_svg OBJECT
    chart/scale.c
    chart/svg.c
    chart/svg_frame.c
    chart/svg_hover.c
    chart/svg_marks.c
    chart/svg_names.c
    chart/svg_style.c
    chart/text_buffer.c
)
add_library(stagger_sim OBJECT ${sim_pure} ${sim_pictures})
foreach(objects IN ITEMS stagger_svg stagger_sim)
    target_compile_options(${objects} PRIVATE ${no_contraction} ${no_bcmp}
                                              ${no_interposition})
    target_include_directories(${objects} PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
endforeach()

add_library(stagger_delivery OBJECT
    sim/delivery/ends.c
    sim/delivery/hub.c
    sim/delivery/invariants.c
    sim/delivery/key_table.c
    sim/delivery/log.c
    sim/delivery/loop.c
    sim/delivery/other_hubs.c
    sim/delivery/partition.c
    sim/delivery/rows.c
    sim/delivery/script.c
    sim/delivery/store.c
    sim/delivery/swarm.c
    sim/delivery/swarm_draw.c
    sim/delivery/swarm_shrink.c
    sim/delivery/swarm_target.c
    sim/delivery/target.c
    sim/delivery/trace.c
    sim/delivery/world.c
)
target_compile_options(stagger_delivery PRIVATE ${no_contraction} ${no_bcmp})
target_include_directories(stagger_delivery PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})

# What runs many trials: the page of a browser has it, too.
set(sim_advice sim/advise_cliff.c sim/advise_rounds.c sim/trials.c)
set(STAGGER_ADVICE_SOURCES ${sim_advice})
list(TRANSFORM STAGGER_ADVICE_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
set(STAGGER_ADVICE_SOURCES ${STAGGER_ADVICE_SOURCES} PARENT_SCOPE)

add_library(stagger_model STATIC sim/parallel.c ${sim_advice}
                                 sim/delivery/scenario.c
                                 sim/delivery/scenario_text.c
                                 $<TARGET_OBJECTS:stagger_sim>
                                 $<TARGET_OBJECTS:stagger_svg>
                                 $<TARGET_OBJECTS:stagger_flow>
                                 $<TARGET_OBJECTS:stagger_delivery>)
target_compile_definitions(stagger_model PUBLIC ${posix})
target_compile_options(stagger_model PRIVATE ${no_contraction} ${no_bcmp})
target_include_directories(stagger_model PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(stagger_model PUBLIC stagger_static Threads::Threads)

# What a page in a browser calls: compiled for WebAssembly, and for its test.
set(STAGGER_WASM_SOURCES sim/wasm.c sim/wasm_charts.c sim/wasm_look.c
                         sim/wasm_plan.c sim/wasm_storm.c)
list(TRANSFORM STAGGER_WASM_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
set(STAGGER_WASM_SOURCES ${STAGGER_WASM_SOURCES} PARENT_SCOPE)

set(sim_commands
    cli/sim/sim.c
    cli/sim/advise.c
    cli/sim/advise_show.c
    cli/sim/contention.c
    cli/sim/contention_show.c
    cli/sim/contention_sweep.c
    cli/sim/overload.c
    cli/sim/overload_show.c
    cli/sim/delivery.c
    cli/sim/drain.c
    cli/sim/drain_show.c
    cli/sim/edge.c
    cli/sim/events.c
    cli/sim/map.c
    cli/sim/output.c
    cli/sim/range.c
    cli/sim/study.c
    cli/sim/swarm.c
    cli/sim/sweep.c
    cli/sim/trace.c
)
