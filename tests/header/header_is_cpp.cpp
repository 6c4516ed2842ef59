// farsum_embed.h, and farsum.h in it, compile as C++ with nothing included before them.
#include "farsum_embed.h"

extern "C" int header_compiles_as_cpp(void);

extern "C" int header_compiles_as_cpp(void) { return 0; }
