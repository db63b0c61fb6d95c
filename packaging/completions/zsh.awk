# For zsh: _arguments for each verb.

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
function emit_option(verb, i, ends) {
    ends = "[" tells[verb, i] "]" taken(takes[verb, i], words[verb, i])
    if (shorts[verb, i] != "")
        emit_word("*" shorts[verb, i] (takes[verb, i] == "" ? "" : "+") ends)
    emit_word("*" longs[verb, i] (takes[verb, i] == "" ? "" : "=") ends)
}

function emit_operands(verb) {
    if (subs[verb] != "")
        emit_word("1:verb:(" subs[verb] ")")
    if (operands[verb] == "command") {
        print "            '(-)1:command: _command_names -e' \\"
        print "            '*::argument: _normal'"
    } else if (operands[verb] == "file")
        print "            '*:file:_files'"
    else if (operands[verb] == "policy")
        print "            '*:policy:(" presets ")'"
    else
        print "            '*: :'"
}

function emit(v, i, verb) {
    print "#compdef stagger"
    print "_stagger()"
    print "{"
    print "    local curcontext=$curcontext state line"
    print "    local -a verbs"
    print "    verbs=("
    for (v = 1; v <= verb_count; v++)
        print "        " quoted(verbs[v] ":" says[verbs[v]])
    print "        'help:what a verb does'"
    print "    )"
    print "    _arguments -C '(- *)'{-h,--help}'[what there is]' \\"
    print "        '(- *)'{-V,--version}'[the version]' \\"
    print "        '1: :->verb' '*:: :->rest'"
    print "    case $state in"
    print "    verb) _describe -t verbs verb verbs; return ;;"
    print "    rest) ;;"
    print "    *) return ;;"
    print "    esac"
    print "    case $words[1] in"
    print "    help) _arguments '1:verb:(" all_verbs() ")' ;;"
    for (v = 1; v <= verb_count; v++) {
        verb = verbs[v]
        print "    " verb ")"
        print "        _arguments -s -S \\"
        for (i = 1; i <= counts[verb]; i++)
            emit_option(verb, i)
        emit_operands(verb)
        print "        ;;"
    }
    print "    esac"
    print "}"
    print "_stagger \"$@\""
}
