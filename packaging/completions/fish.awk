# For fish: a line for each thing.

function emit_option(verb, i, line) {
    line = "complete -c stagger -n '__fish_seen_subcommand_from " verb "'"
    line = line " -l " substr(longs[verb, i], 3)
    if (shorts[verb, i] != "")
        line = line " -s " substr(shorts[verb, i], 2)
    if (takes[verb, i] == "file")
        line = line " -r -F"
    else if (takes[verb, i] == "policy")
        line = line " -x -a '" presets "'"
    else if (takes[verb, i] == "words")
        line = line " -x -a '" words[verb, i] "'"
    else if (takes[verb, i] != "")
        line = line " -x"
    print line " -d " quoted(tells[verb, i])
}

function emit_operands(verb, parts, n, i, line) {
    line = "complete -c stagger -n '__fish_seen_subcommand_from " verb
    n = split(subs[verb], parts, " ")
    for (i = 1; i <= n; i++)
        print line "; and not __fish_seen_subcommand_from " subs[verb] "' -a " \
            parts[i] " -d " quoted(sub_says[verb, parts[i]])
    if (operands[verb] == "file")
        print line "' -F"
    if (operands[verb] == "policy")
        print line "' -a '" presets "'"
    if (operands[verb] == "command")
        print line "' -x -a '(__fish_complete_subcommand --fcs-skip=2)'"
}

function emit(v, i) {
    print "# fish completion of stagger"
    print "complete -c stagger -f"
    for (v = 1; v <= verb_count; v++)
        print "complete -c stagger -n '__fish_use_subcommand' -a " verbs[v] \
            " -d " quoted(says[verbs[v]])
    print "complete -c stagger -n '__fish_use_subcommand' -a help" \
        " -d 'what a verb does'"
    print "complete -c stagger -n '__fish_use_subcommand' -l version" \
        " -d 'the version'"
    print "complete -c stagger -n '__fish_use_subcommand' -s h -l help" \
        " -d 'what there is'"
    print "complete -c stagger -n '__fish_seen_subcommand_from help' -a '" \
        all_verbs() "'"
    for (v = 1; v <= verb_count; v++) {
        emit_operands(verbs[v])
        for (i = 1; i <= counts[verbs[v]]; i++)
            emit_option(verbs[v], i)
    }
}
