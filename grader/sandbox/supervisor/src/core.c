/* The core's loop, and its answers to the front. */
#define _GNU_SOURCE
#include "core.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SAMPLE_NS (2 * NS_PER_MS)

uint64_t own_cpu(const struct core *core)
{
    return cpu_of_process(0) + cpu_of_process(core->front) + (core->canary != 0 ? cpu_of_process(core->canary) : core->canary_cpu_ns);
}

/* Tell the client why, if the front still can, and end the box: the death of PID 1 takes everything with it. */
_Noreturn void core_fatal(struct core *core, uint32_t code, int error, const char *text)
{
    struct message message = {.kind = M_FATAL, .number = code, .error = error};
    strncpy((char *)message.text, text, sizeof message.text - 1);
    message.text_bytes = (uint32_t)strlen((char *)message.text);
    if (message_send(core->front_fd, &message, NULL, 0) == 0) {
        struct pollfd closed = {.fd = core->front_fd, .events = 0}; /* POLLHUP: the front has written it and gone */
        poll(&closed, 1, 1000);
    }
    kill(-1, SIGKILL);
    _exit(100 + (int)code);
}

static void answer_open(struct core *core, const struct message *message)
{
    struct message answer = {.kind = M_OPENED};
    int fd = -1, made = 0;
    if (message->number == 0 && (core->state == CORE_IDLE || (core->state == CORE_HAND && !core->clearing && core->request[Q_KEEP_FILES] > 0)))
        fd = tree_put(core->mounts.submission_fd, (const char *)message->text, message->step != 0, 0444, 0, &answer.step, &made);
    else if (message->number == 1 && core->state == CORE_IDLE)
        fd = tree_put(core->mounts.fd[core->mounts.work], (const char *)message->text, message->step != 0, 0644, core->run_id,
                      &answer.step, &core->made_folder);
    else
        core_fatal(core, FATAL_PROTOCOL, 0, "a file at the wrong moment");
    answer.error = fd < 0 ? errno : 0;
    if (message_send(core->front_fd, &answer, &fd, fd < 0 ? 0 : 1) != 0)
        core_fatal(core, FATAL_FRONT, errno, "the front takes no answer");
    if (fd >= 0)
        close(fd);
}

static void take_message(struct core *core, const struct message *message, int *fds)
{
    if (message->kind != M_START && fds[0] >= 0)
        core_fatal(core, FATAL_PROTOCOL, 0, "descriptors that nobody asked for"); /* not closed: see message_receive */
    switch (message->kind) {
    case M_OPEN:
        answer_open(core, message);
        break;
    case M_START:
        if (core->state != CORE_IDLE)
            core_fatal(core, FATAL_PROTOCOL, 0, "a run while another one is on");
        if (!core->is_usable || core->canary == 0)
            core_fatal(core, FATAL_PROTOCOL, 0, "a run in a box that is not usable");
        run_start(core, message, fds);
        break;
    case M_KILL:
        if (core->state == CORE_RUNNING && (message->number == KILL_STDOUT || message->number == KILL_STDERR || message->number == KILL_CANCELLED))
            run_stop(core, (enum killed_for)message->number);
        break; /* in another state it came too late, which is no mistake */
    case M_CLEAR:
        if (core->state != CORE_IDLE)
            core_fatal(core, FATAL_PROTOCOL, 0, "clearing while a run is on");
        end_clear(core);
        break;
    default:
        core_fatal(core, FATAL_PROTOCOL, 0, "the front sent an unknown message");
    }
}

static void read_front(struct core *core)
{
    struct message message;
    int fds[START_FDS_COUNT];
    for (int i = 0; i < 16; i++) { /* bounded: limits are looked at in between */
        int got = message_receive(core->front_fd, &message, fds, START_FDS_COUNT);
        if (got == 0)
            return;
        if (got < 0) {
            /* End of file: the client has closed stdin and the front has ended. That is the ordinary way to go. */
            kill(-1, SIGKILL);
            _exit(0);
        }
        take_message(core, &message, fds);
    }
}

static void read_signals(struct core *core)
{
    struct signalfd_siginfo info[8];
    ssize_t got = read(core->signal_fd, info, sizeof info);
    for (ssize_t i = 0; got > 0 && i < got / (ssize_t)sizeof *info; i++) {
        if (info[i].ssi_signo == SIGTERM || info[i].ssi_signo == SIGINT) {
            kill(-1, SIGKILL);
            _exit(0);
        }
    }
}

static uint64_t next_wake_ns(const struct core *core)
{
    switch (core->state) {
    case CORE_RUNNING: return SAMPLE_NS;
    case CORE_KILLING: return NS_PER_MS / 2;
    case CORE_HAND: return 100 * NS_PER_MS;
    default: return NS_PER_S;
    }
}

_Noreturn void core_loop(struct core *core)
{
    for (;;) {
        struct pollfd watched[2] = {{.fd = core->front_fd, .events = POLLIN}, {.fd = core->signal_fd, .events = POLLIN}};
        uint64_t wait = next_wake_ns(core);
        struct timespec timeout = {(time_t)(wait / NS_PER_S), (long)(wait % NS_PER_S)};
        if (ppoll(watched, 2, &timeout, NULL) < 0 && errno != EINTR)
            core_fatal(core, FATAL_SYSTEM, errno, "ppoll");
        if (watched[1].revents != 0)
            read_signals(core);
        end_reap(core);
        int was_running = core->state == CORE_RUNNING; /* one that starts now has nothing to show yet, and wants the CPU */
        if (watched[0].revents != 0)
            read_front(core);
        if (was_running && core->state == CORE_RUNNING)
            run_watch(core);
        if (core->state == CORE_KILLING || core->state == CORE_HAND)
            end_step(core);
        if (core->life_ns != 0 && now_ns() - core->start_ns > core->life_ns)
            core_fatal(core, FATAL_LIFETIME, 0, "the box is past its lifetime");
    }
}
