# For zsh: _arguments for each command.

function taken(what, words) {
    if (what == "file")
        return ":file:_files"
    if (what == "policy")
        return ":policy:(" presets ")"
    if (what == "words")
        return ":word:(" words ")"
    return what == "" ? "" : ":value: "
}

function emit_word(text) {
    print "            " quoted(text) " \\"
}

# -t, --to and their sentence; an option may be given again.
function emit_option(command, i, ends) {
    ends = "[" tells[command, i] "]" taken(takes[command, i], words[command, i])
    if (shorts[command, i] != "")
        emit_word("*" shorts[command, i] (takes[command, i] == "" ? "" : "+") ends)
    emit_word("*" longs[command, i] (takes[command, i] == "" ? "" : "=") ends)
}

function emit_operands(command) {
    if (subs[command] != "")
        emit_word("1:command:(" subs[command] ")")
    if (operands[command] == "command") {
        print "            '(-)1:command: _command_names -e' \\"
        print "            '*::argument: _normal'"
    } else if (operands[command] == "file")
        print "            '*:file:_files'"
    else if (operands[command] == "policy")
        print "            '*:policy:(" presets ")'"
    else
        print "            '*: :'"
}

function emit(v, i, command) {
    print "#compdef stagger"
    print "_stagger()"
    print "{"
    print "    local curcontext=$curcontext state line"
    print "    local -a its_commands"
    print "    its_commands=("
    for (v = 1; v <= command_count; v++)
        print "        " quoted(commands[v] ":" says[commands[v]])
    print "        'help:what a command does'"
    print "    )"
    print "    _arguments -C '(- *)'{-h,--help}'[what there is]' \\"
    print "        '(- *)'{-V,--version}'[the version]' \\"
    print "        '1: :->command' '*:: :->rest'"
    print "    case $state in"
    print "    command) _describe -t commands command its_commands; return ;;"
    print "    rest) ;;"
    print "    *) return ;;"
    print "    esac"
    print "    case $words[1] in"
    print "    help) _arguments '1:command:(" all_commands() ")' ;;"
    for (v = 1; v <= command_count; v++) {
        command = commands[v]
        print "    " command ")"
        print "        _arguments -s -S \\"
        for (i = 1; i <= counts[command]; i++)
            emit_option(command, i)
        emit_operands(command)
        print "        ;;"
    }
    print "    esac"
    print "}"
    print "_stagger \"$@\""
}
