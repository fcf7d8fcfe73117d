"""The paper's tables beside ours: its figures are data (records/paper.json), ours are the stored records."""

from __future__ import annotations

import json
from functools import cache
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from scipy.stats import t as student
from scipy.stats import ttest_ind

from autosf.algebra.disguise import BY_TURNING, twins
from autosf.algebra.structure import Structure, from_json, to_json
from autosf.algebra.zoo import BY_NAME, ZOO, named
from autosf.counting import counted
from benchmarks.stored import RESULTS, newest_trainings, records, table

if TYPE_CHECKING:
    from collections.abc import Sequence

FINDS = {
    "WN18": "autosf-wn18",
    "FB15k": "autosf-fb15k",
    "WN18RR": "autosf-wn18rr",
    "FB15k-237": "autosf-fb15k237",
    "YAGO3-10": "autosf-yago3-10",
}
HUMAN_DESIGNED = {"distmult": "DistMult", "complex": "ComplEx", "analogy": "Analogy", "simple": "SimplE"}
SEARCHED_DIMENSION = 64
SUMMARY = ("Nations", "Kinships", "UMLS", "WN18RR", "FB15k-237", "WN18")
PARTS = (0.2, 0.4, 0.6, 0.8, 1.0)  # of a training's epochs
SEARCH_TRAININGS = 256  # in a greedy step of Alg. 2, as the paper sets it


@cache
def paper(table: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "records" / "paper.json").read_text(encoding="utf-8"))[
        table
    ]
    return found


def statistics_table() -> str:
    """Table III: ours exact, the paper's below where it has the graph."""
    rows = []
    for line in records("statistics"):
        rows.append([line["graph"], "here", *(f"{count:,}" for count in line["counts"])])
        if line["graph"] in paper("statistics"):
            rows.append(["", "paper", *(f"{count:,}" for count in paper("statistics")[line["graph"]])])
    head = "graph | | entities | relations | train | valid | test | symmetric | anti-symmetric | inverse | general"
    return table(head, rows)


def models(graph: str) -> dict[str, str]:
    """The rows of a table: the human-designed four and the published find, by our names for them."""
    return {**HUMAN_DESIGNED, FINDS[graph]: "the paper's find"}


def named_here(graph: str) -> set[str]:
    """What searches of ours have named on the graph, as trainings call it: by name where it has one, else rows."""
    rows = [
        run["structure"] for run in records("search") if (run["graph"], run["strategy"]) == (graph, "free")
    ]
    found = {called(Structure(tuple(map(tuple, each)))) for each in rows}
    return found | {named_by(line) for line in records("large_searches") if line["graph"] == graph}


def called(structure: Structure) -> str:
    return next((known.name for known in ZOO if known.structure == structure), to_json(structure))


def found_here(graph: str) -> dict[str, str]:
    """What searches of ours have named on the graph beside the paper's four."""
    others = sorted(named_here(graph) - HUMAN_DESIGNED.keys())
    return {one: "found here" if one.startswith("[") else f"{named(one).title}, named here" for one in others}


def of(graph: str, structure: str, dimension: int) -> list[dict[str, Any]]:
    return [
        run
        for run in newest_trainings()
        if (run["graph"], run["structure"], run["settings"]["dimension"]) == (graph, structure, dimension)
    ]


def mean_and_spread(values: Sequence[float], digits: int) -> str:
    """Their mean, with the standard deviation of a single one where there are several; a dash for none."""
    if not values:
        return "-"
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{spread}"


def links_table() -> str:
    """Table IV: test MRR of the same structures at the paper's dimension and at ours."""
    rows = []
    for graph, figures in paper("links").items():
        for structure, name in (models(graph) | found_here(graph)).items():
            small, large = of(graph, structure, 64), of(graph, structure, 256)
            if small or large:
                rows.append([
                    graph,
                    name,
                    "-" if structure in found_here(graph) else f"{figures.get(structure, figures['found']):.3f}",
                    mean_and_spread([run["test"]["mrr"] for run in small], 4),
                    mean_and_spread([run["test"]["hits_at_10"] for run in small], 4),
                    mean_and_spread([run["test"]["mrr"] for run in large], 4),
                    str(max(len(small), len(large))),
                ])  # fmt: skip
    head = "graph | model | paper's MRR | MRR, d = 64 | Hits@10, d = 64 | MRR, d = 256 | seeds"
    return table(head, rows)


def named_by(search: dict[str, Any]) -> str:
    """What a search has named: the first of its play-off on the whole graph, where it had one."""
    structure: str = search["playoff"][0][0] if search.get("playoff") else search["winner"]["structure"]
    return structure


def in_words(structure: str) -> str:
    """A structure as the tables call it; rows of one that is known by a turn, with what it is."""
    if not structure.startswith("["):
        return named(structure).title
    turned = [twin.known.title for twin in twins(from_json(structure)) if twin.how == BY_TURNING]
    return f"{structure} ({', '.join(turned)} after a turn)" if turned else structure


