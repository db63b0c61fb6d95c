/* named_file.h - which file a path leads to. Two paths lead to one file if device and
 * inode are the same; where there is no file yet, if its folder and its name are:
 * opening one of the two paths would make it. Links are followed. */
#ifndef STAGGER_HOST_NAMED_FILE_H
#define STAGGER_HOST_NAMED_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

typedef struct stg_named_file {
    dev_t device; /* device of the file; where there is none, of its folder */
    ino_t inode;
    mode_t mode;             /* 0: there is no file yet */
    char name[NAME_MAX + 1]; /* name in the folder; "": the file is there */
} stg_named_file;

/* Blocks. False: not even its folder is there, or can be looked into. */
bool stg_named_file_look(const char *path, stg_named_file *f);

bool stg_named_file_is_same(const stg_named_file *a, const stg_named_file *b);

#endif
