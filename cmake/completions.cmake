# The completions of the command, made by itself: packaging/completions.
#
#   completions   the files, as each shell wants them named
set(completions "")
if(CMAKE_CROSSCOMPILING)
    stagger_leave_out("completions" "the command does not run here")
    return()
endif()

set(folder ${PROJECT_SOURCE_DIR}/packaging/completions)
foreach(file IN ITEMS bash/stagger zsh/_stagger fish/stagger.fish)
    get_filename_component(shell ${file} DIRECTORY)
    set(output ${PROJECT_BINARY_DIR}/completions/${file})
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -E make_directory
                ${PROJECT_BINARY_DIR}/completions/${shell}
        COMMAND sh ${folder}/make.sh $<TARGET_FILE:stagger_cli> ${shell}
                > ${output}.new
        COMMAND ${CMAKE_COMMAND} -E rename ${output}.new ${output}
        DEPENDS stagger_cli ${folder}/make.sh ${folder}/read.awk
                ${folder}/${shell}.awk
        COMMENT "Completions for ${shell}" VERBATIM)
    list(APPEND completions ${output})
endforeach()
add_custom_target(stagger_completions ALL DEPENDS ${completions})
