# Reads the help of the command and of its commands ("@ COMMAND" stands before each),
# and keeps what can be completed:
#
#   commands[1..command_count], says[COMMAND]
#   subs[COMMAND]                  "list show export": the second words
#   sub_says[COMMAND, SUB]
#   counts[COMMAND]                how many options it has, and of each from 1:
#     longs, shorts[COMMAND, i]    "--to", "-t" or ""
#     tells[COMMAND, i]            a few words
#     takes[COMMAND, i]            what its value is: "" (it has none), "file",
#                               "policy", "any", or "words"
#     words[COMMAND, i]            "none key strict"
#   operands[COMMAND]              what its arguments are: "", "file", "policy",
#                               "command" or "any"
#   presets                     of policies
#
# A file for each shell says emit(). Plain awk: no intervals, no gensub().

# The first few words of a sentence, without what shells would read.
function brief(text) {
    sub(/(;|\.| \() .*/, "", text)
    sub(/ \(.*/, "", text)
    if (match(text, /: /) && RSTART > 15)
        text = substr(text, 1, RSTART - 1)
    sub(/[ ,.;:]+$/, "", text)
    gsub(/["`\\$\[\]]/, "", text)
    return text
}

# In single quotes, for any shell.
function quoted(text) {
    gsub(/'/, "'\\''", text)
    return "'" text "'"
}

function kind(value, text) {
    if (value == "")
        return ""
    if (value ~ /^(file:)?(FILE|F|PATH|DIR)$/)
        return "file"
    if (value == "P")
        return "policy"
    return text ~ /^(only )?[a-z]+(, [a-z]+)* or [a-z]+( \(|,|;|:|$)/ \
        ? "words" : "any"
}

# "none, key or strict (none)" as "none key strict"
function choices(text) {
    sub(/^only /, "", text)
    match(text, /^[a-z]+(, [a-z]+)* or [a-z]+/)
    text = substr(text, 1, RLENGTH)
    gsub(/,| or/, "", text)
    return text
}

# An option is whole when the next one begins, or anything else does. Examples
# may begin as options do.
function finish_option(i) {
    if (long == "" || (command, long) in is_known) {
        long = ""
        return
    }
    is_known[command, long] = 1
    sub(/^[a-z]+(, [a-z]+)*: /, "", text) # which second words it goes with
    i = ++counts[command]
    longs[command, i] = long
    shorts[command, i] = short
    takes[command, i] = kind(value, text)
    words[command, i] = takes[command, i] == "words" ? choices(text) : ""
    tells[command, i] = brief(text)
    long = ""
}

function begin_option(line, at) {
    short = ""
    if (match(line, /^ *-[A-Za-z], /)) {
        short = substr(line, RLENGTH - 3, 2)
        line = substr(line, RLENGTH + 1)
    }
    sub(/^ */, "", line)
    text = ""
    at = match(line, /  +/)
    if (at > 0) {
        text = substr(line, at + RLENGTH)
        line = substr(line, 1, at - 1)
    }
    at = index(line, " ")
    long = at > 0 ? substr(line, 1, at - 1) : line
    value = at > 0 ? substr(line, at + 1) : ""
    sub(/\[=.*/, "", long) # a value that may be left out
}

function operand(line) {
    if (line ~ / COMMAND/)
        operands[command] = "command"
    else if (line ~ /PRESET/)
        operands[command] = "policy"
    else if (line ~ /(\[| )FILE\]?( |$|\.)/)
        operands[command] = "file"
    else if (line ~ / \[?[A-Z][A-Z]+\]?(\.\.\.)?$/ && line !~ /OPTIONS\]$/)
        operands[command] = "any"
}

function all_commands(v, all) {
    for (v = 1; v <= command_count; v++)
        all = all (v > 1 ? " " : "") commands[v]
    return all
}

/^@ / {
    finish_option()
    command = $2
    in_presets = 0
    next
}

command == "" && /^  [a-z]+  +[^ ]/ {
    commands[++command_count] = $1
    text = $0
    sub(/^  [a-z]+ +/, "", text)
    says[$1] = brief(text)
    next
}

command == "" { next }

/^(usage:|      ) stagger / {
    name = $0
    sub(/\[OPTIONS\] /, "", name)
    gsub(/\[|\]/, "", name)
    if (name ~ "stagger " command " [a-z]") {
        sub(".*stagger " command " ", "", name)
        sub(/ .*/, "", name)
        if (index(" " subs[command] " ", " " name " ") == 0)
            subs[command] = subs[command] (subs[command] == "" ? "" : " ") name
    }
    operand($0)
    next
}

/^  (-[A-Za-z], |    )--[a-z]/ {
    finish_option()
    begin_option($0)
    next
}

# More of an option: it stands where the sentences of options do.
long != "" && /^          +[^ ]/ {
    sub(/^ +/, "")
    text = text (text == "" ? "" : " ") $0
    next
}

{ finish_option() }

/^  [a-z]+  +[^ ]/ && index(" " subs[command] " ", " " $1 " ") {
    text = $0
    sub(/^  [a-z]+ +/, "", text)
    sub_says[command, $1] = brief(text)
}

command == "plan" && /^Presets:/ { in_presets = 1; next }
in_presets && /^  [a-z]/ { presets = presets (presets == "" ? "" : " ") $1 }
in_presets && /^$/ { in_presets = 0 }

END {
    finish_option()
    emit()
}
