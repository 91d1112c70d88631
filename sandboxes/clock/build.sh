# Argument: where the library goes. On no C library, so that it can be preloaded beside any.
set -e
gcc -std=gnu11 -shared -fPIC -O2 -s -nostdlib -fno-stack-protector -Wall -Wextra -Werror -o "$1" /tmp/clock.c
