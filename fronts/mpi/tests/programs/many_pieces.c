/* RANKS: 2
 * Takes seconds: pieces by the thousand
 * many_pieces.inl on the path that Farsum takes by itself. */
static const char forced_path[] = "";
#include "many_pieces.inl"
