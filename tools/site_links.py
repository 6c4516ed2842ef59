"""A hook of mkdocs (mkdocs.yml): links from a page to files outside docs/, such as sources, become plain words, for the site does
not have them. The docs themselves keep them, for whoever reads the tree."""

import os
import re

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]+)[^)\s]*\)")


def on_page_markdown(markdown, page, **_):
    folder = os.path.dirname(page.file.src_path)

    def shown(link):
        words, target = link.groups()
        leaves = not target.startswith(("http:", "https:")) and os.path.normpath(os.path.join(folder, target)).startswith("..")
        return words if leaves else link.group(0)

    return LINK.sub(shown, markdown)
