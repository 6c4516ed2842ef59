"""Figures of lab_evidence's runs, as SVG: RandomAccess by depth, the automaton by mode. Without matplotlib there are none."""

from svg_figures import load_pyplot, save
from lab_tables import MEMORIES, Runs

STYLES = {"two-sided": ("tab:gray", "x"), "accumulate-flush": ("tab:blue", "o"), "accumulate-gathered": ("tab:green", "s")}


def randomaccess(pyplot, runs, path):
    """A panel for each library and memory: xor updates by depth, dashed without Farsum."""
    own = runs.of("randomaccess")
    libraries, depths = own.libraries(), sorted(own.values("depth"))
    figure, panels = pyplot.subplots(len(MEMORIES), len(libraries), figsize=(4 * len(libraries), 6), sharex=True, sharey=True,
                                     squeeze=False)
    for row, (memory, words) in zip(panels, MEMORIES.items()):
        for panel, mpi in zip(row, libraries):
            for mode, (colour, mark) in STYLES.items():
                for farsum in (False, True):
                    found = [(depth, own.find(mpi, farsum, mode=mode, depth=depth, op="xor", memory=memory)[0]) for depth in depths]
                    points = [(depth, record["million_updates_per_s"]["median"]) for depth, record in found if record]
                    panel.plot([x for x, _ in points], [y for _, y in points], color=colour, marker=mark, linestyle="-" if farsum else ":",
                               label=f"{mode}, {'Farsum' if farsum else 'alone'}")
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.set_title(f"{mpi}, {words} memory", fontsize=9)
            panel.grid(alpha=0.3)
        row[0].set_ylabel("million updates/s (xor)")
    for panel in panels[-1]:
        panel.set_xlabel("updates that may wait")
    panels[0][0].legend(fontsize=7)
    save(pyplot, figure, path)


def automaton(pyplot, runs, path):
    """Speed-up by mode, a panel for each library."""
    own = runs.of("automaton")
    libraries = own.libraries()
    labels = [(mode, memory) for mode in own.values("mode") for memory in (["-"] if mode == "two-sided" else MEMORIES)]
    figure, panels = pyplot.subplots(1, len(libraries), figsize=(4 * len(libraries), 4.5), sharey=True, squeeze=False)
    for panel, mpi in zip(panels[0], libraries):
        for farsum, offset, colour in ((False, 0.2, "tab:gray"), (True, -0.2, "tab:green")):
            found = [own.find(mpi, farsum, mode=mode, memory=memory)[0] for mode, memory in labels]
            panel.barh([place + offset for place in range(len(labels))],
                       [record["speedup"]["median"] if record else 0 for record in found], height=0.38, color=colour,
                       label="Farsum" if farsum else "alone")
        panel.set_title(mpi, fontsize=9)
        panel.set_xlabel("speed-up over the sequential program")
        panel.grid(axis="x", alpha=0.3)
    panels[0][0].set_yticks(range(len(labels)), [f"{mode}{'' if memory == '-' else ', ' + MEMORIES[memory]}" for mode, memory in labels],
                            fontsize=7)
    panels[0][0].invert_yaxis()
    panels[0][0].legend(fontsize=7)
    save(pyplot, figure, path)


def draw_all(results, folder):
    """Draws what there are records for; returns the paths."""
    runs = Runs(results)
    pyplot = load_pyplot()
    drawn = []
    for program, draw in (("randomaccess", randomaccess), ("automaton", automaton)):
        if pyplot and any(run["records"] for run in runs.of(program).runs):
            draw(pyplot, runs, folder / f"{program}.svg")
            drawn.append(folder / f"{program}.svg")
    return drawn
