/* RANKS: 2
 * many_pieces.inl with FARSUM_PATH=owner. */
static const char forced_path[] = "owner";
#include "many_pieces.inl"
