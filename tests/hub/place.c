/* Opens and closes what place.h says; what fails here fails the test. */
#include "tests/hub/place.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/admin.h"
#include "config/load.h"
#include "tests/harness.h"

static void open_listener(place *p)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(p->listener, (struct sockaddr *)&at, size) == 0);
    CHECK(listen(p->listener, 8) == 0);
    CHECK(getsockname(p->listener, (struct sockaddr *)&at, &size) == 0);
    p->port = ntohs(at.sin_port);
}

void place_begin(place *p)
{
    const char *top = getenv("TMPDIR");

    *p = (place){.hub = NULL};
    snprintf(p->folder, sizeof p->folder, "%.40s/stagger-XXXXXX",
             top != NULL ? top : "/tmp");
    CHECK(mkdtemp(p->folder) != NULL);
    snprintf(p->path, sizeof p->path, "%s/hub.yaml", p->folder);
    open_listener(p);
    CHECK(uv_loop_init(&p->loop) == 0);
}

static void note_end(void *ctx, const stg_hub_end *end)
{
    place *p = ctx;

    (void)end;
    p->has_ended = true;
}

void place_start(place *p)
{
    stg_diagnostics c = {.all = NULL};
    stg_hub_options o = {
        .calls = &stg_admin_calls, .ended = note_end, .ctx = p};
    stg_error err = {.text = ""};

    CHECK_INT(stg_settings_load(p->path, &o.settings, &c), STG_OK);
    stg_diagnostics_free(&c);
    (void)stg_hub_open(&p->hub, &p->loop, &o, &err);
    CHECK_STR(err.text, "");
}

void place_end(place *p)
{
    char command[96];

    stg_hub_stop(p->hub);
    close(p->listener); // what waits there has ended with it
    CHECK(uv_run(&p->loop, UV_RUN_DEFAULT) == 0);
    CHECK(p->has_ended);
    stg_hub_free(p->hub);
    CHECK(uv_loop_close(&p->loop) == 0);
    snprintf(command, sizeof command, "rm -rf %s", p->folder);
    CHECK(system(command) == 0);
}
