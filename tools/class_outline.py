"""Finds the classes in the text of a C++ file: their methods, their friends and the types that they name.

It reads what this project writes, not the whole language: a function's body is passed over, with the classes in it, and so are
macros. Used by tools/check_parts; decides nothing about what is allowed.
"""

import dataclasses
import re

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
# Their brackets are none of a function's parameters.
PREFIX = re.compile(r"\b(?:alignas|decltype|explicit|noexcept|__attribute__|[A-Z][A-Z0-9_]+)\s*\(")
ACCESS = re.compile(r"^\s*(?:public|private|protected)\s*:(?!:)")
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace\b\s*([\w:]*)$|^extern\s*$")
CLASS = re.compile(r"^(?:typedef\s+)?(?:class|struct|union)\b\s*([\w:]*)")
NO_METHOD = re.compile(r"^(?:using|typedef|static_assert|friend|enum|class|struct|union)\b")
FRIEND = re.compile(r"^friend\s+(?:class\s+|struct\s+)?([\w:]+)\s*;?$")
OUT_OF_LINE = re.compile(r"((?:\w+\s*::\s*)+)(?:~?\w+|operator.*)$", re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
OPENING, CLOSING = "([{", ")]}"


@dataclasses.dataclass
class Class:
    name: str  # with its namespaces and the classes that it lies in
    file: str
    methods: list = dataclasses.field(default_factory=list)
    friends: list = dataclasses.field(default_factory=list)
    names_used: set = dataclasses.field(default_factory=set)  # in its declarations, as they stand there


@dataclasses.dataclass
class Outline:
    classes: list = dataclasses.field(default_factory=list)
    defined: set = dataclasses.field(default_factory=set)  # (namespace, class) of each method outside of its class


def end_of(text, begin):
    """Where the bracket that opens at begin is closed, behind it."""
    depth = 0
    for at in range(begin, len(text)):
        if text[at] in OPENING:
            depth += 1
        elif text[at] in CLOSING:
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)


def without_brackets_of(text, pattern):
    """The text without what the pattern finds, which ends in a bracket, and what that bracket holds."""
    while match := pattern.search(text):
        text = text[: match.start()] + " " + text[end_of(text, match.end() - 1) :]
    return text


def bare(text):
    """The text without comments, texts in quotes, directives and attributes."""
    text = COMMENT_OR_TEXT.sub(lambda match: '""' if match[0][0] in "\"'R" else " ", text)
    return without_brackets_of(DIRECTIVE.sub("", text), re.compile(r"\[(?=\[)"))


def without_template(declaration):
    """The declaration without template <...> before it."""
    while match := re.match(r"\s*template\s*<", declaration):
        depth, at = 1, match.end()
        while depth and at < len(declaration):
            depth += {"<": 1, ">": -1}.get(declaration[at], 0)
            at += 1
        declaration = declaration[at:]
    return declaration.strip()


def head_of_function(declaration):
    """What stands before a function's parameters, or None where the declaration is of no function."""
    declaration = without_brackets_of(declaration, PREFIX)
    if re.search(r"\boperator\b", declaration):
        return declaration[: declaration.index("operator") + len("operator")]
    depth = 0
    for at, letter in enumerate(declaration):
        if letter == "<":
            depth += 1
        elif letter == ">" and declaration[at - 1] != "-":
            depth -= 1
        elif depth == 0 and letter in "={":
            return None
        elif depth == 0 and letter == "(":
            return None if re.match(r"\(\s*(?:\w+::)*[*&]", declaration[at:]) else declaration[:at].rstrip()
    return None


class Reader:
    """Walks over a file's text, one declaration after the other."""

    def __init__(self, text, file):
        self.text, self.file, self.at = bare(text), file, 0
        self.outline = Outline()

    def next_declaration(self):
        """The declaration up to its body, its ; or the } of the scope that it ends, and which of them it is."""
        begin = self.at
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter in ";{}":
                return self.text[begin : self.at].strip(), letter
            if access := ACCESS.match(self.text[begin : self.at + 1]) if letter == ":" else None:
                if self.text[self.at + 1 : self.at + 2] != ":":
                    begin += access.end()
            self.at = end_of(self.text, self.at) if letter in "([" else self.at + 1
        return "", "}"

    def read_scope(self, scope, owner):
        """Reads declarations up to the } of a namespace (owner is None) or of a class."""
        while True:
            declaration, end = self.next_declaration()
            if end == "}":
                self.at += 1
                return
            declaration = without_template(declaration)
            if end == "{" and not self.opens_scope(scope, declaration):
                declaration = self.pass_over_bodies(declaration)
            elif end == ";":
                self.at += 1
            else:
                continue
            self.note(scope, owner, declaration)

    def opens_scope(self, scope, declaration):
        """Reads the namespace or the class that begins here, and says whether one does."""
        head = without_brackets_of(declaration, PREFIX)
        namespace, one = NAMESPACE.match(head), CLASS.match(head)
        if namespace is None and (one is None or "(" in head):
            return False
        self.at += 1
        if namespace is not None:
            named = namespace[1] if namespace[1] or declaration.startswith("extern") else f"({self.file})"
            self.read_scope("::".join(filter(None, (scope, named))), None)
            return True
        made = Class("::".join(filter(None, (scope, one[1] or "(unnamed)"))), self.file)
        self.outline.classes.append(made)
        self.read_scope(made.name, made)
        return True

    def pass_over_bodies(self, declaration):
        """Goes behind a function's body, or a field's value, and returns all of the declaration but the body."""
        while True:
            self.at = end_of(self.text, self.at)
            rest = re.match(r"\s*([,{;]|\w+\s*[({;])?", self.text[self.at :])
            # Behind the body of a function nothing goes on; behind a value in a constructor's list or of a field something does.
            if rest[1] == ";":
                self.at += rest.end()
                return declaration
            if rest[1] not in (",", "{"):
                return declaration
            more, end = self.next_declaration()
            declaration += " " + more
            if end != "{":
                self.at += end == ";"
                return declaration

    def note(self, scope, owner, declaration):
        if owner is None:
            head = head_of_function(declaration)
            if head is not None and (found := OUT_OF_LINE.search(head)):
                self.outline.defined.add((scope, re.sub(r"\s", "", found[1]).rstrip(":")))
            return
        if friend := FRIEND.match(declaration):
            owner.friends.append(friend[1])
        if NO_METHOD.match(declaration):
            return
        # A method's body and a constructor's list are no part of what it takes.
        owner.names_used.update(NAME.findall(declaration))
        head = head_of_function(declaration)
        name = head and re.search(r"[~\w]+$", head)
        if name and name[0] not in (owner.name.rpartition("::")[2], "operator") and not name[0].startswith("~"):
            owner.methods.append(name[0])


def outline_of(text, file):
    """The outline of a C++ file."""
    reader = Reader(text, file)
    while reader.at < len(reader.text):
        reader.read_scope("", None)
    return reader.outline
