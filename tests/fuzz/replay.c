/* replay.c - runs a fuzz target over files, without libFuzzer: every file below the folders given, each in one call. What it
 * catches is what the sanitizers of the build catch. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    uint8_t *data = malloc(1 << 22);
    const size_t n = data ? fread(data, 1, 1 << 22, f) : 0;
    fclose(f);
    uint8_t *exact = malloc(n ? n : 1); /* its own block, so that reading behind the end is seen */
    if (exact) {
        memcpy(exact, data, n);
        fprintf(stderr, "%s\n", path); /* the last one named is the one that failed */
        LLVMFuzzerTestOneInput(exact, n);
    }
    free(exact);
    free(data);
    return exact != NULL;
}

static int replay(const char *path)
{
    struct stat st;
    int n = 0;
    if (stat(path, &st) != 0) return 0;
    if (!S_ISDIR(st.st_mode)) return replay_file(path);
    DIR *d = opendir(path);
    for (const struct dirent *item; d && (item = readdir(d));) {
        char below[4096];
        if (item->d_name[0] == '.') continue;
        if (snprintf(below, sizeof below, "%s/%s", path, item->d_name) < (int)sizeof below) n += replay(below);
    }
    if (d) closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) n += replay(argv[i]);
    printf("%d inputs\n", n);
    return n > 0 ? 0 : 1;
}
