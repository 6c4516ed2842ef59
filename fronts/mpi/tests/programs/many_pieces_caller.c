/* RANKS: 2
 * Takes seconds: pieces by the thousand
 * many_pieces.inl with FARSUM_PATH=caller. */
static const char forced_path[] = "caller";
#include "many_pieces.inl"
