# For fish: a line for each thing.

function emit_option(command, i, line) {
    line = "complete -c stagger -n '__fish_seen_subcommand_from " command "'"
    line = line " -l " substr(longs[command, i], 3)
    if (shorts[command, i] != "")
        line = line " -s " substr(shorts[command, i], 2)
    if (takes[command, i] == "file")
        line = line " -r -F"
    else if (takes[command, i] == "policy")
        line = line " -x -a '" presets "'"
    else if (takes[command, i] == "words")
        line = line " -x -a '" words[command, i] "'"
    else if (takes[command, i] != "")
        line = line " -x"
    print line " -d " quoted(tells[command, i])
}

function emit_operands(command, parts, n, i, line) {
    line = "complete -c stagger -n '__fish_seen_subcommand_from " command
    n = split(subs[command], parts, " ")
    for (i = 1; i <= n; i++)
        print line "; and not __fish_seen_subcommand_from " subs[command] "' -a " \
            parts[i] " -d " quoted(sub_says[command, parts[i]])
    if (operands[command] == "file")
        print line "' -F"
    if (operands[command] == "policy")
        print line "' -a '" presets "'"
    if (operands[command] == "command")
        print line "' -x -a '(__fish_complete_subcommand --fcs-skip=2)'"
}

function emit(v, i) {
    print "# fish completion of stagger"
    print "complete -c stagger -f"
    for (v = 1; v <= command_count; v++)
        print "complete -c stagger -n '__fish_use_subcommand' -a " commands[v] \
            " -d " quoted(says[commands[v]])
    print "complete -c stagger -n '__fish_use_subcommand' -a help" \
        " -d 'what a command does'"
    print "complete -c stagger -n '__fish_use_subcommand' -l version" \
        " -d 'the version'"
    print "complete -c stagger -n '__fish_use_subcommand' -s h -l help" \
        " -d 'what there is'"
    print "complete -c stagger -n '__fish_seen_subcommand_from help' -a '" \
        all_commands() "'"
    for (v = 1; v <= command_count; v++) {
        emit_operands(commands[v])
        for (i = 1; i <= counts[commands[v]]; i++)
            emit_option(commands[v], i)
    }
}
