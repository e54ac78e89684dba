"""Policies of the program onnxrl, which pip has installed beside Python; python -m onnxrl is that program, too."""

__all__ = ["Policy"]
__version__ = "VERSION"  # What writes the wheel puts its version here.


def __getattr__(name):
    # The program alone needs neither numpy nor onnxruntime.
    if name != "Policy":
        raise AttributeError(f"module 'onnxrl' has no attribute {name!r}")
    try:
        from .policy import Policy
    except ImportError as e:
        raise ImportError(f"onnxrl.Policy needs numpy and onnxruntime (pip install 'onnxrl[predict]'): {e}") from e
    return Policy
