/* test_import.c - other programs' logs as runs: the figures that stand in them, and faults in them. */
#include "unit/files.h"

#include <math.h>

#include "report/import.h"
#include "report/run.h"

static qn_run **open_log(const char *path, size_t *n)
{
    qn_err e = { 0 };
    qn_run **runs;
    if (!qn_runs_open(path, false, NULL, NULL, &runs, n, &e)) fail_msg("%s", e.msg);
    return runs;
}

static qn_run *open_text(const char *text)
{
    size_t n;
    qn_run **runs = open_log(put_file("x.log", text, strlen(text)), &n), *r = runs[0];
    assert_int_equal(n, 1);
    qn_free(runs);
    return r;
}

static void close_all(qn_run **runs, size_t n)
{
    for (size_t i = 0; i < n; i++) qn_run_close(runs[i]);
    qn_free(runs);
}

static bool has_note(const qn_run *r, const char *word)
{
    for (size_t i = 0; i < r->notes.n; i++)
        if (strstr(r->notes.p[i], word)) return true;
    return false;
}

static double share_of(const qn_run *r, qn_phase phase, const char *kernel)
{
    double all = 0, sum = 0;
    for (size_t i = 0; i < r->series.n; i++) {
        if (r->series.p[i].phase != phase) continue;
        all += (double)r->series.p[i].total_ns;
        if (!strcmp(r->series.p[i].kernel, kernel)) sum += (double)r->series.p[i].total_ns;
    }
    return 100 * sum / all;
}

/* The sums of all series of a kernel together: slope in ms a position. */
static double slope_of(const qn_run *r, const char *kernel, u64 *n)
{
    for (size_t i = 0; i < r->series.n; i++) {
        const qn_series *s = &r->series.p[i];
        if (s->phase != PHASE_decode || strcmp(s->kernel, kernel)) continue;
        const double k = (double)s->fit.n;
        *n = s->fit.n;
        return (k * s->fit.sxy - s->fit.sx * s->fit.sy) / (k * s->fit.sxx - s->fit.sx * s->fit.sx) / 1e6;
    }
    fail_msg("no %s", kernel);
    return 0;
}

/* ---- Doppler */

static void test_doppler(void **state)
{
    (void)state;
    size_t n;
    qn_run **runs = open_log("tests/data/logs/doppler.log.zst", &n), *r = runs[0];
    assert_int_equal(n, 1);
    assert_string_equal(r->source, "doppler");
    assert_string_equal(r->model, "gemma-3-1b-it");
    assert_string_equal(r->device, "apple metal-3, f16/subgroups, 4.0GB");
    assert_int_equal(r->layers, 26);
    assert_true(r->ended && !r->bad && !r->ignored);
    assert_int_equal(r->passes.n, 65);
    assert_int_equal(r->phase_tokens[PHASE_prefill], 9);
    assert_int_equal(r->phase_tokens[PHASE_decode], 255);
    assert_int_equal(r->passes.p[0].ns, 191800000);
    assert_int_equal(r->passes.p[1].pos, 9);
    assert_int_equal(r->passes.p[64].rows, 3);
    assert_int_equal(r->passes.p[64].pos, 9 + 252);
    u64 sum = 0, gpu = 0;
    for (int i = 0; i < N_PHASES; i++) sum += r->phase_ns[i];
    for (size_t i = 1; i < r->passes.n; i++) gpu += r->passes.p[i].steps_ns;
    assert_int_equal(sum, r->wall_ns);
    assert_int_equal(r->wall_ns, 44124100000);
    assert_int_equal(r->phase_ns[PHASE_decode], 40471500000);
    assert_true(fabs((double)gpu / 1e6 - 37092) < 5); /* rows are rounded */
    /* the two guilty ones */
    assert_true(fabs(share_of(r, PHASE_decode, "matmul_rmsnorm_fused:ffn_down") - 41.95) < 0.01);
    assert_true(fabs(share_of(r, PHASE_decode, "attention") - 41.58) < 0.01);
    assert_true(fabs(share_of(r, PHASE_prefill, "attention") - 21.2) < 0.05);
    /* attention grows, nothing else does */
    u64 samples;
    assert_true(fabs(slope_of(r, "attention", &samples) - 0.4399) < 0.0001);
    assert_int_equal(samples, 64);
    assert_true(fabs(slope_of(r, "matmul:lm_head", &samples)) < 0.001);
    assert_int_equal(r->requests.n, 1);
    assert_int_equal(r->requests.p[0].first_ns, 308100000);
    assert_int_equal(r->requests.p[0].tokens, 256);
    assert_int_equal(r->choices.n, 5);
    assert_string_equal(r->choices.p[0].kernel, "f16");
    assert_string_equal(r->choices.p[0].reason, "path_override_adaptive_fallback");
    assert_int_equal(r->memory.n, 2);
    assert_true(r->memory.p[1].weights > 2ull << 30);
    assert_int_equal(r->loads.n, 4);
    assert_string_equal(r->loads.p[1].phase, "embeddings");
    assert_true(fabs((double)r->loads.p[1].ns / 1e9 - 1.955) < 0.01);
    close_all(runs, n);
}

