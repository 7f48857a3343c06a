# quern: plain GNU make. `make run` and `make test` are the two commands of the README; the rest serves them.
#   make                   build/quern, build/libquern.a, build/libquern.so
#   make MODE=asan         the same under build/asan (also: tsan, clang, fuzz)
#   make MODE=cross build/cross/check_kernels   the kernels for aarch64 and their check, to run under qemu-aarch64
#   make run               setup, build, and an answer with its profile
#   make test              setup, then everything that must hold (tests/run_all.py)
#   make unit T=test_buf   one unit test; without T all of them
#   make fuzz T=fuzz_gguf S=600   one fuzz target for S seconds, with its corpus
#   make CUDA=1            with kernels for NVIDIA GPUs inside (nvcc from PATH, CUDA_HOME, or fetched into .deps)
#   make docs              docs/TRACE.md anew, from src/trace/events.def
#   make trace-cost M=model.gguf   what recording costs
#   make install           PREFIX and DESTDIR as usual
# Every .c below src/ is part of the library, except cli/ which is the program. ISA flags belong to kernel/<isa>/ alone.

MODE   ?= release
BUILD  ?= build$(if $(filter release,$(MODE)),,/$(MODE))
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)

CC_clang := clang
CC_asan  := clang
CC_fuzz  := clang
CC_cross := aarch64-linux-gnu-gcc
CC       := $(or $(CC_$(MODE)),$(if $(filter default,$(origin CC)),gcc,$(CC)))

OPT_release := -O3 -g
OPT_clang   := -O3 -g
OPT_asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_tsan    := -O1 -g -fsanitize=thread
OPT_cross   := -O2 -g
OPT_fuzz    := -O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined

DEPS    := $(if $(filter-out cross,$(MODE)),libpcre2-8 libutf8proc libcurl sqlite3 libzstd hwloc libedit)
YYJSON  := $(shell pkg-config --exists yyjson 2>/dev/null && echo system)
DEPDIR  := .deps
WARN    := -Wall -Wextra -Wshadow -Wconversion -Werror -Wno-unknown-warning-option
CFLAGS  := -std=gnu17 -D_GNU_SOURCE $(WARN) $(OPT_$(MODE)) -fPIC -fvisibility=hidden -ffp-contract=off -pthread -MMD -MP \
           -Iinclude -Isrc $(shell pkg-config --cflags $(DEPS) 2>/dev/null) \
           $(if $(YYJSON),$(shell pkg-config --cflags yyjson),-isystem $(DEPDIR)/yyjson)
LIBS    := $(shell pkg-config --libs $(DEPS) 2>/dev/null) $(if $(YYJSON),$(shell pkg-config --libs yyjson)) -lm -ldl -pthread
ARCH    := $(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1)
VERSION := $(shell sed -n 's/^\#define QN_VERSION "\(.*\)"/\1/p' include/quern.h)
SONAME  := libquern.so.$(firstword $(subst ., ,$(VERSION)))

# Kernel folders: what this architecture has, and the flags each one may use.
ISA_x86_64  := avx2 avxvnni avx512 avx512vnni avx512bf16
ISA_aarch64 := neondot neoni8mm
FLAGS_base   :=
FLAGS_avx2   := -mavx2 -mfma -mf16c -mbmi2
FLAGS_avxvnni = $(FLAGS_avx2) -mavxvnni
FLAGS_avx512 := -mavx2 -mfma -mf16c -mbmi2 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512
FLAGS_avx512vnni = $(FLAGS_avx512) -mavx512vnni
FLAGS_avx512bf16 = $(FLAGS_avx512vnni) -mavx512bf16
FLAGS_neondot  := -march=armv8.2-a+dotprod
FLAGS_neoni8mm := -march=armv8.2-a+dotprod+i8mm

