"""The names of the inputs and outputs of the graphs of `models.e5.onnx_graph`.

They are apart from it, because running a graph does not need the library that builds one: 5 MB
and a tenth of a second in each process.
"""

EMBEDDINGS, MASK, VECTORS, TOKENS = "embeddings", "mask", "vectors", "tokens"
SCORES = "scores"
"""EMBEDDINGS: input, float (batch, tokens, hidden), the sum of word, position and type embeddings.
MASK: input, int32 (batch, tokens), 1 for a token, 0 for padding.
VECTORS: output, float (batch, hidden), rows of length 1.
TOKENS: output, float (batch, tokens, hidden), the token vectors before pooling, of any length.
SCORES: output of a reader instead of VECTORS and TOKENS, float (batch, tokens, 2).
"""