static void test_doppler_labels(void **state)
{
    (void)state;
    static const char *const labels[] = { "attention", "matmul:lm_head", "matmul:q_proj:L3", "matmul_rmsnorm_fused:L12.ffn_down",
                                          "odd:Lx", "rope:L7" };
    qn_buf b = { 0 };
    qn_buf_puts(&b, "[browser:warning] [10.0ms][Profile] Batch decode (N=2):\n[browser:warning] [10.1ms][Profile] GPU Profile Report\n");
    for (size_t i = 0; i < QN_COUNT(labels); i++) qn_buf_printf(&b, "%-25s %12.2f %8.1f\n", labels[i], 1.5, 10.0);
    qn_buf_puts(&b, "TOTAL 9.00 100.0\n\n");
    qn_run *r = open_text(b.p);
    assert_int_equal(r->series.n, QN_COUNT(labels));
    for (size_t i = 0; i < QN_COUNT(labels); i++) {
        char label[128];
        qn_doppler_label(&r->series.p[i], label, sizeof label);
        assert_string_equal(label, labels[i]);
        assert_int_equal(r->series.p[i].total_ns, 1500000);
    }
    assert_int_equal(r->series.p[3].layer, 12);
    assert_string_equal(r->series.p[3].role, "ffn_down");
    assert_int_equal(r->phase_tokens[PHASE_decode], 2);
    assert_true(has_note(r, "no closing line"));
    qn_run_close(r);
    qn_buf_close(&b);
}

static void test_doppler_faults(void **state)
{
    (void)state;
    qn_run *r = open_text("[browser:warning] [10.0ms][Profile] Batch decode (N=0):\n"
                          "[browser:warning] [9.0ms][Profile] GPU Profile Report\n"
                          "a  1.00  50.0\nb  -2.00  50.0\nc  1e300  1.0\nd  nan  1.0\n  7.0 8.0\nTOTAL  50.00  100.0\n"
                          "[browser:warning] [nonsense][Profile\n[\n[browser:x]\n[metrics] load=-1ms ttft=1e400ms decodeTokens=99999999999999\n"
                          "[browser:warning] [20.0ms][Profile] Batch decode (N=4):\n[browser:warning] [20.0ms][Profile] GPU Profile Report\n"
                          "a  3.00  50.0\n");
    assert_int_equal(r->series.n, 1);
    assert_int_equal(r->series.p[0].total_ns, 4000000);
    assert_true(r->ignored >= 3);
    assert_true(has_note(r, "says 50.00 in all"));
    assert_true(has_note(r, "is cut"));
    u64 sum = 0;
    for (int i = 0; i < N_PHASES; i++) sum += r->phase_ns[i];
    assert_int_equal(sum, r->wall_ns);
    qn_run_close(r);
}

/* ---- MLC */

static const qn_series *kernel_of(const qn_run *r, const char *kernel)
{
    for (size_t i = 0; i < r->series.n; i++)
        if (!strcmp(r->series.p[i].kernel, kernel)) return &r->series.p[i];
    fail_msg("no %s", kernel);
    return NULL;
}

