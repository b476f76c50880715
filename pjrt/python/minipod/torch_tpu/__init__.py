"""What minipod adds to PyTorch's TPU backend, TorchTPU."""
