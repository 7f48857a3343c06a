/* signals.c - Ctrl-C, a reader that left, a file that shrank. A handler has nothing but globals to reach, so those below are
 * the program's only ones; they are of kinds that handlers may touch. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cli/command.h"

static volatile sig_atomic_t interrupts; /* since the last clear */
static volatile sig_atomic_t polled;
static _Atomic(qn_engine *) armed;
static struct termios terminal; /* as it was when the program began */
static bool has_terminal;

static void on_interrupt(int sig)
{
    (void)sig;
    interrupts = interrupts + 1;
    qn_engine *en = atomic_load(&armed);
    if (interrupts > 1 || (!en && !polled)) {
        if (has_terminal && tcgetpgrp(0) == getpgrp()) tcsetattr(0, TCSANOW, &terminal);
        (void)!write(2, "\n", 1);
        _exit(QN_EXIT_SIGINT);
    }
    if (en) qn_engine_cancel(en);
}

/* The last net below base/file.c: whatever reads a mapped file that was cut short ends with a sentence, not a core dump. */
static void on_bus(int sig)
{
    static const char text[] = "quern: a mapped file became shorter while it was read, or its disk failed\n";
    (void)sig;
    (void)!write(2, text, sizeof text - 1);
    _exit(QN_EXIT_FAIL);
}

/* A closed stdin, stdout or stderr would give its number to the next file that is opened. A stdout that cannot be written
 * takes its place: the first write fails, as it should. */
static void fill_closed(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);
}

void qn_signals_init(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    fill_closed();
    has_terminal = tcgetattr(0, &terminal) == 0;
    sigemptyset(&a.sa_mask);
    a.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &a, NULL);
    sigaction(SIGXFSZ, &a, NULL); /* the write fails instead, and says so */
    a.sa_handler = on_bus;
    sigaction(SIGBUS, &a, NULL);
    a.sa_handler = on_interrupt; /* without SA_RESTART: a read that waits must wake */
    sigaction(SIGINT, &a, NULL);
}

bool qn_interrupted(void) { return interrupts > 0; }
void qn_interrupt_clear(void) { interrupts = 0; }
void qn_interrupt_arm(qn_engine *en) { atomic_store(&armed, en); }
void qn_interrupt_polled(bool on) { polled = on; }
