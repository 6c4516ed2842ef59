// farsum.h compiles as strict C11 with nothing included before it.
#include "farsum.h"

int header_compiles_as_cpp(void);

int main(void) { return header_compiles_as_cpp(); }
