// farsum.h compiles as C++ with nothing included before it.
#include "farsum.h"

extern "C" int header_compiles_as_cpp(void);

extern "C" int header_compiles_as_cpp(void) { return 0; }