static void check_kernel(const qn_run *r, const char *kernel, const char *role, qn_phase phase, u64 n, double total)
{
    const qn_series *s = kernel_of(r, kernel);
    assert_string_equal(s->role, role);
    assert_int_equal(s->phase, phase);
    assert_int_equal(s->n, n);
    assert_true(fabs((double)s->total_ns / 1e6 - total) < 1e-6);
}

static void test_mlc(void **state)
{
    (void)state;
    static const double totals[] = { 2344.95, 2257.64, 4015.16 };
    static const u64 captured[] = { 1988, 1967, 1981 };
    static const char *const types[] = { "q0f16", "q4f16_1", "q4f32_1" };
    size_t n;
    qn_run **runs = open_log("tests/data/logs/mlc.md", &n);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        u64 launches = 0;
        for (size_t k = 0; k < runs[i]->series.n; k++) launches += runs[i]->series.p[k].n;
        assert_string_equal(runs[i]->model, "Llama 3.2 1B");
        assert_string_equal(runs[i]->type, types[i]);
        assert_string_equal(runs[i]->device, "Apple M2");
        assert_int_equal(launches, captured[i]);
        assert_true(fabs((double)runs[i]->wall_ns / 1e6 - totals[i]) < 0.02);
        assert_int_equal(runs[i]->bad, 0);
    }
    check_kernel(runs[0], "NT_matmul7_kernel_2", "gate+up", PHASE_prefill, 63, 975.35);
    check_kernel(runs[0], "NT_matmul8_kernel_2", "down", PHASE_prefill, 64, 542.74);
    check_kernel(runs[0], "NT_matmul10_kernel", "qkv", PHASE_decode, 125, 26.83);
    check_kernel(runs[0], "NT_matmul14_kernel", "lm_head", PHASE_other, 11, 80.82);
    check_kernel(runs[0], "rms_norm1_kernel", "norm", PHASE_prefill, 4, 0.25);
    check_kernel(runs[0], "rms_norm2_kernel", "norm", PHASE_decode, 8, 0.21);
    check_kernel(runs[0], "fused_split2_silu2_multiply2_kernel", "silu(gate) x up", PHASE_decode, 125, 1.03);
    check_kernel(runs[1], "fused_dequantize_NT_matmul14_kernel", "lm_head", PHASE_other, 11, 58.71);
    check_kernel(runs[1], "fused_dequantize2_NT_matmul11_kernel", "o", PHASE_decode, 123, 11.54);
    check_kernel(runs[2], "fused_dequantize4_fused_NT_matmul8_add1_kernel_2", "down", PHASE_prefill, 62, 991.04);
    check_kernel(runs[2], "fused_dequantize_take1_kernel", "embedding", PHASE_other, 12, 0.17);
    assert_int_equal(kernel_of(runs[2], "fused_dequantize3_NT_matmul12_kernel")->max_ns, 1050000);
    close_all(runs, n);
}

static void test_mlc_faults(void **state)
{
    (void)state;
    qn_run *r = open_text("Kernel Name | Total_Time_ms | Iterations\n-----\na_kernel | 1.5 | 3\nb | x | 4\nc | -1 | 2\nd | 1e300 | 2\ne | 2 | \n| | |\n");
    assert_int_equal(r->series.n, 1);
    assert_int_equal(r->bad, 4);
    assert_true(has_note(r, "makes no sense"));
    assert_int_equal(r->wall_ns, 1500000);
    qn_run_close(r);
}

/* ---- Metallic */

#define WHEN(s) "{\"timestamp\":\"2025-12-18T10:00:0" s "Z\",\"span_id\":null,\"parent_span_id\":null,\"span_name\":null,\"event\":{\"type\":"
#define OP(s, name, us) WHEN(s) "\"GpuOpCompleted\",\"data\":{\"op_name\":\"" name "\",\"backend\":\"Metal\",\"duration_us\":" us "}}}\n"
#define HOST(s, parent, name, us) \
    WHEN(s) "\"InternalKernelCompleted\",\"data\":{\"parent_op_name\":\"" parent "\",\"internal_kernel_name\":\"" name "\",\"duration_us\":" us "}}}\n"

