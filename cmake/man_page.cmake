# Writes a page of the manual from what a command says of itself.
# Arguments: HELP2MAN; COMMAND, with its subcommand; PAGE, its name; ABOUT, one line; VERSION; OUTPUT.
execute_process(COMMAND "${HELP2MAN}" --no-info --section=1 "--version-string=${VERSION}" "--name=${ABOUT}" "${COMMAND}"
                OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)
# It takes the program's name for the page's.
string(TOUPPER "${PAGE}" title)
string(REGEX REPLACE "\n\\.TH [A-Z]+ " "\n.TH ${title} " page "${page}")
string(REGEX REPLACE "\n\\.SH NAME\n[^\n]* \\\\- " "\n.SH NAME\n${PAGE} \\\\- " page "${page}")
file(WRITE "${OUTPUT}" "${page}")
