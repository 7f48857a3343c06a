/* reference.c - references of a shape: looked up, else worked out, then kept. */
#include "probe/reference.h"

#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "probe/memo.h"

/* Everything the outputs depend on: the inputs' bytes, and the code that works the outputs out. */
static u64 hash_of(const qn_case *c)
{
    const char *code = qn_kernel_code("oracle");
    u64 h = qn_hash(code, strlen(code), c->op);
    for (int i = 0; i < c->n_operands; i++)
        if (c->operand[i].use == USE_in || c->operand[i].use == USE_inout)
            h = qn_hash(c->operand[i].saved, c->operand[i].bytes, h);
    return h;
}

static bool make_operand(qn_reference *r, const qn_case *c, int i, const qn_reference_key *key, qn_memo *memo, qn_err *e)
{
    qn_err ignored = { 0 }; /* a cache that fails is no reason to stop */
    r->n = c->operand[i].bytes / sizeof(float);
    r->y = qn_new_array(2 * r->n + 1, sizeof *r->y, e);
    if (!r->y) return false;
    if (memo && qn_memo_get_reference(memo, key, r->y, 2 * r->n, &ignored)) return true;
    if (!qn_oracle(c, i, r->y, r->y + r->n)) {
        qn_free(r->y);
        *r = (qn_reference){ 0 };
    } else if (memo) {
        qn_memo_put_reference(memo, key, r->y, 2 * r->n, &ignored);
    }
    return true;
}

bool qn_references_make(qn_references *r, const qn_shape *s, u64 seed, qn_memo *memo, qn_err *e)
{
    char text[QN_SHAPE_TEXT];
    bool ok = true;
    qn_shape_print(s, true, text);
    for (int mood = 0; ok && mood < N_MOODS; mood++) {
        qn_case c;
        if (!qn_case_open(&c, s->op, &s->args, qn_args_type(s->op, &s->args), (qn_mood)mood, seed + (u64)mood, e))
            return e->code == QN_OK;
        qn_reference_key key = { .shape = text, .inputs = hash_of(&c), .mood = mood };
        for (int i = 0; ok && i < c.n_operands; i++) {
            key.operand = i;
            if (c.operand[i].use == USE_out || c.operand[i].use == USE_inout)
                ok = make_operand(&r->of[mood][i], &c, i, &key, memo, e);
        }
        qn_case_close(&c);
    }
    return ok;
}

void qn_references_close(qn_references *r)
{
    for (int m = 0; m < N_MOODS; m++)
        for (int i = 0; i < QN_OPERANDS; i++) qn_free(r->of[m][i].y);
    *r = (qn_references){ 0 };
}