static void test_metallic(void **state)
{
    (void)state;
    qn_run *r = open_text(
        WHEN("0.5") "\"GgufFileMmap\",\"data\":{\"size_bytes\":1000}}}\n"
        WHEN("1.0") "\"KernelBackendSelected\",\"data\":{\"op_name\":\"sdpa\",\"backend\":\"legacy\",\"reason\":\"default_auto\"}}}\n"
        WHEN("1.0") "\"KernelBackendSelected\",\"data\":{\"op_name\":\"sdpa\",\"backend\":\"legacy\",\"reason\":\"default_auto\"}}}\n"
        WHEN("1.0") "\"HostMemory\",\"data\":{\"total_bytes\":77,\"kv_pool_used_bytes\":5}}}\n"
        OP("1.1", "tensor_staging_prepare", "30")
        OP("1.2", "Prompt Processing/block_0/sdpa_block_0_op/gemv (Q)", "100")
        HOST("1.3", "generation_loop", "iteration_total", "150")
        OP("1.4", "Generation Loop/block_3/mlp_swiglu_block_3_op/gemv (Q)", "40")
        OP("1.4", "Generation Loop/block_3/mlp_swiglu_block_3_op/cb_wait", "60")
        OP("1.4", "Generation Loop/block_3/mlp_swiglu_block_3_op/cb_gpu", "55")
        OP("1.4", "Generation Loop/block_3/mlp_swiglu_block_3_op/gemv (Q)", "-4")
        OP("1.4", "Generation Loop/block_3/mlp_swiglu_block_3_op/gemv (Q)", "1e300")
        HOST("1.4", "generation_loop", "forward_step_total", "70")
        HOST("1.5", "generation_loop", "iteration_total", "80")
        "rubbish\n"
        HOST("2.5", "decoding", "token_decode", "1")
        "{\"timestamp\":\"2025");
    assert_string_equal(r->source, "metallic");
    assert_int_equal(r->model_bytes, 1000);
    assert_int_equal(r->wall_ns, 2000000000);
    assert_int_equal(r->tokens.n, 2);
    assert_int_equal(r->passes.n, 2);
    assert_int_equal(r->passes.p[0].phase, PHASE_prefill);
    assert_int_equal(r->passes.p[1].steps_ns, 40000);
    assert_int_equal(r->phase_ns[PHASE_load], 30000);
    assert_int_equal(r->phase_ns[PHASE_prefill], 150000);
    assert_int_equal(r->phase_ns[PHASE_decode], 80000);
    assert_int_equal(r->series.n, 3);
    const qn_series *s = &r->series.p[2];
    assert_string_equal(s->kernel, "gemv (Q)");
    assert_string_equal(s->role, "mlp_swiglu");
    assert_string_equal(s->type, "Q");
    assert_int_equal(s->layer, 3);
    assert_int_equal(s->n, 1);
    assert_int_equal(r->choices.n, 1);
    assert_int_equal(r->memory.n, 1);
    assert_int_equal(r->memory.p[0].resident, 77);
    assert_int_equal(r->ignored, 2);
    assert_int_equal(r->bad, 1);
    assert_true(has_note(r, "1 damaged record, the first at byte"));
    assert_true(has_note(r, "1 cut record"));
    qn_run_close(r);
    /* the cheap mode: command buffers stand for launches */
    r = open_text(OP("0.0", "Generation Loop/cb_gpu", "500") OP("0.1", "Generation Loop/cb_gpu", "600"));
    assert_int_equal(r->series.n, 1);
    assert_string_equal(r->series.p[0].kernel, "command buffer");
    assert_int_equal(r->series.p[0].total_ns, 1100000);
    qn_run_close(r);
}

/* ---- Chrome */

