"""The programs that can run the graphs of `models.e5.onnx_graph`, and the choice of one."""
