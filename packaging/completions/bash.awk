# For bash: one function, and cases of what the words before say.

function reply(what, words) {
    if (what == "file")
        return "_stagger_files"
    if (what == "command")
        return "_stagger_commands"
    if (what == "policy")
        return "_stagger_words \"" presets "\""
    if (what == "words")
        return "_stagger_words \"" words "\""
    return ":"
}

function emit_values(command, i) {
    for (i = 1; i <= counts[command]; i++)
        if (takes[command, i] != "") {
            printf "    \"%s %s\"", command, longs[command, i]
            if (shorts[command, i] != "")
                printf " | \"%s %s\"", command, shorts[command, i]
            print ") " reply(takes[command, i], words[command, i]) " ;;"
        }
}

function options(command, i, all) {
    for (i = 1; i <= counts[command]; i++)
        all = all (i > 1 ? " " : "") longs[command, i]
    return all
}

function emit(v, command, all) {
    all = all_commands()
    print "# bash completion of stagger"
    print "_stagger_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")); }"
    print "_stagger_commands() { COMPREPLY=($(compgen -c -- \"$cur\")); }"
    print "_stagger_files()"
    print "{"
    print "    local IFS=$'\\n'"
    print "    compopt -o filenames 2>/dev/null"
    print "    COMPREPLY=($(compgen -f -- \"$cur\"))"
    print "}"
    print ""
    print "# What follows an option that has a value; false: it has none."
    print "_stagger_value()"
    print "{"
    print "    case \"$1 $2\" in"
    for (v = 1; v <= command_count; v++)
        emit_values(commands[v])
    print "    *) return 1 ;;"
    print "    esac"
    print "}"
    print ""
    print "_stagger()"
    print "{"
    print "    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}"
    print "    local prev=${COMP_WORDS[COMP_CWORD-1]} i subs=0"
    print "    COMPREPLY=()"
    print "    if [ \"$COMP_CWORD\" -eq 1 ]; then"
    print "        _stagger_words \"" all " help --help --version\""
    print "        return"
    print "    fi"
    print "    # Readline takes --name=value and file:name apart."
    print "    if [ \"$cur\" = = ] || [ \"$cur\" = : ]; then"
    print "        cur="
    print "    elif [ \"$prev\" = = ]; then"
    print "        prev=${COMP_WORDS[COMP_CWORD-2]}"
    print "    elif [ \"$prev\" = : ]; then"
    print "        _stagger_files"
    print "        return"
    print "    fi"
    print "    _stagger_value \"$command\" \"$prev\" && return"
    print "    case \"$command\" in"
    print "    help) [ \"$COMP_CWORD\" -gt 2 ] || _stagger_words \"" all "\" ;;"
    for (v = 1; v <= command_count; v++) {
        command = commands[v]
        print "    " command ")"
        print "        if [[ $cur == -* ]]; then"
        print "            _stagger_words \"" options(command) "\""
        if (subs[command] != "") {
            print "        elif [ \"$COMP_CWORD\" -eq 2 ]; then"
            print "            _stagger_words \"" subs[command] "\""
        }
        if (operands[command] == "command") {
            print "        else"
            print "            i=2"
            print "            while [ $i -lt \"$COMP_CWORD\" ]; do"
            print "                [ \"${COMP_WORDS[i]}\" != -- ] || subs=$i"
            print "                i=$((i + 1))"
            print "            done"
            print "            if [ $subs -eq 0 ] ||" \
                " [ $((subs + 1)) -eq \"$COMP_CWORD\" ]; then"
            print "                _stagger_commands"
            print "            else"
            print "                _stagger_files"
            print "            fi"
        } else if (operands[command] != "" && operands[command] != "any") {
            print "        else"
            print "            " reply(operands[command])
        }
        print "        fi ;;"
    }
    print "    esac"
    print "}"
    print "complete -F _stagger stagger"
}