# The CUDA driver is opened at run time, so host code is always built; CUDA=1 only adds the kernels.
CUDA_ARCH ?= 80 89 90a
FATBINS   := $(patsubst src/kernel/cuda/%.cu,$(BUILD)/cuda/%.fatbin,$(wildcard src/kernel/cuda/*.cu))
NVCC       = $(shell tools/find_nvcc.sh)
NVCCFLAGS := -O3 -std=c++17 -Isrc --threads 2 $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) \
             -gencode arch=compute_80,code=compute_80

LIB_DIRS := base trace format text kernel kernel/ref kernel/base kernel/cuda $(ISA_$(ARCH):%=kernel/%) model engine probe report hub
LIB_SRC  := $(foreach d,$(LIB_DIRS),$(wildcard src/$(d)/*.c))
CLI_SRC  := $(wildcard src/cli/*.c)
TEST_SRC := $(wildcard tests/unit/test_*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)

obj = $(patsubst src/%.c,$(BUILD)/obj/%.o,$(1))
KERNEL_OBJ := $(filter $(BUILD)/obj/kernel/%,$(call obj,$(LIB_SRC)))
LIB_OBJ := $(call obj,$(LIB_SRC)) $(BUILD)/obj/page_files.o $(BUILD)/obj/kernel_code.o $(if $(YYJSON),,$(BUILD)/obj/yyjson.o)
CLI_OBJ := $(call obj,$(CLI_SRC))
TESTS   := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(TEST_SRC))
EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))

all: $(BUILD)/quern $(BUILD)/libquern.a $(BUILD)/libquern.so

$(BUILD)/quern: $(CLI_OBJ) $(BUILD)/libquern.a
	$(CC) $(OPT_$(MODE)) -o $@ $^ $(LIBS)

$(BUILD)/libquern.a: $(LIB_OBJ)
	rm -f $@ && ar qcs $@ $^ # q: two folders may hold files of one name

$(BUILD)/libquern.so: $(LIB_OBJ)
	$(CC) $(OPT_$(MODE)) -shared -Wl,-soname,$(SONAME) -o $@ $^ $(LIBS)

$(BUILD)/obj/kernel/avx2/%.o: ISA_FLAGS := $(FLAGS_avx2)
$(BUILD)/obj/kernel/avx512/%.o: ISA_FLAGS := $(FLAGS_avx512)
# Unrolled tiles of intrinsics take clang minutes to instrument; the probe's guard pages watch them in every mode.
TILES := $(if $(filter asan tsan fuzz,$(MODE)),-fno-sanitize=all -O2)
tiles = $(patsubst %,$(BUILD)/obj/kernel/$(1)/%.o,$(2))
$(call tiles,avx2,attend qlinear plinear matmul): ISA_FLAGS := $(FLAGS_avx2) $(TILES)
$(call tiles,avx512,attend plinear matmul): ISA_FLAGS := $(FLAGS_avx512) $(TILES)
$(call tiles,base,attend plinear matmul): ISA_FLAGS := $(TILES)
$(BUILD)/obj/kernel/avxvnni/%.o: ISA_FLAGS := $(FLAGS_avxvnni) $(TILES)
$(BUILD)/obj/kernel/neondot/%.o: ISA_FLAGS := $(FLAGS_neondot) $(TILES)
$(BUILD)/obj/kernel/neoni8mm/%.o: ISA_FLAGS := $(FLAGS_neoni8mm) $(TILES)
$(BUILD)/obj/kernel/avx512vnni/%.o: ISA_FLAGS := $(FLAGS_avx512vnni) $(TILES)
$(BUILD)/obj/kernel/avx512bf16/%.o: ISA_FLAGS := $(FLAGS_avx512bf16) $(TILES)

# The one object that differs with CUDA=1; a file that changes with the choice has it made anew.
CUDA_CHOICE := $(if $(CUDA),kernels for $(CUDA_ARCH),none)
$(shell mkdir -p $(BUILD)/cuda; [ "$$(cat $(BUILD)/cuda/choice 2>/dev/null)" = "$(CUDA_CHOICE)" ] || echo "$(CUDA_CHOICE)" > $(BUILD)/cuda/choice)
$(BUILD)/cuda/%.fatbin: src/kernel/cuda/%.cu $(wildcard src/kernel/cuda/*.cuh) src/kernel/cuda/abi.h $(BUILD)/cuda/choice
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -fatbin -o $@ $<
fatbins: $(FATBINS)
$(BUILD)/obj/kernel/cuda/fatbin.o: ISA_FLAGS := $(if $(CUDA),-DQN_CUDA='"$(BUILD)/cuda"')
$(BUILD)/obj/kernel/cuda/fatbin.o: $(BUILD)/cuda/choice $(if $(CUDA),$(FATBINS))

# gcc 12 for aarch64 breaks down while vectorising this one (internal error in vect_transform_reduction)
$(BUILD)/obj/probe/oracle.o: ISA_FLAGS := $(if $(filter aarch64,$(ARCH)),-fno-tree-vectorize)

$(BUILD)/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(ISA_FLAGS) -c -o $@ $<

# What a trace says it was made by; the file changes only when the commit does.
COMMIT := $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
$(BUILD)/obj/cli/tracing.o: CFLAGS += -DQN_COMMIT='"$(COMMIT)"'
$(BUILD)/obj/cli/tracing.o: $(BUILD)/commit
$(BUILD)/commit: always
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' > $@
always:

# The page of HTML reports: real files below src/report/page, constants in the program.
PAGE    := src/report/page
PAGE_JS := $(addprefix $(PAGE)/,base.js timeline.js icicle.js roofline.js curves.js memory.js table.js report.js compare.js probe.js start.js)
$(BUILD)/obj/page_files.c: $(PAGE)/page.html $(PAGE)/page.css $(PAGE_JS) tools/embed.py Makefile
	@mkdir -p $(@D)
	@{ tools/embed.py qn_page_html $(PAGE)/page.html; tools/embed.py qn_page_css $(PAGE)/page.css; \
	   tools/embed.py qn_page_js $(PAGE_JS); } > $@.part && mv $@.part $@
$(BUILD)/obj/page_files.o: $(BUILD)/obj/page_files.c
	$(CC) $(CFLAGS) -c -o $@ $<

# Which kernels changed since they were measured: src/probe/memo.c.
CODE_OBJ := $(KERNEL_OBJ) $(BUILD)/obj/probe/oracle.o
$(BUILD)/kernel_code.c: tools/kernel_code.sh $(CODE_OBJ)
	tools/kernel_code.sh $(CODE_OBJ) > $@.new && mv $@.new $@
$(BUILD)/obj/kernel_code.o: $(BUILD)/kernel_code.c
	$(CC) $(CFLAGS) -c -o $@ $<

$(BUILD)/obj/yyjson.o: $(DEPDIR)/yyjson/yyjson.c Makefile
	@mkdir -p $(@D)
	$(CC) $(OPT_$(MODE)) -fPIC -w -Dyyjson_api= -fvisibility=hidden -c -o $@ $<

$(DEPDIR)/yyjson/yyjson.c:
	tools/setup.sh yyjson

# ---- what is made from the program itself

$(BUILD)/share/quern.1: $(BUILD)/quern
	@mkdir -p $(@D)
	$< __man > $@
$(BUILD)/share/quern.%: $(BUILD)/quern
	@mkdir -p $(@D)
	$< completion $* > $@

$(BUILD)/share/quern.pc: Makefile include/quern.h
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' 'Name: quern' \
	    'Description: runs language models and says where the time goes' 'Version: $(VERSION)' \
	    'Requires.private: $(DEPS)' 'Libs: -L$${libdir} -lquern' 'Libs.private: -lm -ldl -pthread' \
	    'Cflags: -I$${includedir}' > $@

docs: $(BUILD)/quern
	$< __trace > docs/TRACE.md

SHARE := $(addprefix $(BUILD)/share/quern.,1 bash zsh fish pc)
D      = $(DESTDIR)$(PREFIX)

install: all $(SHARE)
	install -d $(D)/bin $(D)/include $(D)/lib/pkgconfig $(D)/share/man/man1 $(D)/share/quern \
	    $(D)/share/bash-completion/completions $(D)/share/zsh/site-functions $(D)/share/fish/vendor_completions.d
	install -m 755 $(BUILD)/quern $(D)/bin/quern
	install -m 644 include/quern.h $(D)/include/quern.h
	install -m 644 $(BUILD)/libquern.a $(D)/lib/libquern.a
	install -m 755 $(BUILD)/libquern.so $(D)/lib/libquern.so.$(VERSION)
	ln -sf libquern.so.$(VERSION) $(D)/lib/$(SONAME)
	ln -sf $(SONAME) $(D)/lib/libquern.so
	sed 's|^prefix=.*|prefix=$(PREFIX)|' $(BUILD)/share/quern.pc > $(D)/lib/pkgconfig/quern.pc
	install -m 644 $(BUILD)/share/quern.1 $(D)/share/man/man1/quern.1
	install -m 644 $(BUILD)/share/quern.bash $(D)/share/bash-completion/completions/quern
	install -m 644 $(BUILD)/share/quern.zsh $(D)/share/zsh/site-functions/_quern
	install -m 644 $(BUILD)/share/quern.fish $(D)/share/fish/vendor_completions.d/quern.fish
	install -m 644 models/quern-tiny.gguf $(D)/share/quern/quern-tiny.gguf

# ---- examples, tests

examples: $(EXAMPLES)
$(BUILD)/examples/%: examples/%.c $(BUILD)/libquern.a
	@mkdir -p $(@D)
	$(CC) -std=c17 $(WARN) $(OPT_$(MODE)) -Iinclude -o $@ $< $(BUILD)/libquern.a $(LIBS)

$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libquern.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Itests -o $@ $< $(BUILD)/libquern.a -lcmocka $(LIBS)

$(BUILD)/bench/%: bench/%.c $(BUILD)/libquern.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $< $(BUILD)/libquern.a $(LIBS)
trace-cost: $(BUILD)/bench/trace_cost
	@f=$$(mktemp --suffix=.jsonl) && { $< $(M) $$f 0 $(or $(PAIRS),60) $(KEPT); rc=$$?; rm -f $$f; exit $$rc; }

unit-build: $(TESTS)
unit: $(if $(T),$(BUILD)/unit/$(T),$(TESTS))
	@for t in $^; do echo "== $$t"; $$t || exit 1; done

$(BUILD)/fuzz/%: tests/fuzz/%.c $(BUILD)/libquern.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fsanitize=fuzzer -Itests -o $@ $< $(BUILD)/libquern.a $(LIBS)

# The corpus is replayed by a plain loop, so that the sanitizer build serves it too.
$(BUILD)/replay/%: tests/fuzz/%.c tests/fuzz/replay.c $(BUILD)/libquern.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Itests -o $@ $< tests/fuzz/replay.c $(BUILD)/libquern.a $(LIBS)
replay-build: $(patsubst tests/fuzz/%.c,$(BUILD)/replay/%,$(FUZZ_SRC))

# The pool's test needs base/ alone: no need to build the rest under TSan.
BASE_OBJ := $(call obj,$(wildcard src/base/*.c)) $(if $(YYJSON),,$(BUILD)/obj/yyjson.o)
$(BUILD)/unit/base-%: tests/unit/%.c $(BASE_OBJ)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Itests -o $@ $^ -lcmocka $(LIBS)

# Kernels of another architecture, with the check that walks them: a static program that runs under qemu-user. None of the
# libraries is there, so it takes what needs none.
CROSS_SRC := $(filter-out %/topology.c %/db.c %/json.c,$(wildcard src/base/*.c)) $(wildcard src/format/*.c) \
             $(foreach d,. ref base $(ISA_$(ARCH)),$(wildcard src/kernel/$(d)/*.c)) \
             $(addprefix src/probe/,check.c compare.c cases.c case_row.c oracle.c guard.c)
$(BUILD)/libkernels.a: $(call obj,$(CROSS_SRC))
	rm -f $@ && ar qcs $@ $^
$(BUILD)/check_kernels: tests/cross/check_kernels.c tests/cross/one_core.c $(BUILD)/libkernels.a
	$(CC) $(CFLAGS) -static -o $@ $^ -lm -pthread

fuzz:
	@$(MAKE) -s MODE=fuzz build/fuzz/fuzz/$(T)
	@mkdir -p build/fuzz/found/$(T) tests/fuzz/corpus/$(T:fuzz_%=%)
	build/fuzz/fuzz/$(T) -max_total_time=$(or $(S),60) -timeout=10 -rss_limit_mb=2048 build/fuzz/found/$(T) \
	    tests/fuzz/corpus/$(T:fuzz_%=%)

# ---- the two commands. They call make again, because this one was read before setup ran.

setup:
	@tools/setup.sh build
run:
	@tools/setup.sh build
	@$(MAKE) -s -j$(JOBS) all
	@tools/run.sh
test:
	@tools/setup.sh testing
	@python3 tests/run_all.py -j $(JOBS)

clean:
	rm -rf build

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TESTS:=.d)
.PHONY: all docs fatbins install examples unit unit-build fuzz replay-build setup run test clean always trace-cost
.SECONDARY:
