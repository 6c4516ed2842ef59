"""What the project's figures have in common: SVG that is the same for the same points."""


def load_pyplot():
    """matplotlib's pyplot, drawing to files only; None where it is not here."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "farsum"
    from matplotlib import pyplot
    return pyplot


def save(pyplot, figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
