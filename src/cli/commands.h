/* commands.h - what `stagger` can do: a function for each command, in a
 * file of its own or a folder; pause, resume and reload are in control.c.
 *
 * argv[0] is "stagger COMMAND", which messages start with; options and words
 * follow. Returns the exit code. */
#ifndef STAGGER_CLI_COMMANDS_H
#define STAGGER_CLI_COMMANDS_H

int stg_cli_plan(int argc, char **argv);
int stg_cli_run(int argc, char **argv);
int stg_cli_sim(int argc, char **argv);

/* With the hub. */
int stg_cli_alert(int argc, char **argv);
int stg_cli_check(int argc, char **argv);
int stg_cli_dead(int argc, char **argv);
int stg_cli_demo(int argc, char **argv);
int stg_cli_hub(int argc, char **argv);
int stg_cli_pause(int argc, char **argv);
int stg_cli_reload(int argc, char **argv);
int stg_cli_resume(int argc, char **argv);
int stg_cli_secret(int argc, char **argv);
int stg_cli_send(int argc, char **argv);
int stg_cli_sink(int argc, char **argv);
int stg_cli_status(int argc, char **argv);
int stg_cli_store(int argc, char **argv);
int stg_cli_resend(int argc, char **argv);
int stg_cli_targets(int argc, char **argv);
int stg_cli_token(int argc, char **argv);

#endif
