# Writes the files of the console as a C source: cmake -DFILES=a;b -DOUTPUT=c -P
set(all "")
set(rows "")
set(number 0)
foreach(path IN LISTS FILES)
    file(READ ${path} hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    get_filename_component(name ${path} NAME)
    string(APPEND all "static const unsigned char file_${number}[] = {${bytes}};\n")
    string(APPEND rows "    {\"${name}\", file_${number}, sizeof file_${number}},\n")
    math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"console/console.h\"\n\n${all}
const stg_console_file stg_console_files[] = {\n${rows}    {NULL, NULL, 0},\n};\n")
