"""Updates the diagram of the agent's graph in docs/answers.md: `python -m tools.agent_graph`."""

from pathlib import Path
from typing import get_args

from callslip.agent.graph import NODES, make_graph
from callslip.agent.messages import Action

DOCUMENT = Path(__file__).parents[1] / "docs" / "answers.md"

BEGIN, END = "<!-- graph -->", "<!-- /graph -->"


def drawn() -> str:
    """Return the graph in Mermaid, between the marks BEGIN and END."""
    lines = ["flowchart TD"]
    order = list(NODES)
    edges = [e for e in make_graph().get_graph().edges if {e.source, e.target} <= set(order)]
    for edge in sorted(edges, key=lambda e: order.index(e.source)):
        back = order.index(edge.target) < order.index(edge.source)
        arrow = f"-- {', '.join(get_args(Action))} -->" if back else "-->"
        lines.append(f"    {edge.source} {arrow} {edge.target}")
    return "\n".join([BEGIN, "```mermaid", *lines, "```", END])


def redrawn(text: str) -> str:
    """Return a document with the current graph between the marks, or at its end without marks."""
    if BEGIN not in text or END not in text:
        return f"{text.rstrip()}\n\n{drawn()}\n"
    before, _, rest = text.partition(BEGIN)
    return before + drawn() + rest.partition(END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(redrawn(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