def large_searches_table() -> str:
    """Searches on the paper's own graphs: what they looked at, what it took, and what they named."""
    rows = []
    for line in (line for line in records("large_searches") if line["graph"] in paper("links")):
        winner, new = line["winner"], line["best_new"]
        rows.append([
            line["graph"],
            searched_on(line),
            f"{line['structures']} ({line['new']} new)",
            str(line["epochs"]),
            f"{line['cpu_seconds'] / 60:.0f}",
            in_words(winner["structure"]),
            f"{winner['valid_mrr']:.4f} ± {winner['spread']:.4f}",
            f"{new['valid_mrr']:.4f} ({new['seeds']})",
            in_words(named_by(line)) if line.get("playoff") else "-",
            f"{line['test_mrr']:.4f}",
        ])  # fmt: skip
    head = (
        "graph | searched on | structures | epochs | core minutes | winner of the finals | its MRR there"
        " | best new one (seeds) | winner of the play-off | test MRR of the winner, d = 64"
    )
    return table(head, rows)


def named_table() -> str:
    """What the last search on the whole of each graph named, beside the best of the paper's four."""
    whole = [
        line for line in records("large_searches") if line["graph"] in paper("links") and not line["sample"]
    ]
    rows = []
    for graph, line in sorted({line["graph"]: line for line in whole}.items()):
        runs, human = of(graph, named_by(line), SEARCHED_DIMENSION), best_designed(graph)
        tests, others = ([run["test"]["mrr"] for run in some] for some in (runs, human))
        rows.append([
            graph,
            named(named_by(line)).title if named_by(line) in BY_NAME else f"`{named_by(line)}`",
            f"{valid_mean(runs):.4f}",
            f"{mean_and_spread(tests, 4)} ({len(tests)})",
            HUMAN_DESIGNED[human[0]["structure"]],
            f"{valid_mean(human):.4f}",
            f"{mean_and_spread(others, 4)} ({len(others)})",
            f"{ttest_ind(tests, others, equal_var=False).pvalue:.2f}",
        ])  # fmt: skip
    head = (
        "graph | named | valid MRR | test MRR (seeds) | best of the four | valid | test (seeds) | p (Welch)"
    )
    return table(head, rows)


def searched_on(line: dict[str, Any]) -> str:
    """The part of the graph that a search saw, and what its steps saw of that."""
    sample, draw = line["sample"], line.get("draw")
    part = f"{sample['entities']:,} of {sample['whole']['entities']:,} entities" if sample else "all"
    return f"{part}, {draw['entities']:,} drawn a step" if draw else part


def finds_table() -> str:
    """Searches on small graphs: what each named and the best of the four, both trained with further seeds."""
    rows = []
    for line in (line for line in records("large_searches") if line["graph"] not in paper("links")):
        graph, named = line["graph"], line["winner"]["structure"]
        found = of(graph, named, SEARCHED_DIMENSION)
        human = best_designed(graph, besides=named)
        if not found or not human:
            continue
        tests = [[run["test"]["mrr"] for run in runs] for runs in (found, human)]
        rows.append([
            graph,
            f"`{HUMAN_DESIGNED.get(named, named)}`",
            f"{line['structures']} in {line['cpu_seconds'] / 60:.0f} min",
            "-" if line["beats_human"] is None else f"{line['beats_human']:.2f}",
            f"{interval(tests[0])} ({len(found)})",
            f"{interval(tests[1])} ({HUMAN_DESIGNED[human[0]['structure']]}, {len(human)})",
            f"{ttest_ind(*tests, equal_var=False).pvalue:.3f}",
        ])  # fmt: skip
    head = (
        "graph | named | structures, core time | it thinks: better than all four"
        " | test MRR, 95 % interval (seeds) | best of the four by validation | p (Welch)"
    )
    return table(head, rows)


def best_designed(graph: str, besides: str = "") -> list[dict[str, Any]]:
    """The trainings of the human-designed structure that validation puts first, of those but one; maybe none."""
    designed = [of(graph, name, SEARCHED_DIMENSION) for name in HUMAN_DESIGNED if name != besides]
    return max(filter(None, designed), key=valid_mean, default=[])


def interval(values: Sequence[float]) -> str:
    """The mean with the 95 % interval for it, by Student's distribution."""
    reach = student.ppf(0.975, len(values) - 1) * stdev(values) / len(values) ** 0.5
    return f"{fmean(values):.4f}, {fmean(values) - reach:.4f} to {fmean(values) + reach:.4f}"


