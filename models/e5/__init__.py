"""multilingual-e5-small: its weights, tokenizer and ONNX graph."""
