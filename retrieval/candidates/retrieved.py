"""Results of the retrieval stages of a search: first all candidates, then the live ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from callslip.retrieval.candidates.branches import Branch
from callslip.retrieval.candidates.calibration import ScoreCalibration
from callslip.retrieval.candidates.chunk_reader import ChunkReader
from callslip.retrieval.candidates.fusion_weight import FusionWeight
from callslip.retrieval.facets.weights import Weights
from callslip.stores.fusion import Candidate, Scale


@dataclass(frozen=True)
class Candidates:
    """The candidates in the whole collection, best first.

    `weight` is the weight of the vector retriever in their scores, `corpus_version` the corpus
    version at the time of the read. `calibration` and `scale` make the retrievers' scores
    comparable; they are None if the fusion does not use them. `hotset` is the chunk reader if the
    hotset answered; its candidates are live. `left_out` maps a retriever whose store did not answer
    to the reason.
    """

    candidates: Sequence[Candidate]
    weight: FusionWeight
    corpus_version: int
    calibration: ScoreCalibration | None = None
    scale: Scale | None = None
    hotset: ChunkReader | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Retrieved:
    """All candidates of a search, those of live versions, and the reader of their chunks.

    `weight` is the weight of the vector retriever in their scores, `weights` has the weight of each
    facet value for the question. `branch` is the member of `branches` that was searched.
    `from_hotset` is true if the hotset answered. `left_out` is that of the candidates.
    """

    candidates: Sequence[Candidate]
    live: Sequence[Candidate]
    weight: FusionWeight
    reader: ChunkReader
    corpus_version: int
    calibration: ScoreCalibration | None = None
    scale: Scale | None = None
    weights: Weights = field(default_factory=dict)
    branches: Sequence[Branch] = ()
    branch: Branch | None = None
    from_hotset: bool = False
    left_out: Mapping[str, str] = field(default_factory=dict)

    def is_full(self, pool: int) -> bool:
        """Whether a retriever may have more candidates than it returned."""
        return is_full(self.candidates, pool)


def is_full(candidates: Sequence[Candidate], pool: int) -> bool:
    """Whether at least one retriever returned `pool` candidates."""
    vectors = sum(c.vector is not None for c in candidates)
    return vectors >= pool or sum(c.keyword is not None for c in candidates) >= pool