static const qn_series *in_phase(const qn_run *r, qn_phase phase, const char *kernel)
{
    for (size_t i = 0; i < r->series.n; i++)
        if (r->series.p[i].phase == phase && !strcmp(r->series.p[i].kernel, kernel)) return &r->series.p[i];
    fail_msg("no %s in %s", kernel, qn_phase_names[phase]);
    return NULL;
}

/* Children before their parent, two tracks, begin and end, both forms of the file. */
static void test_chrome(void **state)
{
    (void)state;
    static const char events[] =
        "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"x\"}},\n"
        "{\"name\":\"matmul\",\"cat\":\"op\",\"ph\":\"X\",\"ts\":1010,\"dur\":30.5,\"pid\":1,\"tid\":\"a\"},\n"
        "{\"name\":\"matmul\",\"cat\":\"op\",\"ph\":\"X\",\"ts\":1050,\"dur\":10,\"pid\":1,\"tid\":\"a\"},"
        "{\"name\":\"prefill 9 rows\",\"ph\":\"X\",\"ts\":1000,\"dur\":100,\"pid\":1,\"tid\":\"a\",\"args\":{\"s\":\"}]\\\"\"}}\n,"
        "{\"name\":\"decode\",\"ph\":\"B\",\"ts\":1200,\"pid\":1,\"tid\":\"a\"},"
        "{\"name\":\"norm\",\"ph\":\"B\",\"ts\":1210,\"pid\":1,\"tid\":\"a\"},"
        "{\"name\":\"idle\",\"ph\":\"X\",\"ts\":1000,\"dur\":400,\"pid\":1,\"tid\":2},"
        "{\"ph\":\"E\",\"ts\":1230,\"pid\":1,\"tid\":\"a\"},"
        "{\"ph\":\"E\",\"ts\":1260,\"pid\":1,\"tid\":\"a\"},"
        "{\"ph\":\"E\",\"ts\":1270,\"pid\":1,\"tid\":\"a\"},"
        "{\"name\":\"never\",\"ph\":\"B\",\"ts\":1300,\"pid\":1,\"tid\":\"a\"},"
        "{\"name\":\"bad\",\"ph\":\"X\",\"ts\":1300,\"dur\":-5,\"pid\":1},"
        "{\"name\":\"bad\",\"ph\":\"X\",\"ts\":1e300,\"dur\":5,\"pid\":1},"
        "{\"name\":\"c\",\"ph\":\"C\",\"ts\":1300,\"args\":{\"v\":1}}";
    for (int form = 0; form < 4; form++) {
        qn_buf b = { 0 };
        if (form % 2) qn_buf_puts(&b, "{\"schemaVersion\":1, \"distributed\":{\"x\":[1,\"]\"]},\n\"s\":\"traceEvents\",\"traceEvents\" : ");
        qn_buf_puts(&b, "[");
        qn_buf_puts(&b, events);
        if (form < 2) qn_buf_puts(&b, form ? "],\"displayTimeUnit\":\"ns\"}" : "]"); /* otherwise the end is missing, as Chrome allows */
        qn_run *r = open_text(b.p);
        assert_string_equal(r->source, "chrome");
        assert_int_equal(r->wall_ns, 400000);
        assert_int_equal(r->phase_ns[PHASE_prefill], 100000);
        assert_int_equal(r->phase_ns[PHASE_decode], 60000);
        assert_int_equal(r->phase_ns[PHASE_other], 240000);
        assert_int_equal(in_phase(r, PHASE_prefill, "matmul")->total_ns, 40500);
        assert_int_equal(in_phase(r, PHASE_prefill, "matmul")->n, 2);
        assert_string_equal(in_phase(r, PHASE_prefill, "matmul")->op, "op");
        assert_int_equal(in_phase(r, PHASE_prefill, "prefill 9 rows")->total_ns, 59500);
        assert_int_equal(in_phase(r, PHASE_decode, "norm")->total_ns, 20000);
        assert_int_equal(in_phase(r, PHASE_decode, "decode")->total_ns, 40000);
        assert_int_equal(in_phase(r, PHASE_other, "idle")->total_ns, 400000);
        assert_int_equal(r->passes.n, 2);
        assert_int_equal(r->passes.p[0].steps_ns, 40500);
        assert_int_equal(r->ignored, 4); /* an end too many, a begin too many, two senseless times */
        assert_int_equal(r->unknown, 0);
        assert_true(has_note(r, "never end"));
        qn_run_close(r);
        qn_buf_close(&b);
    }
}