def summary_table() -> str:
    """The README's: on each graph the best of each kind by validation, its test MRR."""
    rows = []
    for graph in SUMMARY:
        kinds = (HUMAN_DESIGNED, FINDS.values(), named_here(graph) - HUMAN_DESIGNED.keys())
        trained = [[of(graph, structure, SEARCHED_DIMENSION) for structure in kind] for kind in kinds]
        best = [max(of_kind, key=valid_mean, default=[]) for of_kind in trained]
        tests = [[run["test"]["mrr"] for run in runs] for runs in best]
        cells = [mean_and_spread(of_one, 3) + about(runs) for of_one, runs in zip(tests, best, strict=True)]
        four, _, ours = tests
        several = min(len(four), len(ours)) > 1
        rows.append(
            [graph, *cells, f"{ttest_ind(ours, four, equal_var=False).pvalue:.3f}" if several else "-"]
        )
    head = (
        "graph | best of the paper's four | of the paper's finds | named by our search beside the four"
        " | p (Welch): named, four"
    )
    return table(head, rows)


def about(runs: Sequence[dict[str, Any]]) -> str:
    """What people call the structure, unless the paper or we have found it, and its seeds, in brackets."""
    if not runs:
        return ""
    structure, seeds = runs[0]["structure"], counted(len(runs), "seed")
    title = "" if structure.startswith(("[", "autosf-")) else f"{named(structure).title}, "
    return f" ({title}{seeds})"


def valid_mean(runs: Sequence[dict[str, Any]]) -> float:
    """The mean over seeds; of a structure that nobody has trained there, less than any."""
    return fmean(run["valid_mrr"] for run in runs) if runs else -1.0


def transfer_table() -> str:
    """Table V: what was found on one graph, trained on another, beside the best human-designed one there."""
    rows = []
    runs = [run for run in newest_trainings() if run["settings"]["dimension"] == SEARCHED_DIMENSION]
    for graph in dict.fromkeys(run["graph"] for run in runs):
        human = best_designed(graph)
        for origin, find in FINDS.items():
            found = of(graph, find, SEARCHED_DIMENSION)
            if found and human:
                printed = paper("transfer")[origin].get(graph)
                rows.append([
                    graph,
                    origin,
                    "-" if printed is None else f"{printed:.3f}",
                    mean_and_spread([run["test"]["mrr"] for run in found], 3),
                    mean_and_spread([run["test"]["mrr"] for run in human], 3),
                    HUMAN_DESIGNED[human[0]["structure"]],
                    str(len(found)),
                ])  # fmt: skip
    head = "trained on | found on | paper | here, d = 64 | best human-designed here | which | seeds"
    return table(head, sorted(rows, key=lambda row: row[0]))


def classification_table() -> str:
    """Table VI: accuracy in per cent, with the negatives of the paper's authors and with made ones."""
    rows = []
    for graph, figures in paper("classification").items():
        for structure, name in models(graph).items():
            runs = of(graph, structure, 64)
            given, made = (
                [100 * run[kind] for run in runs if kind in run] for kind in ("accuracy_given", "accuracy")
            )
            if made:
                printed = figures.get(structure, figures["found"])
                cells = (f"{mean_and_spread(some, 1)} ({len(some)})" for some in (given, made))
                rows.append([graph, name, f"{printed:.1f}", *cells])
    return table("graph | model | paper | here, given negatives (seeds) | here, made ones (seeds)", rows)


def curves_table() -> str:
    """Fig. 4: validation MRR after some of the epochs, on one core; of several seeds the first."""
    rows = []
    for run in sorted(newest_trainings(), key=lambda run: (run["graph"], -run["valid_mrr"])):
        names = models(run["graph"]) | found_here(run["graph"]) if run["graph"] in FINDS else {}
        shown = run["structure"] in names and run["settings"]["dimension"] == SEARCHED_DIMENSION
        if shown and run["seed"] == 0 and run.get("curve"):
            points = [
                min(run["curve"], key=lambda point: abs(point[0] - part * run["epochs"])) for part in PARTS
            ]
            cells = [f"{mrr:.4f} ({epoch})" for epoch, _, mrr in points]
            rows.append([run["graph"], names[run["structure"]], *cells])
    return table("graph | model | a fifth of the epochs | two | three | four | all", rows)


def running_table() -> str:
    """Table VII: minutes of a greedy step, 256 trainings of d = 64; ours on two cores, each at its own."""
    rows = []
    for line in records("running"):
        graph = line["graph"]
        trained = [run for name in HUMAN_DESIGNED for run in of(graph, name, 64) if run["threads"] == 1]
        if not trained:
            continue
        training = fmean(run["train_seconds"] for run in trained) * SEARCH_TRAININGS / 2 / 60
        ours = [
            line["filter"] / 60,
            line["predictor"] / 60,
            training,
            line["evaluation"] * SEARCH_TRAININGS / 2 / 60,
        ]
        rows.append(
            [graph, "paper, 8 GPUs", *(f"{minutes:.1f}" for minutes in paper("running_minutes")[graph])]
        )
        rows.append(
            [
                "",
                "here, 2 cores",
                *(f"{minutes:.2g}" if minutes < 1 else f"{minutes:.0f}" for minutes in ours),
            ]
        )
    return table("graph | | filter | predictor | train | evaluate", rows)
