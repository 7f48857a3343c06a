#!/bin/sh
# kernel_code.sh OBJECT... - a C table with the hash of the object file that each function of kernel/ was compiled into, so that the
# probe knows which kernels changed since it measured them.
echo '/* made by tools/kernel_code.sh */'
echo 'typedef struct code_row { const char *symbol, *hash; } code_row;'
echo 'extern const code_row qn_kernel_code_rows[];'
echo 'extern const int qn_n_kernel_code_rows;'
echo 'const code_row qn_kernel_code_rows[] = {'
for object in "$@"; do
    hash=$(sha256sum < "$object" | cut -c1-16)
    nm --defined-only "$object" | awk -v hash="$hash" '$2 == "T" && $3 ~ /^qn_/ { printf "    { \"%s\", \"%s\" },\n", $3, hash }'
done
echo '};'
echo 'const int qn_n_kernel_code_rows = (int)(sizeof qn_kernel_code_rows / sizeof qn_kernel_code_rows[0]);'
