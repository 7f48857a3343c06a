# quern: plain GNU make. `make run` and `make test` are the two commands of the README; the rest serves them.
#   make            build/quern, build/libquern.a, build/libquern.so
#   make MODE=asan  the same under build/asan (also: tsan, clang, fuzz)
#   make unit T=test_buf   one unit test
# Every .c below src/ is part of the library, except cli/ which is the program. ISA flags belong to kernel/<isa>/ alone.

MODE   ?= release
BUILD  ?= build$(if $(filter release,$(MODE)),,/$(MODE))
PREFIX ?= /usr/local

CC_clang := clang
CC_fuzz  := clang
CC       := $(or $(CC_$(MODE)),$(if $(filter default,$(origin CC)),gcc,$(CC)))

OPT_release := -O3 -g
OPT_clang   := -O3 -g
OPT_asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_tsan    := -O1 -g -fsanitize=thread
OPT_fuzz    := -O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined

DEPS    := libpcre2-8 libutf8proc libcurl sqlite3 libzstd hwloc libedit
YYJSON  := $(shell pkg-config --exists yyjson && echo system)
DEPDIR  := .deps
WARN    := -Wall -Wextra -Wshadow -Wconversion -Werror -Wno-unknown-warning-option
CFLAGS  := -std=gnu17 -D_GNU_SOURCE $(WARN) $(OPT_$(MODE)) -fPIC -fvisibility=hidden -ffp-contract=off -pthread -MMD -MP \
           -Iinclude -Isrc $(shell pkg-config --cflags $(DEPS)) \
           $(if $(YYJSON),$(shell pkg-config --cflags yyjson),-isystem $(DEPDIR)/yyjson)
LIBS    := $(shell pkg-config --libs $(DEPS)) $(if $(YYJSON),$(shell pkg-config --libs yyjson)) -lm -ldl -pthread
ARCH    := $(shell $(CC) -dumpmachine | cut -d- -f1)

# Kernel folders: what this architecture has, and the flags each one may use.
ISA_x86_64  := avx2 avx512
ISA_aarch64 :=
FLAGS_base   :=
FLAGS_avx2   := -mavx2 -mfma -mf16c -mbmi2 -ffp-contract=fast
FLAGS_avx512 := -mavx2 -mfma -mf16c -mbmi2 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512 -ffp-contract=fast

LIB_DIRS := base trace format text kernel kernel/ref kernel/base $(ISA_$(ARCH):%=kernel/%) model engine probe report hub
LIB_SRC  := $(foreach d,$(LIB_DIRS),$(wildcard src/$(d)/*.c))
CLI_SRC  := $(wildcard src/cli/*.c)
TEST_SRC := $(wildcard tests/unit/test_*.c)

obj = $(patsubst src/%.c,$(BUILD)/obj/%.o,$(1))
LIB_OBJ := $(call obj,$(LIB_SRC)) $(if $(YYJSON),,$(BUILD)/obj/yyjson.o)
CLI_OBJ := $(call obj,$(CLI_SRC))
TESTS   := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(TEST_SRC))

all: $(BUILD)/quern $(BUILD)/libquern.a $(BUILD)/libquern.so

$(BUILD)/quern: $(CLI_OBJ) $(BUILD)/libquern.a
	$(CC) $(OPT_$(MODE)) -o $@ $^ $(LIBS)

$(BUILD)/libquern.a: $(LIB_OBJ)
	rm -f $@ && ar rcs $@ $^

$(BUILD)/libquern.so: $(LIB_OBJ)
	$(CC) $(OPT_$(MODE)) -shared -Wl,-soname,libquern.so.0 -o $@ $^ $(LIBS)

$(BUILD)/obj/kernel/avx2/%.o: ISA_FLAGS := $(FLAGS_avx2)
$(BUILD)/obj/kernel/avx512/%.o: ISA_FLAGS := $(FLAGS_avx512)

$(BUILD)/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(ISA_FLAGS) -c -o $@ $<

$(BUILD)/obj/yyjson.o: $(DEPDIR)/yyjson/yyjson.c
	@mkdir -p $(@D)
	$(CC) -O3 -g -fPIC -w -c -o $@ $<

$(DEPDIR)/yyjson/yyjson.c:
	tools/setup.sh yyjson

$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libquern.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Itests -o $@ $< $(BUILD)/libquern.a -lcmocka $(LIBS)

unit: $(if $(T),$(BUILD)/unit/$(T),$(TESTS))
	@for t in $^; do echo "== $$t"; $$t || exit 1; done

clean:
	rm -rf build

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TESTS:=.d)
.PHONY: all unit clean
.SECONDARY:
