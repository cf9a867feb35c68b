"""The names of the inputs and outputs of the graphs of `models.e5.onnx_graph`.

The names are in a module of their own, because a process that runs a graph does not need the
library that builds one, which takes 5 MB and a tenth of a second.
"""

EMBEDDINGS, MASK, VECTORS, TOKENS = "embeddings", "mask", "vectors", "tokens"
SCORES = "scores"
"""EMBEDDINGS: input, float (batch, tokens, hidden), the sum of word, position and type embeddings.
MASK: input, int32 (batch, tokens), 1 for a token, 0 for padding.
VECTORS: output, float (batch, hidden), rows of length 1.
TOKENS: output, float (batch, tokens, hidden), the token vectors before pooling, of any length.
SCORES: output of a reader instead of VECTORS and TOKENS, float (batch, tokens, 2).
"""
