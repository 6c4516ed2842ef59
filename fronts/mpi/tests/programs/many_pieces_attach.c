/* RANKS: 2
 * Takes seconds: pieces by the thousand
 * many_pieces.inl with FARSUM_PATH=attach. */
static const char forced_path[] = "attach";
#include "many_pieces.inl"