static void test_onnx(void **state)
{
    (void)state;
    qn_run *r = open_text("[\n{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :7,\"dur\" :500,\"ts\" :5,\"ph\" : \"X\",\"name\" :\"session_initialization\",\"args\" : {}},\n"
                          "{\"cat\" : \"Node\",\"pid\" :7,\"tid\" :7,\"dur\" :20,\"ts\" :610,\"ph\" : \"X\",\"name\" :\"/layer.0/MatMul_kernel_time\",\"args\" : {\"op_name\" : \"MatMul\",\"provider\" : \"CPUExecutionProvider\"}},\n"
                          "{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :7,\"dur\" :50,\"ts\" :600,\"ph\" : \"X\",\"name\" :\"model_run\",\"args\" : {}}\n]\n");
    assert_int_equal(r->phase_ns[PHASE_load], 500000);
    const qn_series *s = in_phase(r, PHASE_other, "MatMul");
    assert_string_equal(s->role, "/layer.0/MatMul");
    assert_int_equal(s->total_ns, 20000);
    assert_int_equal(in_phase(r, PHASE_other, "model_run")->total_ns, 30000);
    qn_run_close(r);
}

static void test_chrome_faults(void **state)
{
    (void)state;
    qn_run *r = open_text("{\"traceEvents\":[1, \"x\", [2], null, {\"ph\":\"X\",\"ts\":1,\"dur\":2,\"name\":\"a\"}, }, {bad}, {\"ph\":\"Q\"}, {\"ph\":\"X\",\"ts\":5,\"du");
    assert_int_equal(r->bad, 6);
    assert_int_equal(r->unknown, 1);
    assert_int_equal(r->series.n, 1);
    assert_true(has_note(r, "1 cut record at byte 95"));
    qn_run_close(r);
    r = open_text("{\"traceEvents\": null, \"x\": 3}");
    assert_int_equal(r->series.n, 0);
    qn_run_close(r);
    qn_buf b = { 0 }; /* an element over the limit is passed over */
    qn_buf_puts(&b, "[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"name\":\"a\"},{\"ph\":\"X\",\"name\":\"");
    for (int i = 0; i < 300000; i++) qn_buf_puts(&b, "abc}\\\"");
    qn_buf_puts(&b, "\",\"ts\":1,\"dur\":2},{\"ph\":\"X\",\"ts\":9,\"dur\":2,\"name\":\"b\"}]");
    r = open_text(b.p);
    assert_int_equal(r->bad, 1);
    assert_int_equal(r->series.n, 2);
    qn_run_close(r);
    qn_buf_close(&b);
}

/* ---- every allocation fails in turn */

static void test_no_memory(void **state)
{
    (void)state;
    static const char *const paths[] = { "tests/data/logs/mlc.md", "tests/data/logs/doppler.log.zst" };
    for (size_t i = 0; i < QN_COUNT(paths); i++) {
        bool done = false;
        for (u64 n = 1; !done; n += n < 400 ? 1 : n / 3) {
            qn_err e = { 0 };
            qn_run **runs;
            size_t k;
            qn_mem_fail_at(n, true);
            done = qn_runs_open(paths[i], false, NULL, NULL, &runs, &k, &e);
            qn_mem_fail_at(0, false);
            if (!done) assert_int_equal(e.code, QN_ENOMEM);
            else close_all(runs, k);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doppler), cmocka_unit_test(test_doppler_labels), cmocka_unit_test(test_doppler_faults),
        cmocka_unit_test(test_mlc), cmocka_unit_test(test_mlc_faults), cmocka_unit_test(test_metallic),
        cmocka_unit_test(test_chrome), cmocka_unit_test(test_onnx), cmocka_unit_test(test_chrome_faults), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
