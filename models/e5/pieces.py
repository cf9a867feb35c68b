"""The vocabulary of multilingual-e5-small as a SentencePiece model file, which loads quickly."""

from typing import Any

from sentencepiece import sentencepiece_model_pb2

from callslip.models.e5.weights import Weights

_PROTO: Any = sentencepiece_model_pb2  # makes its classes at import, so they have no types


def serialize(weights: Weights) -> bytes:
    """Return the bytes of the model file.

    The file contains no normalization: `models.e5.tokens` applies the model's own map before.
    """
    model, special = _PROTO.ModelProto(), weights.special
    names = weights.pieces()
    kinds = _PROTO.ModelProto.SentencePiece
    for name, score in zip(names, weights.scores.tolist(), strict=True):
        model.pieces.add(piece=name, score=score, type=kinds.NORMAL)
    model.pieces[special.unk].type = kinds.UNKNOWN
    for control in (special.bos, special.eos, special.pad):
        model.pieces[control].type = kinds.CONTROL
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    trainer.model_type = _PROTO.TrainerSpec.UNIGRAM
    trainer.unk_id, trainer.unk_piece = special.unk, names[special.unk]
    trainer.bos_id, trainer.bos_piece = special.bos, names[special.bos]
    trainer.eos_id, trainer.eos_piece = special.eos, names[special.eos]
    trainer.pad_id, trainer.pad_piece = special.pad, names[special.pad]
    normalizer.name = "identity"
    normalizer.add_dummy_prefix = True
    normalizer.remove_extra_whitespaces = False
    normalizer.escape_whitespaces = True
    serialized: bytes = model.SerializeToString()
    return serialized
