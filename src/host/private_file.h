/* private_file.h - whether only the hub may use a file. */
#ifndef STAGGER_HOST_PRIVATE_FILE_H
#define STAGGER_HOST_PRIVATE_FILE_H

#include <stdbool.h>

#include <sys/stat.h>

/* Others may do nothing with it, and its group at most read it, if this process
 * is in that group: Docker and Kubernetes hand secrets out as 0440 or 0640. */
bool stg_file_is_private(const struct stat *s);

#endif
