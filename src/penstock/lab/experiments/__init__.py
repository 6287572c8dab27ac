"""The experiments, each a module, or a folder, that exports EXPERIMENT."""
