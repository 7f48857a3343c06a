/* progress.c - one line on stderr that says what is done, how much of it and how long it will take; only on a terminal.
 * It is also where long work learns of Ctrl-C, because everything long reports progress. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"

#define REDRAW_NS 100000000u /* ten times a second */

void qn_bar_open(qn_bar *b, const qn_cli *c)
{
    struct winsize w;
    memset(b, 0, sizeof *b);
    b->on = isatty(2) && !c->quiet;
    b->width = 80;
    if (b->on && ioctl(2, TIOCGWINSZ, &w) == 0 && w.ws_col >= 20) b->width = w.ws_col;
    b->start_ns = qn_now_ns();
    qn_interrupt_polled(true);
}

static void draw(const qn_bar *b, double share, double left_s)
{
    enum { MOST = 40 };
    char bar[MOST + 1], left[32] = "";
    const int room = b->width - (int)strlen(b->what) - 24;
    const int cells = room > MOST ? MOST : room;
    if (left_s >= 0 && left_s < 360000) {
        const int s = (int)(left_s + 0.5);
        if (s >= 3600) snprintf(left, sizeof left, "%d:%02d:%02d left", s / 3600, s / 60 % 60, s % 60);
        else snprintf(left, sizeof left, "%d:%02d left", s / 60, s % 60);
    }
    for (int i = 0; i < cells; i++) bar[i] = i < (int)(share * cells + 0.5) ? '#' : '.';
    bar[cells > 0 ? cells : 0] = 0;
    fprintf(stderr, "\r\033[K%s %s %3d%% %s", b->what, bar, (int)(share * 100), left);
    fflush(stderr);
}

bool qn_bar_show(void *bar, const char *what, double share)
{
    qn_bar *b = bar;
    const u64 now = qn_now_ns();
    if (b->on && (now - b->drawn_ns >= REDRAW_NS || strncmp(b->what, what, sizeof b->what - 1))) {
        if (strncmp(b->what, what, sizeof b->what - 1)) { /* a new phase has its own time left */
            snprintf(b->what, sizeof b->what, "%s", what);
            b->start_ns = now;
        }
        const double spent = (double)(now - b->start_ns) * 1e-9;
        share = share < 0 ? 0 : share > 1 ? 1 : share;
        draw(b, share, share > 0.01 && spent > 0.3 ? spent / share * (1 - share) : -1);
        b->drawn_ns = now;
    }
    return !qn_interrupted();
}

void qn_bar_close(qn_bar *b)
{
    if (b->on && b->drawn_ns) fputs("\r\033[K", stderr);
    b->on = false;
    qn_interrupt_polled(false);
}
