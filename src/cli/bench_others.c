/* bench_others.c - what others took of the cores while samples were taken: programs beside this one, and the host of a virtual
 * machine. The load average cannot say that: for minutes it remembers who has ended, the bench before this one first of all.
 * The kernel counts in ticks, so a few of them say nothing. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/bench.h"

#define MOST_OTHERS 0.05 /* of all cores */
#define MOST_HOST 0.02   /* likewise: waiting for it comes on top of what the core lost */
#define SLACK_S 0.03     /* three ticks */

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

qn_core_use qn_core_use_now(void)
{
    qn_core_use u = { .at_ns = qn_now_ns(), .cores = (int)sysconf(_SC_NPROCESSORS_ONLN) };
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    unsigned long long v[8]; /* user nice system idle iowait irq softirq steal */
    struct rusage own;
    FILE *f = fopen("/proc/stat", "re");
    if (!f) return u;
    const int n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7);
    fclose(f);
    if (n != 8 || getrusage(RUSAGE_SELF, &own)) return u;
    u.known = true;
    u.others_s = (double)(v[0] + v[1] + v[2] + v[5] + v[6]) * tick - seconds(own.ru_utime) - seconds(own.ru_stime);
    u.host_s = (double)v[7] * tick;
    return u;
}

void qn_core_use_add(qn_others *o, const qn_core_use *from, const qn_core_use *to)
{
    if (!from->known || !to->known) return;
    o->all_s += (double)(to->at_ns - from->at_ns) / 1e9 * to->cores;
    o->others_s += to->others_s - from->others_s;
    o->host_s += to->host_s - from->host_s;
}

/* Ticks are given to whoever runs when they come, so a share may come out a little below nothing. */
static double share(double s, double all_s) { return all_s > 0 && s > 0 ? s / all_s : 0; }

double qn_others_share(const qn_others *o) { return share(o->others_s, o->all_s); }
double qn_host_share(const qn_others *o) { return share(o->host_s, o->all_s); }

bool qn_others_disturb(const qn_others *o)
{
    return o->others_s > MOST_OTHERS * o->all_s + SLACK_S || o->host_s > MOST_HOST * o->all_s + SLACK_S;
}
