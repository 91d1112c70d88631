# Builds the recorder in the image `recorder-builder`, with the sources beside this file; $1: where it goes.
set -eu
cd "$(dirname "$0")"
case $(uname -m) in
x86_64) target=x86 ;;
aarch64) target=arm64 ;;
*) echo "no recorder for $(uname -m)" >&2; exit 1 ;;
esac
warn="-Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers"

# "#define __NR_name number" becomes a line of text in a C string.
calls() {
    printf '%s\n' "#define $1 \\"
    echo "#include <$2>" | clang -E -dM - | sed -n "s/^#define __NR_\([a-z0-9_]*\) \([0-9][0-9]*\)$/\"$3\2 \1\\\\n\" \\\\/p"
    echo '""'
}
{
    printf '#define ARCHITECTURE "arch %s\\n"\n' "$(uname -m)"
    calls NATIVE_CALLS asm/unistd.h ""
    if [ "$target" = x86 ]; then calls COMPAT_CALLS asm/unistd_32.h "32 "; else printf '#define COMPAT_CALLS ""\n'; fi
} > names.h

# Both architectures, so that one that is not at hand can't break unnoticed.
for each in x86 arm64; do
    clang -g -O2 $warn -target bpf -mcpu=v3 -D__TARGET_ARCH_$each -c recorder.bpf.c -o $each.bpf.o
done
mv $target.bpf.o recorder.bpf.o
clang -O2 $warn -static -s -o "$1" recorder.c calls.c out.c rings.c totals.c -lbpf -lelf -lz
