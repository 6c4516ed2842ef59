/* RANKS: 2
 * Takes seconds: pieces by the thousand
 * many_pieces.inl with FARSUM_PATH=owner. */
static const char forced_path[] = "owner";
#include "many_pieces.inl"
