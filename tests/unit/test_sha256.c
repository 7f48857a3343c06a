/* test_sha256.c - the published vectors, every cut of a text in two pieces, and every padding length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/sha256.h"

static void expect(const void *p, size_t n, const char *want)
{
    qn_sha256 s;
    char hex[65];
    qn_sha256_begin(&s);
    qn_sha256_add(&s, p, n);
    qn_sha256_end(&s, hex);
    assert_string_equal(hex, want);
}

static void vectors(void **state)
{
    (void)state;
    expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    expect(two, strlen(two), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    assert_non_null(million);
    memset(million, 'a', 1000000);
    expect(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* Lengths 0..130 cross both padding cases; each is hashed in one piece and in every two, and once byte by byte. */
static void pieces(void **state)
{
    (void)state;
    u8 text[130];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (u8)(i * 37 + 11);
    for (size_t n = 0; n <= sizeof text; n++) {
        qn_sha256 s;
        char whole[65], hex[65];
        qn_sha256_begin(&s);
        for (size_t i = 0; i < n; i++) qn_sha256_add(&s, text + i, 1);
        qn_sha256_end(&s, whole);
        for (size_t cut = 0; cut <= n; cut++) {
            qn_sha256_begin(&s);
            qn_sha256_add(&s, text, cut);
            qn_sha256_add(&s, text + cut, n - cut);
            qn_sha256_end(&s, hex);
            assert_string_equal(hex, whole);
        }
    }
    expect(text, 55, "2900465fcb533e05a158fd2b3be0e5e3b03740d83060aa3580e0d98a96bf2384");
    expect(text, 56, "31454ff48ef36af2f08fd511bdc37d9d5855ac23e992e5ff5445cb6b7674a674");
    expect(text, 119, "b0dc41b1a384e2f1203f0351b38fbeaafceef577ce1191d5bfc25da39f721eae");
    expect(text, 120, "5df24dd802ac26132ce608dcb5f09841eef039ee0f152acf98d26d17fe4e88e6");
}

static void names(void **state)
{
    (void)state;
    assert_true(qn_is_sha256("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    assert_false(qn_is_sha256("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85"));
    assert_false(qn_is_sha256("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85g"));
    assert_false(qn_is_sha256(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(vectors), cmocka_unit_test(pieces), cmocka_unit_test(names) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
