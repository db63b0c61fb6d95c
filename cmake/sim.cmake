# The simulator: the very core of the library, in virtual time.
#
#   stagger_sim    objects: engine and models, as pure as core, but for doubles
#   stagger_model  static library: these, and the threads; with core's objects
#   sim_commands      sources of the command

set(sim_pure
    sim/advise.c
    sim/contention.c
    sim/contention_book.c
    sim/curve.c
    sim/engine.c
    sim/estimate.c
    sim/histogram.c
    sim/law.c
    sim/overload.c
    sim/overload_clients.c
    sim/overload_recovery.c
    sim/overload_service.c
    sim/overload_stretch.c
    sim/overload_summary.c
    sim/overload_tally.c
    sim/overload_text.c
    sim/peak.c
    sim/queue.c
    sim/queue_heap.c
    sim/queue_ladder.c
    sim/random.c
    sim/resource.c
    sim/resource_text.c
    sim/service.c
    sim/tally.c
)
set(sim_pictures
    sim/album.c
    sim/contention_charts.c
    sim/contention_result.c
    sim/contention_times.c
    sim/measure.c
    sim/overload_charts.c
    sim/overload_table.c
    sim/overload_words.c
    sim/page.c
    sim/palette.c
    sim/paper.c
    sim/scale.c
    sim/svg.c
    sim/svg_frame.c
    sim/svg_hover.c
    sim/svg_marks.c
    sim/svg_names.c
    sim/table.c
    sim/table_people.c
)
add_library(stagger_sim OBJECT ${sim_pure} ${sim_pictures})
target_compile_options(stagger_sim PRIVATE ${no_contraction} ${no_bcmp}
                                           ${no_interposition})
target_include_directories(stagger_sim PRIVATE ${PROJECT_SOURCE_DIR}/include
                                               ${CMAKE_CURRENT_SOURCE_DIR})

add_library(stagger_model STATIC sim/spread.c $<TARGET_OBJECTS:stagger_sim>)
target_compile_definitions(stagger_model PUBLIC ${posix})
target_include_directories(stagger_model PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(stagger_model PUBLIC stagger_static Threads::Threads)

# What a page in a browser calls: compiled for WebAssembly, and for its test.
set(STAGGER_WASM_SOURCES sim/wasm.c sim/wasm_charts.c sim/wasm_look.c
                         sim/wasm_sums.c)
list(TRANSFORM STAGGER_WASM_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
set(STAGGER_WASM_SOURCES ${STAGGER_WASM_SOURCES} PARENT_SCOPE)

set(sim_commands
    cli/sim.c
    cli/sim_advise.c
    cli/sim_advise_show.c
    cli/sim_contention.c
    cli/sim_contention_show.c
    cli/sim_contention_charts.c
    cli/sim_memory.c
    cli/sim_overload.c
    cli/sim_overload_show.c
    cli/sim_output.c
    cli/sim_policies.c
    cli/sim_progress.c
    cli/sim_stop.c
    cli/sim_study.c
    cli/sim_sweep.c
    cli/sim_trials.c
)
