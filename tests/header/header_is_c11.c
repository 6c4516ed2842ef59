// farsum_embed.h, and farsum.h in it, compile as strict C11 with nothing included before them.
#include "farsum_embed.h"

int header_compiles_as_cpp(void);

int main(void) { return header_compiles_as_cpp(); }
