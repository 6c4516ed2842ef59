/* RANKS: 2
 * many_pieces.inl with FARSUM_PATH=attach. */
static const char forced_path[] = "attach";
#include "many_pieces.inl"
